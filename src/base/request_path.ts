/** In a path's place where a request has none that could be relied on. */
export const invalidHostPath = "*";

/**
 * Finds a request's path, with doubled and trailing slashes, which base URLs often bring about,
 * taken away. The server puts the Host before the path as it came: one with a slash in it would
 * choose another path. `noPath` where it is no host.
 */
export function createRequestPath(): (request: Pick<Request, "url" | "headers">) => string {
  let known = "";
  return ({ url, headers }) => {
    const from = url.indexOf("://") + 3;
    const start = url.indexOf("/", from);
    if (start < 0) return invalidHostPath;
    const authority = url.slice(from, start);
    if (authority !== known) {
      if (!isHost(authority)) return invalidHostPath;
      known = authority;
    }
    const host = headers.get("host");
    // Nearly always they are the same; there is none in HTTP/2, where it is part of the address.
    if (host && host !== authority && !isHost(host)) return invalidHostPath;
    return normalPath(url, start);
  };
}

/** A name or an address, and maybe a port. */
function isHost(text: string): boolean {
  return /^([\w.-]+|\[[\da-f:.]+\])(:\d*)?$/i.test(text) && URL.canParse(`http://${text}/`);
}

function normalPath(url: string, start: number): string {
  const end = url.slice(start).search(/[?#]/);
  const path = end < 0 ? url.slice(start) : url.slice(start, start + end);
  if (!path.includes("//") && !path.endsWith("/")) return path;
  return path.replace(/\/{2,}/g, "/").replace(/(.)\/$/, "$1");
}

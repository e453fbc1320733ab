/** The path of a request that has none that can be relied on. */
export const invalidHostPath = "*";

/**
 * Finds a request's path, without the doubled and trailing slashes that base URLs often cause.
 * Deno's server prepends the Host header to the path unchanged: a Host with a slash in it would
 * choose another path. `noPath` where the Host is not valid.
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
    // Nearly always they are the same; HTTP/2 has no Host header, since it is part of the URL.
    if (host && host !== authority && !isHost(host)) return invalidHostPath;
    return normalPath(url, start);
  };
}

/** A name or an IP address, with an optional port. */
function isHost(text: string): boolean {
  return /^([\w.-]+|\[[\da-f:.]+\])(:\d*)?$/i.test(text) && URL.canParse(`http://${text}/`);
}

function normalPath(url: string, start: number): string {
  const end = url.slice(start).search(/[?#]/);
  const path = end < 0 ? url.slice(start) : url.slice(start, start + end);
  if (!path.includes("//") && !path.endsWith("/")) return path;
  return path.replace(/\/{2,}/g, "/").replace(/(.)\/$/, "$1");
}

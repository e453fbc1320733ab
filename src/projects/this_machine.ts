import { isLoopback } from "../config/config.ts";

/** Matches headers that proxies and tunnels add to the requests that they pass on. */
const proxyHeader =
  /^((x-)?forwarded|via$|x-real-ip$|cf-|true-client-ip$|x-(cluster-)?client-ip$|x-original-|x-envoy-|fly-|fastly-)/;

/**
 * Whether a request comes from a program or a page of this machine, under its own name: then it may
 * use what development offers without a secret. A page of another site, also one whose name was
 * made to lead here (DNS rebinding), sends its name as `Host` or `Origin`, and a tunnel says that
 * it passes on.
 */
export function isFromThisMachine({ headers, url }: Pick<Request, "headers" | "url">): boolean {
  const [origin, host] = [headers.get("origin"), headers.get("host")];
  // A request line with a whole URL names another host than `Host` may.
  return isLoopback(new URL(url).hostname) &&
    (host === null || isLoopbackUrl(`http://${host}`)) &&
    (origin === null || isLoopbackUrl(origin)) &&
    ![...headers.keys()].some((name) => proxyHeader.test(name));
}

function isLoopbackUrl(text: string): boolean {
  return isLoopback(URL.parse(text)?.hostname ?? "");
}

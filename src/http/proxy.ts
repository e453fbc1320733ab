import type { ServerAddress } from "./server_address.ts";

/** An HTTP proxy, reached by plain TCP. */
export interface HttpProxy {
  hostname: string;
  port: number;
  /** The value of `Proxy-Authorization`, or null. */
  authorization: string | null;
}

/** The proxy to use for a server, or null. */
export type FindProxy = (server: ServerAddress) => HttpProxy | null;

/**
 * Reads the proxy variables as curl does: `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`,
 * in lower case first. Null where none is set. Throws an Error that names a variable with an
 * invalid or unsupported URL, and repeats no part of it.
 */
export function readProxies(variable: (name: string) => string | undefined): FindProxy | null {
  const read = (name: string) => variable(name.toLowerCase()) || variable(name) || "";
  const proxyOf = (name: string) => parseProxy(name, read(name));
  const all = proxyOf("ALL_PROXY");
  const secure = proxyOf("HTTPS_PROXY") ?? all;
  const plain = proxyOf("HTTP_PROXY") ?? all;
  if (!secure && !plain) return null;
  const exceptions = read("NO_PROXY").split(",").map((entry) => entry.trim().toLowerCase())
    .filter((entry) => entry !== "");
  return (server) => {
    if (exceptions.some((entry) => isExcepted(entry, server))) return null;
    return server.secure ? secure : plain;
  };
}

function parseProxy(name: string, text: string): HttpProxy | null {
  if (text === "") return null;
  const url = URL.parse(text.includes("://") ? text : `http://${text}`);
  if (!url || url.hostname === "") throw new Error(`${name} is not a URL`);
  if (url.protocol !== "http:") {
    throw new Error(`${name} must be an http:// URL: other kinds of proxies are not supported`);
  }
  // A password with one of these in it would end the host there, and the rest be sent elsewhere.
  if (url.pathname !== "/" || /[?#]/.test(text)) {
    throw new Error(`${name} must have no path: write / ? and # in a password as %2F, %3F and %23`);
  }
  const { hostname, port, username, password } = url;
  const credentials = `${decoded(name, username)}:${decoded(name, password)}`;
  return {
    hostname: hostname.replace(/^\[(.*)\]$/, "$1"),
    port: Number(port) || 80,
    authorization: username === "" ? null : `Basic ${base64(credentials)}`,
  };
}

function decoded(name: string, text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new Error(`${name} has a user or password that is not percent-encoded`);
  }
}

function base64(text: string): string {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}

/** Whether an entry of `NO_PROXY` names this server: `*`, a host or a domain, maybe with a port. */
function isExcepted(entry: string, { hostname, port }: ServerAddress): boolean {
  if (entry === "*") return true;
  const [, host = entry, entryPort] = /^\[?(.*?)\]?(?::(\d+))?$/.exec(
    /^[^[]*:.*:/.test(entry) ? `[${entry}]` : entry,
  ) ?? [];
  if (entryPort !== undefined && Number(entryPort) !== port) return false;
  const name = host.replace(/^\*?\./, "");
  return hostname.toLowerCase() === name || hostname.toLowerCase().endsWith(`.${name}`);
}

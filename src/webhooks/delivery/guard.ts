import { isIP } from "node:net";
import { badRequest } from "../../base/errors.ts";
import { withDeadline } from "../../base/deadline.ts";
import type { Clock } from "../../base/clock.ts";
import type { Deps } from "../../deps.ts";
import { type Cidr, createIsOpened, isPublic } from "./addresses.ts";

/**
 * Decides which URLs deliveries may be sent to: public addresses, and those that the operator
 * allows. Ports other than those of https, private names and IP addresses need the operator's
 * permission.
 */
export interface Guard {
  /** Parses and normalizes a subscription's URL. Throws 400 for one that deliveries never go to. */
  checkUrl(text: string): URL;
  /**
   * Throws 400 when the URL's name is unknown, or resolves to an address that is refused, alike for
   * both, and when its name servers do not answer in time.
   */
  checkNow(url: URL, projectId: string): Promise<void>;
  /** Returns the addresses to connect to, or why there are none. Called at every attempt. */
  vet(
    url: URL,
    projectId: string,
  ): Promise<{ addresses: string[] } | { refused: "dns_error" | "blocked_address" }>;
}

/** The longest URL of a subscription. */
export const urlCharsMax = 2048;
/** How long the creation of a subscription waits for the name's addresses, in ms. */
const lookupMs = 5_000;
const ports = ["", "443", "8443"];

/** Names that never leave a machine, a home or a cloud's network, and names with an empty label. */
const privateName =
  /^[^.]*$|^\.|\.(\.|$)|(^|\.)(localhost|local|internal|home\.arpa|onion|lan|intranet|corp|home)$/;

/** Returns the host as it is checked: an address without brackets, a name without the final dot. */
function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "").toLowerCase();
}

/**
 * Whether a URL leads into this service: its origin, and the path of its `BASE_URL` or one below.
 * Servers decode paths and merge slashes before they compare them.
 */
function isBelow(url: URL, base: URL): boolean {
  if (url.protocol !== base.protocol || url.port !== base.port || hostOf(url) !== hostOf(base)) {
    return false;
  }
  const own = pathOf(base);
  return own === "" || pathOf(url) === own || pathOf(url).startsWith(`${own}/`);
}

function pathOf({ pathname }: URL): string {
  const decoded = pathname.replace(/%[2-7][0-9a-f]/gi, decodeURIComponent);
  const resolved = new URL(decoded.replace(/[?#]/g, "_").replace(/\/+/g, "/"), "http://host");
  return resolved.pathname.replace(/\/$/, "");
}

/** Returns why a URL needs the operator's permission; null where its host may be public. */
function notForPublic(url: URL): string | null {
  const host = hostOf(url);
  if (isIP(host)) return "must contain a host name, not an IP address";
  if (privateName.test(host)) return `has the host '${host}', which is not public`;
  return ports.includes(url.port) ? null : "must use port 443 or 8443";
}

interface GuardOptions {
  /** Networks that the operator allows although they are not public. */
  allowCidrs: readonly Cidr[];
  /** Whether this is development: this machine may then be reached, also without TLS. */
  dev: boolean;
  /** The service's own URL: deliveries below it could loop forever. */
  baseUrl: string;
  resolve: Deps["resolve"];
  clock: Pick<Clock, "after">;
}

const loopback = ["127.0.0.0/8", "::1/128"];

/** Creates a guard with these rules. */
export function createGuard(options: GuardOptions): Guard {
  const { allowCidrs, dev, baseUrl, resolve, clock } = options;
  const cidrs = dev ? [...allowCidrs, ...loopback] : allowCidrs;
  const isOpened = createIsOpened(cidrs);
  // One refused address refuses all: a mixed answer is an attack, or can become one.
  const mayReach = (url: URL, addresses: string[]) =>
    notForPublic(url) === null
      ? addresses.every((address) => isPublic(address) || isOpened(address))
      : addresses.every(isOpened);

  async function addressesOf(url: URL, projectId: string): Promise<string[]> {
    const host = hostOf(url);
    return isIP(host) ? [host] : await resolve(url.hostname, projectId);
  }

  /** Resolves a name; an unknown name has no addresses. */
  function addressesInTime(url: URL, projectId: string): Promise<string[]> {
    const late = () =>
      badRequest(
        "url",
        `'url' has the host '${url.hostname}', whose name servers did not answer within ` +
          `${lookupMs / 1000} seconds. Try again.`,
      );
    const found = addressesOf(url, projectId).catch((): string[] => []);
    return withDeadline(clock, found, { ms: lookupMs, late });
  }

  return {
    checkUrl(text) {
      const refuse = (reason: string) => badRequest("url", `'url' ${reason}.`);
      if (text.length > urlCharsMax) throw refuse(`is longer than ${urlCharsMax} characters`);
      const url = URL.parse(text);
      if (!url) throw refuse("is not a URL");
      const host = hostOf(url);
      const plainLoopback = dev && url.protocol === "http:" &&
        (host === "localhost" || (isIP(host) !== 0 && isOpened(host)));
      if (url.protocol !== "https:" && !plainLoopback) throw refuse("must start with https://");
      if (url.username || url.password) throw refuse("must not contain credentials");
      if (text.includes("#")) throw refuse("must not have a fragment");
      if (!dev && isBelow(url, new URL(baseUrl))) throw refuse("is a URL of this service itself");
      const reason = notForPublic(url);
      // The name is resolved later: it may have an address that the operator allows.
      const couldBeOpened = isIP(host) ? isOpened(host) : cidrs.length > 0;
      if (reason !== null && !couldBeOpened) throw refuse(reason);
      return url;
    },
    async checkNow(url, projectId) {
      const addresses = await addressesInTime(url, projectId);
      if (addresses.length > 0 && mayReach(url, addresses)) return;
      // The same for a name that is unknown: which names the private network has is not told.
      const reason = notForPublic(url) ??
        `has the host '${url.hostname}', which has no public address`;
      throw badRequest("url", `'url' ${reason}.`);
    },
    async vet(url, projectId) {
      const addresses = await addressesOf(url, projectId).catch((): string[] => []);
      if (addresses.length === 0) return { refused: "dns_error" };
      return mayReach(url, addresses) ? { addresses } : { refused: "blocked_address" };
    },
  };
}

import { BlockList, isIP } from "node:net";
import { badRequest } from "../base/errors.ts";
import { withDeadline } from "../base/deadline.ts";
import type { Clock } from "../base/clock.ts";

/** Address ranges in CIDR notation, such as "10.0.0.0/8". */
export type Cidr = string;

/**
 * Decides which URLs deliveries may be sent to: public addresses, and what the operator allows.
 * Ports other than those of https, private names and IP addresses need the operator's permission.
 */
export interface Guard {
  /** Parses and normalizes a subscription's URL. Throws 400 for one that deliveries never go to. */
  checkUrl(text: string): URL;
  /**
   * Throws 400, the same, when the name is unknown and when it resolves to an address that is
   * refused; and when its name servers do not answer in time.
   */
  checkNow(url: URL): Promise<void>;
  /** Returns the addresses to connect to, or why there are none. Called at every attempt. */
  vet(url: URL): Promise<{ addresses: string[] } | { refused: "dns_error" | "blocked_address" }>;
}

/** The longest URL of a subscription. */
export const urlCharsMax = 2048;
/** How long the creation of a subscription waits for the name's addresses, in ms. */
const lookupMs = 5_000;
const ports = ["", "443", "8443"];

// Special-purpose ranges (IANA registries), and ranges that clouds use internally.
const blockedV4 = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["168.63.129.16", 32],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.31.196.0", 24],
  ["192.52.193.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["192.175.48.0", 24],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 4],
  ["240.0.0.0", 4],
] as const;
/**
 * In IPv6 only global unicast is public, except ranges that embed IPv4 or are for documentation.
 */
const publicV6 = ["2000::", 3] as const;
const blockedV6 = [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["2620:4f:8000::", 48],
  ["3fff::", 20],
] as const;

const blocked = new BlockList();
for (const [net, prefix] of blockedV4) blocked.addSubnet(net, prefix, "ipv4");
for (const [net, prefix] of blockedV6) blocked.addSubnet(net, prefix, "ipv6");
const globalUnicast = new BlockList();
globalUnicast.addSubnet(...publicV6, "ipv6");

/** Names that never leave a machine, a home or a cloud's network, and names with an empty label. */
const privateName =
  /^[^.]*$|^\.|\.(\.|$)|(^|\.)(localhost|local|internal|home\.arpa|onion|lan|intranet|corp|home)$/;

/** Whether an address is on the public internet. Anything that is not an address is not. */
export function isPublic(address: string): boolean {
  const family = isIP(address);
  if (family === 4) return !blocked.check(address, "ipv4");
  return family === 6 && globalUnicast.check(address, "ipv6") && !blocked.check(address, "ipv6");
}

/** Returns the host as it is checked: an address without brackets, a name without the final dot. */
function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "").toLowerCase();
}

/** Returns why only what the operator allows may be behind the URL; null where it may be public. */
function notForPublic(url: URL): string | null {
  const host = hostOf(url);
  if (isIP(host)) return "must contain a host name, not an IP address";
  if (privateName.test(host)) return `has the host '${host}', which is not public`;
  return ports.includes(url.port) ? null : "must use port 443 or 8443";
}

interface GuardOptions {
  /** Networks that the operator allows although they are not public. */
  allowCidrs: readonly Cidr[];
  /** In development this machine may be reached, also without TLS. */
  dev: boolean;
  /** The service's own host: deliveries to it could loop forever. */
  ownHost: string;
  resolve(host: string): Promise<string[]>;
  clock: Pick<Clock, "after">;
}

const loopback = ["127.0.0.0/8", "::1/128"];

/** Creates a guard with these rules. */
export function createGuard(options: GuardOptions): Guard {
  const { allowCidrs, dev, ownHost, resolve, clock } = options;
  const cidrs = dev ? [...allowCidrs, ...loopback] : allowCidrs;
  const opened = new BlockList();
  for (const cidr of cidrs) {
    const [net = "", prefix] = cidr.split("/");
    opened.addSubnet(net, Number(prefix), isIP(net) === 6 ? "ipv6" : "ipv4");
  }
  const isOpened = (address: string) => {
    const family = isIP(address);
    return family !== 0 && opened.check(address, family === 6 ? "ipv6" : "ipv4");
  };
  // One refused address refuses all: a mixed answer is an attack, or can become one.
  const mayReach = (url: URL, addresses: string[]) =>
    notForPublic(url) === null
      ? addresses.every((address) => isPublic(address) || isOpened(address))
      : addresses.every(isOpened);

  async function addressesOf(url: URL): Promise<string[]> {
    const host = hostOf(url);
    return isIP(host) ? [host] : await resolve(url.hostname);
  }

  /** Resolves a name; an unknown name has no addresses. */
  function addressesInTime(url: URL): Promise<string[]> {
    const late = () =>
      badRequest(
        "url",
        `'url' has the host '${url.hostname}', whose name servers did not answer within ` +
          `${lookupMs / 1000} seconds. Try again.`,
      );
    return withDeadline(clock, addressesOf(url).catch((): string[] => []), { ms: lookupMs, late });
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
      if (host === ownHost && !dev) throw refuse("is a URL of this service itself");
      const reason = notForPublic(url);
      // The name is resolved later: it may have an address that the operator allows.
      const couldBeOpened = isIP(host) ? isOpened(host) : cidrs.length > 0;
      if (reason !== null && !couldBeOpened) throw refuse(reason);
      return url;
    },
    async checkNow(url) {
      const addresses = await addressesInTime(url);
      if (addresses.length > 0 && mayReach(url, addresses)) return;
      // The same for a name that is unknown: which names the private network has is not told.
      const reason = notForPublic(url) ??
        `has the host '${url.hostname}', which has no public address`;
      throw badRequest("url", `'url' ${reason}.`);
    },
    async vet(url) {
      const addresses = await addressesOf(url).catch((): string[] => []);
      if (addresses.length === 0) return { refused: "dns_error" };
      return mayReach(url, addresses) ? { addresses } : { refused: "blocked_address" };
    },
  };
}

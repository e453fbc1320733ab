import { BlockList, isIP } from "node:net";
import { badRequest } from "../base/errors.ts";
import { withDeadline } from "../base/deadline.ts";
import type { Clock } from "../base/clock.ts";

/** Address ranges in CIDR notation, such as "10.0.0.0/8". */
export type Cidr = string;

/**
 * Decides where deliveries may go: public addresses, and what the operator opened. Other ports than
 * those of https, private names and bare addresses are for the latter alone.
 */
export interface Guard {
  /** The address of a subscription, normalised. Throws 400 for one that is never delivered to. */
  checkUrl(text: string): URL;
  /**
   * Throws 400 when the name stands for an address that is refused, or its name servers do not
   * answer in time; unknown names pass.
   */
  checkNow(url: URL): Promise<void>;
  /** The addresses to connect to, or why there are none. Asked at every attempt. */
  vet(url: URL): Promise<{ addresses: string[] } | { refused: "dns_error" | "blocked_address" }>;
}

/** Longest address of a subscription. */
export const urlCharsMax = 2048;
/** How long whoever makes a subscription waits for its name's addresses, in milliseconds. */
const lookupMs = 5_000;
const ports = ["", "443", "8443"];

// Special-purpose ranges (IANA registries), and those that clouds use for their own.
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
/** Of IPv6 only global unicast is public, and of that not what embeds or documents. */
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

/** Names that never leave a machine, a home or a cloud's network, or are none: of an empty part. */
const privateName =
  /^[^.]*$|^\.|\.(\.|$)|(^|\.)(localhost|local|internal|home\.arpa|onion|lan|intranet|corp|home)$/;

/** Whether an address is on the public internet. Anything that is no address is not. */
export function isPublic(address: string): boolean {
  const family = isIP(address);
  if (family === 4) return !blocked.check(address, "ipv4");
  return family === 6 && globalUnicast.check(address, "ipv6") && !blocked.check(address, "ipv6");
}

/** The host as it is judged: an address without its brackets, a name without the root's dot. */
function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "").toLowerCase();
}

/** Why nothing public may be behind it, but at most what the operator opened; null where it may. */
function notForPublic(url: URL): string | null {
  const host = hostOf(url);
  if (isIP(host)) return "must name a host, not an IP address";
  if (privateName.test(host)) return `names '${host}', which is not a public host`;
  return ports.includes(url.port) ? null : "must use port 443 or 8443";
}

interface GuardOptions {
  /** Opened by the operator, although not public. */
  allowCidrs: readonly Cidr[];
  /** In development this machine may be reached, also without TLS. */
  dev: boolean;
  /** Our own host: a delivery to it could go round for ever. */
  ownHost: string;
  resolve(host: string): Promise<string[]>;
  clock: Pick<Clock, "after">;
}

const loopback = ["127.0.0.0/8", "::1/128"];

/** A guard by these rules. */
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
  // One address that is refused refuses all: a split answer is an attack, or will be one.
  const mayReach = (url: URL, addresses: string[]) =>
    notForPublic(url) === null
      ? addresses.every((address) => isPublic(address) || isOpened(address))
      : addresses.every(isOpened);

  async function addressesOf(url: URL): Promise<string[]> {
    const host = hostOf(url);
    return isIP(host) ? [host] : await resolve(url.hostname);
  }

  /** None of a name that is unknown. */
  function addressesInTime(url: URL): Promise<string[]> {
    const late = () =>
      badRequest(
        "url",
        `'url' names '${url.hostname}', whose name servers did not answer within ` +
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
      if (url.protocol !== "https:" && !plainLoopback) throw refuse("must begin with https://");
      if (url.username || url.password) throw refuse("must not hold credentials");
      if (text.includes("#")) throw refuse("must not have a fragment");
      if (host === ownHost && !dev) throw refuse("is an address of this very service");
      const reason = notForPublic(url);
      // Which addresses a name has is looked up later: here it could have one that is opened.
      const couldBeOpened = isIP(host) ? isOpened(host) : cidrs.length > 0;
      if (reason !== null && !couldBeOpened) throw refuse(reason);
      return url;
    },
    async checkNow(url) {
      const addresses = await addressesInTime(url);
      if (mayReach(url, addresses)) return;
      const reason = notForPublic(url) ?? `names '${url.hostname}', which is not a public host`;
      throw badRequest("url", `'url' ${reason}.`);
    },
    async vet(url) {
      const addresses = await addressesOf(url).catch((): string[] => []);
      if (addresses.length === 0) return { refused: "dns_error" };
      return mayReach(url, addresses) ? { addresses } : { refused: "blocked_address" };
    },
  };
}

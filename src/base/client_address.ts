import { BlockList, isIP } from "node:net";

/** Finds the address of the client that a request comes from, by way of trusted proxies. */
type FindClient = (peer: string | null, forwardedFor: string | null) => string | null;

/** The most entries of `X-Forwarded-For` that are read, from its end. */
const entriesMax = 32;

/**
 * Creates a finder that reads `X-Forwarded-For` from the right: each trusted proxy has added the
 * address of its own peer there, and whatever stands further left may be forged. Without trusted
 * ranges, the header is not read.
 */
export function createFindClient(trustedCidrs: readonly string[]): FindClient {
  if (trustedCidrs.length === 0) {
    return (peer) => peer?.startsWith("::ffff:") ? plainAddress(peer) : peer;
  }
  const trusted = new BlockList();
  for (const cidr of trustedCidrs) {
    const [net = "", prefix] = cidr.split("/");
    trusted.addSubnet(net, Number(prefix), isIP(net) === 6 ? "ipv6" : "ipv4");
  }
  const isTrusted = (address: string) =>
    trusted.check(address, isIP(address) === 6 ? "ipv6" : "ipv4");
  return (peer, forwardedFor) => {
    let address = plainAddress(peer);
    if (address === null || forwardedFor === null || !isTrusted(address)) return address;
    const entries = forwardedFor.split(",").slice(-entriesMax);
    for (const entry of entries.reverse()) {
      const next = plainAddress(entry.trim());
      if (next === null) return address;
      address = next;
      if (!isTrusted(address)) return address;
    }
    return address;
  };
}

/**
 * Returns what counts as one sender: an address of IPv4, and of IPv6 the network of 64 bits, of
 * which one machine has as many addresses as it likes. All whose address is unknown are one.
 */
export function networkOf(address: string | null): string {
  if (address === null || !address.includes(":")) return address ?? "unknown";
  const [head = "", tail] = address.split("::");
  const groups = head === "" ? [] : head.split(":");
  const last = tail ? tail.split(":") : [];
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - groups.length - last.length);
  const all = [...groups, ...Array.from({ length: zeros }, () => "0"), ...last];
  return `${all.slice(0, 4).map((group) => parseInt(group, 16).toString(16)).join(":")}::/64`;
}

/** Removes a port and brackets, and gives IPv4 within IPv6 as IPv4; null for other texts. */
function plainAddress(text: string | null): string | null {
  if (text === null) return null;
  const [, host = text] = /^\[([^\]]+)\](?::\d+)?$/.exec(text) ??
    /^([\d.]+):\d+$/.exec(text) ?? [];
  const [, mapped = host] = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(host) ?? [];
  return isIP(mapped) === 0 ? null : mapped;
}

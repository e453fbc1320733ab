import { BlockList, isIP } from "node:net";

// Ranges of networks that are not the internet, and of this machine.
const privateNetworks = new BlockList();
for (
  const [net, prefix, family] of [
    ["0.0.0.0", 8, "ipv4"],
    ["10.0.0.0", 8, "ipv4"],
    ["100.64.0.0", 10, "ipv4"],
    ["127.0.0.0", 8, "ipv4"],
    ["169.254.0.0", 16, "ipv4"],
    ["172.16.0.0", 12, "ipv4"],
    ["192.168.0.0", 16, "ipv4"],
    ["::", 127, "ipv6"],
    ["fc00::", 7, "ipv6"],
    ["fe80::", 10, "ipv6"],
  ] as const
) privateNetworks.addSubnet(net, prefix, family);

const privateName = /^[^.]*$|(^|\.)(localhost|local|internal|home\.arpa|lan|intranet|corp|home)$/;

/** Whether a host, a name or an address, is plainly of a private network or of this machine. */
export function isPrivateHost(hostname: string): boolean {
  const host = hostname.replace(/^\[|\]$|\.$/g, "").toLowerCase();
  const family = isIP(host);
  if (family === 0) return privateName.test(host);
  return privateNetworks.check(host, family === 6 ? "ipv6" : "ipv4");
}

/** Whether the host of a URL is an IP address, not a name. */
export function isAddressHost(url: string): boolean {
  return isIP(new URL(url).hostname.replace(/^\[|\]$/g, "")) !== 0;
}

/** Whether a URL is http:// at a host of the internet, so that its traffic can be read there. */
export function isPublicHttp(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === "http:" && !isPrivateHost(hostname);
}

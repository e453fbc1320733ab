import { BlockList, isIP } from "node:net";

/** Address ranges in CIDR notation, such as "10.0.0.0/8". */
export type Cidr = string;

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
/** In IPv6 only global unicast is public, except some ranges of it. */
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

/**
 * Whether an address is on the public internet. An IPv6 address that leads to an IPv4 address is
 * judged by that one. Anything that is not an address is not public.
 */
export function isPublic(address: string): boolean {
  if (isIP(address) === 4) return !blocked.check(address, "ipv4");
  const words = wordsOf(address);
  if (!words) return false;
  const within = translatedOf(words);
  if (within) return within.length > 0 && within.every(isPublic);
  return globalUnicast.check(address, "ipv6") && !blocked.check(address, "ipv6") &&
    tunneledOf(words).every(isPublic);
}

/**
 * Returns whether an address is within ranges that are opened although they are not public. An IPv6
 * address that leads to an IPv4 address is only opened as far as that one may be reached.
 */
export function createIsOpened(cidrs: readonly Cidr[]): (address: string) => boolean {
  const opened = new BlockList();
  for (const cidr of cidrs) {
    const [net = "", prefix] = cidr.split("/");
    opened.addSubnet(net, Number(prefix), isIP(net) === 6 ? "ipv6" : "ipv4");
  }
  return function isOpened(address: string): boolean {
    if (isIP(address) === 4) return opened.check(address, "ipv4");
    const words = wordsOf(address);
    if (!words) return false;
    const translated = translatedOf(words);
    const within = translated ?? tunneledOf(words);
    const isWithin = opened.check(address, "ipv6");
    if (isWithin) return within.every((v4) => isPublic(v4) || isOpened(v4));
    return translated !== null && translated.length > 0 && translated.every(isOpened);
  };
}

type Words = readonly number[];

/** Returns the eight 16-bit words of an IPv6 address; null for anything else, also with a zone. */
function wordsOf(address: string): Words | null {
  if (isIP(address) !== 6) return null;
  const url = URL.parse(`http://[${address}]/`);
  if (!url) return null;
  const [before = "", after] = url.hostname.slice(1, -1).split("::");
  const parse = (text: string) =>
    text === "" ? [] : text.split(":").map((word) => parseInt(word, 16));
  const start = parse(before);
  const end = parse(after ?? "");
  return [...start, ...Array(8 - start.length - end.length).fill(0), ...end];
}

const v4Of = (high: number, low: number) => [high >> 8, high & 255, low >> 8, low & 255].join(".");

/**
 * Returns the IPv4 addresses that packets to this IPv6 address are sent to; null where it is an
 * address of IPv6 itself.
 */
function translatedOf(words: Words): string[] | null {
  const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = words;
  const last = v4Of(g, h);
  const isZeroTo = (count: number) => words.slice(0, count).every((word) => word === 0);
  // IPv4-mapped (RFC 4291), IPv4-translated (RFC 2765), and IPv4-compatible, except :: and ::1.
  if (isZeroTo(5) && f === 0xffff) return [last];
  if (isZeroTo(4) && e === 0xffff && f === 0) return [last];
  if (isZeroTo(6) && (g !== 0 || h > 1)) return [last];
  // NAT64 (RFC 6052): the well-known prefix has 96 bits.
  if (a === 0x64 && b === 0xff9b && c === 0) return [last];
  if (a === 0x64 && b === 0xff9b && c === 1) return localNat64Of(words);
  // 6to4 (RFC 3056).
  if (a === 0x2002) return [v4Of(b, c)];
  // Teredo (RFC 4380): the server's address, and the client's with all bits inverted.
  if (a === 0x2001 && b === 0) return [v4Of(c, d), v4Of(g ^ 0xffff, h ^ 0xffff)];
  return null;
}

/**
 * NAT64 of a local network (RFC 8215) has a prefix of 48, 56, 64 or 96 bits, and only its
 * translator knows which (RFC 6052, section 2.2). Returns the addresses of all possible readings.
 */
function localNat64Of([, , , d = 0, e = 0, f = 0, g = 0, h = 0]: Words): string[] {
  const byte = (word: number, low: boolean) => low ? word & 255 : word >> 8;
  const readings = [
    [byte(d, false), byte(d, true), byte(e, true), byte(f, false)],
    [byte(d, true), byte(e, true), byte(f, false), byte(f, true)],
    [byte(e, true), byte(f, false), byte(f, true), byte(g, false)],
    [byte(g, false), byte(g, true), byte(h, false), byte(h, true)],
  ];
  // No packet can be sent to 0.0.0.0/8: there the prefix is another one.
  return readings.filter(([first]) => first !== 0).map((bytes) => bytes.join("."));
}

/** Returns the IPv4 address at the end of a tunnel that this address leads into (RFC 5214). */
function tunneledOf([, , , , e = 0, f = 0, g = 0, h = 0]: Words): string[] {
  const isIsatap = f === 0x5efe && (e & ~0x0200) === 0;
  return isIsatap ? [v4Of(g, h)] : [];
}

import type { Key } from "./kv.ts";

// deno-lint-ignore no-control-regex -- these are one byte each, and need no escape
const plain = /^[\x01-\x7f]*$/;
const double = new DataView(new ArrayBuffer(8));
const textPart = 0x02;
const numberPart = 0x21;

/**
 * Encodes a key in Deno KV's order, one character per byte: a string is 0x02, its UTF-8 with 0x00
 * written as 0x00 0xff, and 0x00; a number is 0x21 and its double, big-endian, with its bits
 * changed so that it sorts by size.
 */
export function encodeKey(key: Key): string {
  let encoded = "";
  for (const part of key) {
    encoded += typeof part === "string" ? `\x02${encodeText(part)}\x00` : encodeNumber(part);
  }
  return encoded;
}

/** Returns the key that `encodeKey` encoded as these bytes. */
export function decodeKey(bytes: Uint8Array): Key {
  const key: (string | number)[] = [];
  let at = 0;
  while (at < bytes.length) {
    const kind = bytes[at++];
    if (kind === numberPart) {
      key.push(decodeNumber(bytes.subarray(at, at += 8)));
      continue;
    }
    if (kind !== textPart) throw new Error(`A key has a part of an unknown kind: ${kind}`);
    const end = endOfText(bytes, at);
    key.push(decodeText(bytes.subarray(at, end)));
    at = end + 1;
  }
  return key;
}

/** Returns an encoded key as bytes. */
export function keyBytes(encoded: string): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(encoded.length);
  for (let at = 0; at < encoded.length; at++) bytes[at] = encoded.charCodeAt(at);
  return bytes;
}

function encodeText(text: string): string {
  if (plain.test(text)) return text;
  let bytes = "";
  for (const byte of new TextEncoder().encode(text)) {
    bytes += byte === 0 ? "\x00\xff" : String.fromCharCode(byte);
  }
  return bytes;
}

/** Returns where a text ends: at the first 0x00 that is not part of an escape. */
function endOfText(bytes: Uint8Array, from: number): number {
  let at = bytes.indexOf(0, from);
  while (at !== -1 && bytes[at + 1] === 0xff) at = bytes.indexOf(0, at + 2);
  if (at === -1) throw new Error("A key has a text without an end");
  return at;
}

function decodeText(bytes: Uint8Array): string {
  // 0xff is never part of UTF-8: it only marks an escape.
  const text = bytes.includes(0) ? bytes.filter((byte) => byte !== 0xff) : bytes;
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(text);
}

function encodeNumber(value: number): string {
  double.setFloat64(0, value);
  const negative = (double.getUint8(0) & 0x80) !== 0;
  let bytes = "\x21";
  for (let at = 0; at < 8; at++) {
    const byte = double.getUint8(at);
    bytes += String.fromCharCode(negative ? byte ^ 0xff : at === 0 ? byte | 0x80 : byte);
  }
  return bytes;
}

function decodeNumber(bytes: Uint8Array): number {
  const negative = ((bytes[0] ?? 0) & 0x80) === 0;
  bytes.forEach((byte, at) =>
    double.setUint8(at, negative ? byte ^ 0xff : at === 0 ? byte & 0x7f : byte)
  );
  return double.getFloat64(0);
}

/**
 * Returns a short name for a key, which cannot be read back. Two keys may have the same one: only
 * for hints.
 */
export function keyHash(key: Key): string {
  let [high, low] = [0xdeadbeef, 0x41c6ce57];
  for (const char of encodeKey(key)) {
    const code = char.charCodeAt(0);
    high = Math.imul(high ^ code, 2_654_435_761);
    low = Math.imul(low ^ code, 1_597_334_677);
  }
  return `${(high >>> 0).toString(36)}.${(low >>> 0).toString(36)}`;
}

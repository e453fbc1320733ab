import { encodeKey, keyBytes } from "../store/key_bytes.ts";
import type { Key, Write } from "../store/kv.ts";

// How keys, rows and writes travel to PostgreSQL: as arrays in binary, which cost the driver half
// of what text does.

// The largest key and value that Deno KV takes, so that no store takes what another does not.
const keyBytesMax = 2_048;
const valueBytesMax = 65_536;

const versionDigits = 19;
const isVersion = /^\d{19}$/;

interface CheckedRow {
  version: string | null;
  position: number;
}

/** The arguments of the function, or the positions of checks that can never hold. */
export function writeArguments({ checks, sets, deletes }: Write) {
  const checked = new Map<string, CheckedRow>();
  const failing: number[] = [];
  for (const [position, { key, version }] of checks.entries()) {
    const encoded = readable(key, keyBytesMax);
    const known = checked.get(encoded);
    if (known && known.version !== version) failing.push(known.position, position);
    if (version !== null && !isVersion.test(version)) failing.push(position);
    checked.set(encoded, { version, position });
  }
  const values = new Map(sets.map(({ key, value }) => [writable(key), bounded(value)]));
  const dropped = new Set(deletes.map(writable));
  for (const encoded of dropped) values.delete(encoded);
  const lock: [string, string][] = [];
  const share: [string, string][] = [];
  const make: [string, Uint8Array][] = [];
  const change: [string, Uint8Array][] = [];
  const put: [string, Uint8Array][] = [];
  for (const [encoded, { version }] of checked) {
    const value = values.get(encoded);
    if (version === null) {
      make.push([encoded, value ?? new Uint8Array()]);
      if (!value) dropped.add(encoded);
    } else if (value || dropped.has(encoded)) lock.push([encoded, version]);
    else share.push([encoded, version]);
    if (version !== null && value) change.push([encoded, value]);
  }
  for (const row of values) if (!checked.has(row[0])) put.push(row);
  const versions = (rows: [string, string][]) => int8s(rows.map(([, version]) => version));
  const contents = (rows: [string, Uint8Array][]) => arrayOf(17, rows.map(([, value]) => value));
  const keysOf = (rows: [string, unknown][]) => byteas(rows.map(([encoded]) => encoded));
  const args = [
    keysOf(lock),
    versions(lock),
    keysOf(share),
    versions(share),
    ...[make, change, put].flatMap((rows) => [keysOf(rows), contents(rows)]),
    byteas([...dropped]),
  ];
  return { args, failing: [...new Set(failing)] };
}

function bounded(value: Uint8Array): Uint8Array {
  if (value.length <= valueBytesMax) return value;
  throw new TypeError(`Value too large (max ${valueBytesMax} bytes)`);
}

/** Encodes keys as an array of bytea. */
export const byteas = (encoded: readonly string[]) => arrayOf(17, encoded.map(keyBytes));
const int8s = (versions: readonly string[]) => `{${versions.join(",")}}`;

/** Encodes an array as PostgreSQL sends and receives it in binary: `array_recv`. */
function arrayOf(elementType: number, elements: readonly Uint8Array[]): Buffer {
  const size = elements.reduce((sum, { length }) => sum + 4 + length, 20);
  const bytes = Buffer.allocUnsafe(elements.length === 0 ? 12 : size);
  bytes.writeInt32BE(elements.length === 0 ? 0 : 1, 0); // dimensions
  bytes.writeInt32BE(0, 4); // no nulls
  bytes.writeInt32BE(elementType, 8);
  if (elements.length === 0) return bytes;
  bytes.writeInt32BE(elements.length, 12);
  bytes.writeInt32BE(1, 16); // the first index
  let at = 20;
  for (const element of elements) {
    bytes.writeInt32BE(element.length, at);
    bytes.set(element, at + 4);
    at += 4 + element.length;
  }
  return bytes;
}

/** Decodes a value of bytea, which arrives as \x and hexadecimal digits. */
export function readBytea(text: string | null | undefined): Uint8Array<ArrayBuffer> {
  return Uint8Array.fromHex((text ?? "").slice(2));
}

/** Decodes a key's bytes as encoded text. */
export function readKey(text: string | null | undefined): string {
  return Buffer.from((text ?? "").slice(2), "hex").toString("latin1");
}

/** Decodes an array of bytea without nulls, each as an encoded key. */
export function readByteas(text: string): string[] {
  const elements = text.matchAll(/\\x([\da-f]*)/g);
  return Array.from(elements, ([, hex = ""]) => Buffer.from(hex, "hex").toString("latin1"));
}

/** A version as text that sorts by age: of the same length for each. */
export function versionOf(text: string): string {
  return text.padStart(versionDigits, "0");
}

/** Returns an encoded key as a parameter. */
export const keyBuffer = (encoded: string) => Buffer.from(encoded, "latin1");

/** Encodes a key to be read. Throws a TypeError when it is too large. */
export function readable(key: Key, bytesMax = keyBytesMax): string {
  const encoded = encodeKey(key);
  if (encoded.length <= bytesMax) return encoded;
  throw new TypeError(`Key too large for read (max ${keyBytesMax + 1} bytes)`);
}

function writable(key: Key): string {
  if (key.length === 0) throw new TypeError("key cannot be empty");
  const encoded = encodeKey(key);
  if (encoded.length <= keyBytesMax) return encoded;
  throw new TypeError(`Key too large for write (max ${keyBytesMax} bytes)`);
}

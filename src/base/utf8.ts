import { Buffer } from "node:buffer";

const encoder = new TextEncoder();
const strict = new TextDecoder("utf-8", { fatal: true });
const forgiving = new TextDecoder();

// Allocating a buffer for each text costs five times as much as encoding it into a part of a larger
// one.
const poolBytes = 32 * 1024;
/**
 * Longer texts, in characters, get their own buffer: a long-lived one would keep the whole pool
 * alive.
 */
const pooledMax = 2 * 1024;
let pool = new Uint8Array(poolBytes);
let used = 0;

/**
 * Encodes a text as UTF-8. The bytes may share a buffer with others: use them for what is written
 * at once, never for what transfers its buffer, such as a byte stream.
 */
export function encodeUtf8(text: string): Uint8Array<ArrayBuffer> {
  if (text.length > pooledMax) return encoder.encode(text);
  if (used + 3 * text.length > poolBytes) {
    pool = new Uint8Array(poolBytes);
    used = 0;
  }
  const from = used;
  used += encoder.encodeInto(text, pool.subarray(from)).written;
  return pool.subarray(from, used);
}

/** Whether bytes contain a text, without decoding them: some GB a second. */
export function containsUtf8(bytes: Uint8Array, text: string): boolean {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).includes(text);
}

/** Decodes what this process encoded itself. */
export function decodeOwnUtf8(bytes: Uint8Array): string {
  return forgiving.decode(bytes);
}

/** Decodes UTF-8; null where a byte sequence is not well-formed. */
export function decodeUtf8(bytes: Uint8Array): string | null {
  const text = forgiving.decode(bytes);
  // Faster than a decoder that throws, and as strict: ill-formed input becomes this character.
  if (!text.includes("\ufffd")) return text;
  try {
    return strict.decode(bytes);
  } catch {
    return null;
  }
}

/** The length of `text` in UTF-8, in bytes. */
export function utf8Length(text: string): number {
  return encodeUtf8(text).length;
}

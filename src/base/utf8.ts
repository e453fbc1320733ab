const encoder = new TextEncoder();
const strict = new TextDecoder("utf-8", { fatal: true });
const forgiving = new TextDecoder();

// A buffer of its own costs five times as much as encoding a record into a part of a larger one.
const poolBytes = 32 * 1024;
/** Longer texts get a buffer of their own, in characters: one that is kept would keep the pool. */
const pooledMax = 2 * 1024;
let pool = new Uint8Array(poolBytes);
let used = 0;

/**
 * A text as UTF-8. The bytes may lie beside others' in one buffer: for what is written at once,
 * never for what transfers its buffer, such as a byte stream.
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

/** Decodes what we encoded ourselves. */
export function decodeOwnUtf8(bytes: Uint8Array): string {
  return forgiving.decode(bytes);
}

/** Decodes UTF-8; null where a byte sequence is not well-formed. */
export function decodeUtf8(bytes: Uint8Array): string | null {
  const text = forgiving.decode(bytes);
  // Faster than a decoder that throws, and as strict: what is ill-formed becomes this character.
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

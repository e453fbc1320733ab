import { createCipheriv, createDecipheriv, hkdfSync } from "node:crypto";
import { type Json, toBytes } from "../base/json.ts";
import type { Secret } from "../base/secret.ts";
import { decodeUtf8, encodeUtf8 } from "../base/utf8.ts";
import { keyText } from "./batch.ts";
import type { Key } from "./kv.ts";

/**
 * Rows that hold texts of users for a time: a head, which says whose the text is and until when it
 * is kept, and the text. Where `SECRETS_KEY` is set, the text is encrypted for its row, as secrets
 * are; the head is not.
 */
export interface KeptTexts {
  /** Returns the value of the row at `place`. */
  encode(place: Key, head: object, text: string): Uint8Array;
  /** Returns a row's text; null where no key of `SECRETS_KEY` decrypts it there. */
  textOf(place: Key, value: Uint8Array): string | null;
}

// In place of the line feed between the head and a text that is not encrypted.
const sealedMark = 0x00;
const lineFeed = 0x0a;
const algorithm = "aes-256-gcm";
const nonceBytes = 12;
const tagBytes = 16;

/**
 * Creates the encoding with keys of 32 bytes in base64: the first one encrypts, all of them
 * decrypt. Without any, texts are stored as they are. It does not wait: the text of a response is
 * known only inside the write that charges it.
 */
export function createKeptTexts(
  keys: readonly Secret[],
  randomBytes: (length: number) => Uint8Array<ArrayBuffer>,
): KeptTexts {
  const derived = keys.map(deriveKey);
  const [first] = derived;

  function seal(key: Uint8Array, place: Key, text: string): Uint8Array {
    const nonce = randomBytes(nonceBytes);
    const cipher = createCipheriv(algorithm, key, nonce).setAAD(encodeUtf8(keyText(place)));
    const sealed = cipher.update(encodeUtf8(text));
    cipher.final();
    return joined(nonce, sealed, cipher.getAuthTag());
  }

  return {
    encode(place, head, text) {
      const start = toBytes(head as Json);
      if (!first) return joined(start, Uint8Array.of(lineFeed), encodeUtf8(text));
      return joined(start, Uint8Array.of(sealedMark), seal(first, place, text));
    },
    textOf(place, value) {
      const at = endOfHead(value);
      const rest = value.subarray(at + 1);
      if (value[at] !== sealedMark) return decodeUtf8(rest);
      for (const key of derived) {
        const text = open(key, place, rest);
        if (text !== null) return text;
      }
      return null;
    },
  };
}

/** Returns the head of such a row. Throws for a value that is none. */
export function keptHead<Head>(value: Uint8Array): Head {
  return JSON.parse(decodeUtf8(value.subarray(0, endOfHead(value))) ?? "");
}

/**
 * Returns the end of a row's head: the position of the first of the two separators. JSON has
 * neither, since it escapes them in texts.
 */
function endOfHead(value: Uint8Array): number {
  const found = [lineFeed, sealedMark].map((mark) => value.indexOf(mark)).filter((at) => at >= 0);
  return Math.min(value.length, ...found);
}

function open(key: Uint8Array, place: Key, sealed: Uint8Array): string | null {
  if (sealed.length < nonceBytes + tagBytes) return null;
  try {
    const decipher = createDecipheriv(algorithm, key, sealed.subarray(0, nonceBytes))
      .setAAD(encodeUtf8(keyText(place)))
      .setAuthTag(sealed.subarray(-tagBytes));
    const text = decipher.update(sealed.subarray(nonceBytes, -tagBytes));
    // Throws where the key is another one, or the row.
    decipher.final();
    return decodeUtf8(text);
  } catch {
    return null;
  }
}

/** Derives a key that encrypts only texts: the keys of secrets encrypt far less. */
function deriveKey(key: Secret): Uint8Array {
  const raw = Uint8Array.fromBase64(key.reveal());
  return new Uint8Array(hkdfSync("sha256", raw, new Uint8Array(), "farebox kept texts", 32));
}

function joined(...parts: readonly Uint8Array[]): Uint8Array {
  const all = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

import { decodeTime, encodeTime, incrementBase32, ulid as newUlid } from "ulid";

/** What an id names; the prefix is part of the id. */
export type IdKind =
  | "pw"
  | "key"
  | "act"
  | "req"
  | "hold"
  | "batch"
  | "chatcmpl"
  | "evt"
  | "sub"
  | "dly"
  | "form"
  | "job"
  | "areq"
  | "con"
  | "per"
  | "aud"
  | "cat"
  | "prc"
  | "rql"
  | "alr"
  | "wml";

/** Generates ids `kind_ULID`, ordered by time within one process. */
export type MakeId = (kind: IdKind) => string;

/** Characters of an id's time. */
const timeChars = 10;

/**
 * Creates a generator of ids from a clock in ms and a random source in [0, 1).
 * https://github.com/ulid/spec: 48 bits of time, then 80 random bits that only count up within one
 * millisecond.
 */
export function createIds(now: () => number, random: () => number): MakeId {
  let lastAt = -1;
  let time = "";
  let bits = "";
  return (kind) => {
    const at = now();
    if (at > lastAt) {
      lastAt = at;
      time = encodeTime(at, timeChars);
      bits = newUlid(at, random).slice(timeChars);
    } else {
      bits = incrementBase32(bits);
    }
    return `${kind}_${time}${bits}`;
  };
}

/**
 * Returns an id that sorts before all others of that kind and millisecond, as the start of a
 * listing. No id is older than 1970.
 */
export function firstIdAt(kind: IdKind, ms: number): string {
  return `${kind}_${encodeTime(Math.max(0, ms), timeChars)}${"0".repeat(16)}`;
}

// Crockford's base 32: https://github.com/ulid/spec
const ulid = /^[0-9A-HJKMNP-TV-Z]{26}$/;

/** Whether a text is an id of that kind. */
export function isId(kind: IdKind, text: string): boolean {
  return text.startsWith(`${kind}_`) && ulid.test(text.slice(kind.length + 1));
}

/** Returns when an id was generated, in milliseconds since 1970. */
export function timeOfId(id: string): number {
  return decodeTime(id.slice(id.indexOf("_") + 1));
}

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/**
 * Encodes bytes as base62, with a length that only depends on theirs (43 characters for 32 bytes).
 */
export function toBase62(bytes: Uint8Array): string {
  let value = 0n;
  for (const byte of bytes) value = (value << 8n) | BigInt(byte);
  let text = "";
  const length = Math.ceil((bytes.length * 8) / Math.log2(62));
  for (let i = 0; i < length; i++) {
    text = base62.charAt(Number(value % 62n)) + text;
    value /= 62n;
  }
  return text;
}

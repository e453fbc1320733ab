import { decodeOwnUtf8, encodeUtf8 } from "./utf8.ts";

/** Any value that JSON can hold. */
export type Json = null | boolean | number | string | Json[] | JsonObject;
/** A JSON object. */
export type JsonObject = { [key: string]: Json };

/** Whether `value` is a JSON object: neither an array nor null. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) &&
    !rawJson.isRawJSON(value);
}

// https://tc39.es/proposal-json-parse-with-source/: not yet in TypeScript's library.
const rawJson = JSON as unknown as {
  isRawJSON(value: unknown): boolean;
  rawJSON(text: string): unknown;
};

// A number that a double cannot hold shows as many digits or an exponent. Most bodies have
// neither, and are parsed without a reviver.
const mayLoseDigits = /\d[\d.]{15,}|\d[eE][-+]?\d/;

/**
 * Parses JSON so that `JSON.stringify` gives every number back as it was written: one that a
 * double would change (a 64-bit seed, 1e400) is kept as its source text
 * (https://tc39.es/proposal-json-parse-with-source/). Throws SyntaxError.
 */
export function parseJson(text: string): Json {
  if (!mayLoseDigits.test(text)) return JSON.parse(text);
  const exact = (_key: string, value: unknown, context: { source?: string }): unknown => {
    if (typeof value !== "number" || context.source === undefined) return value;
    return String(value) === context.source ? value : keepSource(value, context.source);
  };
  return JSON.parse(text, exact as (key: string, value: unknown) => unknown);
}

/** Bounds of a JSON text that are found before it is parsed. */
export interface JsonBounds {
  /** Nesting levels: walking or writing the value needs that much stack. */
  depthMax: number;
  /** Values at all levels: walking the value costs a call for each. */
  valuesMax: number;
}

/** The bound that a JSON text exceeds first, or null. An empty object or array counts twice. */
export function boundPassed(
  text: string,
  { depthMax, valuesMax }: JsonBounds,
): keyof JsonBounds | null {
  let depth = 0;
  let values = 1;
  for (let at = 0; at < text.length; at++) {
    const char = text[at];
    if (char === '"') at = endOfString(text, at);
    else if (char === ",") {
      if (++values > valuesMax) return "valuesMax";
    } else if (char === "[" || char === "{") {
      values++;
      if (++depth > depthMax) return "depthMax";
    } else if (char === "]" || char === "}") depth--;
  }
  return null;
}

/** Whether the objects and arrays of a JSON text nest deeper than `max`. */
export function nestsDeeper(text: string, max: number): boolean {
  return boundPassed(text, { depthMax: max, valuesMax: Infinity }) !== null;
}

function endOfString(text: string, start: number): number {
  for (let end = start;;) {
    end = text.indexOf('"', end + 1);
    if (end < 0) return text.length;
    let escapes = 0;
    while (text[end - 1 - escapes] === "\\") escapes++;
    if (escapes % 2 === 0) return end;
  }
}

/** Below this a double has fewer than 15 digits. */
const smallestExact = 1e-290;

/**
 * A number in another notation than JavaScript's (1.0, 5e-1) stays a number if it is exact.
 */
function keepSource(value: number, source: string): unknown {
  const digits = source.replace(/[eE].*$/, "").replace(/\D/g, "");
  const isZero = !/[1-9]/.test(digits);
  const inRange = Number.isFinite(value) && Math.abs(value) > smallestExact;
  return isZero || (inRange && digits.length <= 15) ? value : rawJson.rawJSON(source);
}

/** JSON as UTF-8 bytes, the format of every stored record. */
export function toBytes(value: unknown): Uint8Array<ArrayBuffer> {
  return encodeUtf8(JSON.stringify(value));
}

/** Reads what `toBytes` wrote. The caller names the type that was written under the key. */
export function fromBytes<T>(bytes: Uint8Array): T {
  return JSON.parse(decodeOwnUtf8(bytes)) as T;
}

/** The same, with every number in its original notation: for data that callers gave us. */
export function fromBytesExactly<T>(bytes: Uint8Array): T {
  return fromTextExactly(decodeOwnUtf8(bytes));
}

/** The same for a decoded text. */
export function fromTextExactly<T>(text: string): T {
  return parseJson(text) as T;
}

/** JSON with the keys of every object sorted, so that equal values give equal text. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(sorted(value));
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isObject(value)) return value;
  const parts = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(parts.map(([key, part]) => [key, sorted(part)]));
}

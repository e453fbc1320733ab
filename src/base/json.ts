import { endOfString, exactNumbersMax, findExactNumbers } from "./exact_numbers.ts";
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

/**
 * A record's own member; undefined where it has none of this name. Names that others write may be
 * `constructor`, which every object inherits.
 */
export function ownMember<T>(record: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(record, name) ? record[name] : undefined;
}

/**
 * A value as text; "" for an object, a list and nothing. `String` throws for an object whose own
 * member is named `toString`, and for a number that is kept as its source.
 */
export function plainText(value: unknown): string {
  return typeof value === "object" || value === undefined ? "" : String(value);
}

/** A value as a number; NaN for an object, a list and nothing, for which `Number` may throw. */
export function plainNumber(value: unknown): number {
  return typeof value === "object" ? NaN : Number(value);
}

// https://tc39.es/proposal-json-parse-with-source/: not yet in TypeScript's library.
const rawJson = JSON as unknown as {
  isRawJSON(value: unknown): boolean;
  rawJSON(text: string): unknown;
};

/** Digits that a double may not hold, or an exponent of three digits. Most bodies have neither. */
const mayLoseDigits = /[\d.]{16}|\d[eE][-+]?\d{3}/g;
/** Digits of a number that is not a plain fraction, and may lose some as a double. */
const mayBeLarge = /[^\d.]\d{16}/;
const mayBeBeyondRange = /[eE][-+]?\d{3}/;

const longDigits = 16;
const longExponent = /\d[eE][-+]?\d{3}/;

/**
 * Whether the text has one of them. Of so many digits in a row, one stands at a multiple of their
 * number: only these places are looked at, which takes a tenth of the time of searching.
 */
function hasLongNumber(text: string): boolean {
  for (let at = longDigits - 1; at < text.length; at += longDigits) {
    if (!isDigitOrPoint(text.charCodeAt(at))) continue;
    let from = at;
    let to = at + 1;
    while (from > 0 && to - from < longDigits && isDigitOrPoint(text.charCodeAt(from - 1))) from--;
    while (to - from < longDigits && isDigitOrPoint(text.charCodeAt(to))) to++;
    if (to - from >= longDigits) return true;
  }
  return longExponent.test(text);
}

function isDigitOrPoint(code: number): boolean {
  return (code >= 0x30 && code <= 0x39) || code === 0x2e;
}

/** Whether a text has more such numbers than are kept, and all of them are plain fractions. */
function hasOnlyFractions(text: string): boolean {
  if (mayBeBeyondRange.test(text) || mayBeLarge.test(text)) return false;
  mayLoseDigits.lastIndex = 0;
  for (let found = 0; found <= exactNumbersMax; found++) {
    if (!mayLoseDigits.test(text)) return false;
  }
  return true;
}

/**
 * Parses JSON so that `JSON.stringify` gives every number back as it was written: one that a
 * double would change (a 64-bit seed, 1e400) is kept as its source text
 * (https://tc39.es/proposal-json-parse-with-source/). A reviver would cost a call for every value:
 * only these numbers are looked up instead, the first thousand. `onLost` is called when a further
 * one is changed. Throws SyntaxError.
 */
export function parseJson(text: string, onLost?: () => void): Json {
  const value: Json = JSON.parse(text);
  if (!hasLongNumber(text) || hasOnlyFractions(text)) return value;
  const { numbers, lost } = findExactNumbers(text);
  if (lost) onLost?.();
  const root: JsonObject = { value };
  for (const { path, source } of numbers) keepNumber(root, ["value", ...path], source);
  return root.value ?? null;
}

/** Puts a number's source in its place, unless a later member of the same name has replaced it. */
function keepNumber(root: JsonObject, path: readonly (string | number)[], source: string): void {
  let holder: unknown = root;
  for (const part of path.slice(0, -1)) {
    if (typeof holder !== "object" || holder === null || !Object.hasOwn(holder, part)) return;
    holder = Reflect.get(holder, part);
  }
  const name = path.at(-1);
  if (typeof holder !== "object" || holder === null || name === undefined) return;
  const number = Object.getOwnPropertyDescriptor(holder, name)?.value;
  if (!Object.is(number, Number(source)) || String(number) === source) return;
  const value = keepSource(number, source);
  if (value !== number) {
    const options = { value, writable: true, enumerable: true, configurable: true };
    Object.defineProperty(holder, name, options);
  }
}

/** Bounds of a JSON text that are found before it is parsed. */
interface JsonBounds {
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
  if (isSurelyWithin(text, { depthMax, valuesMax })) return null;
  let depth = 0;
  let values = 1;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    // Digits, which most of a large body may be.
    if (code > 0x2c && code < 0x5b) continue;
    if (code === 0x22) at = endOfString(text, at);
    else if (code === 0x2c) {
      if (++values > valuesMax) return "valuesMax";
    } else if (code === 0x5b || code === 0x7b) {
      values++;
      if (++depth > depthMax) return "depthMax";
    } else if (code === 0x5d || code === 0x7d) depth--;
  }
  return null;
}

/** Counts marks wherever they stand, which is much faster than to look where they stand. */
function isSurelyWithin(text: string, { depthMax, valuesMax }: JsonBounds): boolean {
  if (text.length < Math.min(depthMax, valuesMax)) return true;
  const opened = countMarks(text, "[", depthMax) + countMarks(text, "{", depthMax);
  if (opened > depthMax) return false;
  return valuesMax === Infinity || opened + countMarks(text, ",", valuesMax) < valuesMax;
}

/** Marks that are found one by one; where there are more, all characters are looked at. */
const searchedMarks = 1_000;

/** How often a character stands in a text; stops at more than `most`. */
function countMarks(text: string, mark: string, most: number): number {
  let count = 0;
  let at = text.indexOf(mark);
  while (at >= 0 && count < searchedMarks) {
    count++;
    at = text.indexOf(mark, at + 1);
  }
  if (at < 0) return count;
  const code = mark.charCodeAt(0);
  for (; at < text.length && count <= most; at++) if (text.charCodeAt(at) === code) count++;
  return count;
}

/** Whether the objects and arrays of a JSON text nest deeper than `max`. */
export function nestsDeeper(text: string, max: number): boolean {
  return boundPassed(text, { depthMax: max, valuesMax: Infinity }) !== null;
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

/**
 * Parses stored JSON and keeps the original notation of every number: for data that callers gave.
 */
export function fromBytesExactly<T>(bytes: Uint8Array): T {
  return fromTextExactly(decodeOwnUtf8(bytes));
}

/** Parses JSON text and keeps the original notation of every number. */
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

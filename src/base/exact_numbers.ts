/** A number in a JSON text that a double may not hold. */
interface ExactNumber {
  /** Keys and positions, from the outermost. */
  path: (string | number)[];
  source: string;
}

/** Most numbers of one text that are kept beyond the precision of a double. */
export const exactNumbersMax = 1_000;

/** A double holds every number with so few characters and no exponent. */
const exactChars = 15;

/**
 * Finds the numbers of a valid JSON text that a double may not hold, at most the first thousand.
 * `lost` tells whether it left out one that is no longer the same as a double: a large integer, or
 * one beyond the range. A fraction only loses digits that no double has.
 */
export function findExactNumbers(text: string): { numbers: ExactNumber[]; lost: boolean } {
  const numbers: ExactNumber[] = [];
  const place = new JsonPlace(text);
  const { length } = text;
  for (let at = 0; at < length; at++) {
    const code = text.charCodeAt(at);
    if (code === 0x22) {
      const end = endOfString(text, at);
      place.readString(at, end);
      at = end;
    } else if (code === 0x2d || (code >= 0x30 && code <= 0x39)) {
      const end = endOfNumber(text, at);
      if (mayExceedDouble(text, at, end)) {
        if (numbers.length < exactNumbersMax) {
          numbers.push({ path: place.path(), source: text.slice(at, end) });
        } else if (isChangedByDouble(text, at, end)) return { numbers, lost: true };
      }
      at = end - 1;
    } else if (code !== 0x20) place.readStructure(code);
  }
  return { numbers, lost: false };
}

/** Whether a number has more digits than a double, or an exponent of three digits. */
function mayExceedDouble(text: string, start: number, end: number): boolean {
  return end - start > exactChars || (end - start > 4 && exponentAt(text, start, end) < end - 3);
}

/** Whether it is a large integer, or beyond the range of a double. */
function isChangedByDouble(text: string, start: number, end: number): boolean {
  if (exponentAt(text, start, end) < end) return !Number.isFinite(Number(text.slice(start, end)));
  const point = text.indexOf(".", start);
  return point < 0 || point >= end;
}

/** The place of the exponent's letter; the number's end where it has none. */
function exponentAt(text: string, start: number, end: number): number {
  for (let at = end - 1; at > start; at--) {
    if ((text.charCodeAt(at) | 0x20) === 0x65) return at;
  }
  return end;
}

/** The place of the quote that ends the string which begins here. */
export function endOfString(text: string, start: number): number {
  for (let end = start;;) {
    end = text.indexOf('"', end + 1);
    if (end < 0) return text.length;
    let escapes = 0;
    while (text.charCodeAt(end - 1 - escapes) === 0x5c) escapes++;
    if (escapes % 2 === 0) return end;
  }
}

/** The place after a number: its characters are digits, signs, a point and an exponent. */
function endOfNumber(text: string, start: number): number {
  for (let end = start + 1;; end++) {
    const code = text.charCodeAt(end);
    if (code >= 0x30 && code <= 0x39) continue;
    const isPart = code === 0x2e || (code | 0x20) === 0x65 || code === 0x2b || code === 0x2d;
    if (!isPart) return end;
  }
}

/** Where a scan of a JSON text is: the keys and positions that lead there. */
class JsonPlace {
  readonly #text: string;
  #depth = 0;
  #isKeyNext = false;
  /** By depth: whether it is a list, the position in it, and where the current key stands. */
  readonly #isList: boolean[] = [];
  readonly #position: number[] = [];
  readonly #keyStart: number[] = [];
  readonly #keyEnd: number[] = [];

  constructor(text: string) {
    this.#text = text;
  }

  readString(start: number, end: number): void {
    if (!this.#isKeyNext) return;
    this.#keyStart[this.#depth] = start;
    this.#keyEnd[this.#depth] = end + 1;
    this.#isKeyNext = false;
  }

  readStructure(code: number): void {
    if (code === 0x2c) {
      if (this.#isList[this.#depth]) {
        this.#position[this.#depth] = (this.#position[this.#depth] ?? 0) + 1;
      } else this.#isKeyNext = true;
    } else if (code === 0x7b || code === 0x5b) {
      this.#depth++;
      this.#isList[this.#depth] = code === 0x5b;
      this.#position[this.#depth] = 0;
      this.#isKeyNext = code === 0x7b;
    } else if (code === 0x7d || code === 0x5d) {
      this.#depth--;
      this.#isKeyNext = false;
    }
  }

  path(): (string | number)[] {
    const path: (string | number)[] = [];
    for (let depth = 1; depth <= this.#depth; depth++) {
      const key = this.#text.slice(this.#keyStart[depth], this.#keyEnd[depth]);
      path.push(this.#isList[depth] ? this.#position[depth] ?? 0 : JSON.parse(key));
    }
    return path;
  }
}

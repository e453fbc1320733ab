import { isObject, type JsonObject, parseJson } from "../../base/json.ts";
import type { ResponseScanner, ServedBy } from "../../inference/format.ts";
import { servedBy } from "./usage.ts";

const capturedCharsMax = 16 * 1024;
const keyCharsMax = 256;
/** The depth of a choice: what is deeper names nothing. */
const outerDepth = 3;
const usageNames = new Set(["usage", "usageMetadata", "usage_metadata"]);
/** Members with a usage of their own: Groq's, and the message that begins Anthropic's streams. */
const usageHolders = new Set(["x_groq", "message"]);
const namedOnTop = new Set(["model", "service_tier"]);

const [quote, backslash, openBrace, closeBrace, openBracket, closeBracket, colon, comma] = [
  ...'"\\{}[]:,',
].map((char) => char.charCodeAt(0));

/**
 * Reads the usage, the model and the service tier from a JSON text of any length as it passes, in
 * memory that does not grow with it. Usage counts where `usageIn` looks for it; text that a model
 * wrote stands in strings, and counts nowhere.
 */
export class OpenAiScanner implements ResponseScanner {
  readonly usages: JsonObject[] = [];
  readonly #top: JsonObject = {};
  /** Open objects and arrays. */
  #depth = 0;
  /** The key of the member that is read, and whether it is in a list, at the outer depths. */
  #keys: string[] = [];
  #isList: boolean[] = [];
  #isKeyNext = false;
  #inString = false;
  #isEscaped = false;
  /** The text of a short string. */
  #string: string | null = null;
  /** The parts of a usage object, and the depth that it begins at. */
  #usage: { parts: string[]; chars: number; depth: number } | null = null;

  get served(): ServedBy {
    return servedBy(this.#top);
  }

  push(text: string): void {
    const piece = new ScannedPiece(text);
    let usageFrom = 0;
    for (let at = 0; at < text.length; at++) {
      if (this.#inString) {
        at = this.#scanString(piece, at);
        continue;
      }
      const depth = this.#depth;
      const isUsage = this.#scanStructure(text.charCodeAt(at));
      if (isUsage) {
        this.#usage = { parts: [], chars: 0, depth };
        usageFrom = at;
      } else if (this.#usage && this.#depth === this.#usage.depth) {
        this.#capture(text.slice(usageFrom, at + 1));
        this.#endUsage();
      }
    }
    if (this.#usage) this.#capture(text.slice(usageFrom));
  }

  /** Goes on within a string; returns the place of its last character in this piece. */
  #scanString(piece: ScannedPiece, from: number): number {
    if (this.#isEscaped) {
      this.#isEscaped = false;
      this.#addToString(piece.text.slice(from, from + 1));
      return from;
    }
    const end = piece.nextQuoteOrEscape(from);
    this.#addToString(piece.text.slice(from, end));
    if (end === piece.text.length) return end;
    if (piece.text.charCodeAt(end) === backslash) this.#isEscaped = true;
    else this.#endString();
    return end;
  }

  #addToString(part: string): void {
    if (this.#string === null || part === "") return;
    const isShort = this.#string.length + part.length <= keyCharsMax;
    this.#string = isShort ? this.#string + part : null;
  }

  #endString(): void {
    this.#inString = false;
    if (this.#isKeyNext) {
      if (this.#depth <= outerDepth) this.#keys[this.#depth] = this.#string ?? "";
      this.#isKeyNext = false;
      return;
    }
    const key = this.#keys[1] ?? "";
    if (this.#depth === 1 && this.#string && namedOnTop.has(key)) this.#top[key] = this.#string;
  }

  /** Takes a character between strings. Returns whether a usage object begins with it. */
  #scanStructure(code: number): boolean {
    switch (code) {
      case quote:
        this.#inString = true;
        this.#string = this.#depth <= outerDepth ? "" : null;
        return false;
      case openBrace: {
        const isUsage = this.#usage === null && this.#isUsageHere();
        this.#open(false);
        return isUsage;
      }
      case openBracket:
        // A list around everything, as Google's endpoint sends it, does not count.
        if (this.#depth > 0) this.#open(true);
        return false;
      case closeBrace:
      case closeBracket:
        if (this.#depth > 0) this.#depth--;
        this.#isKeyNext = false;
        return false;
      case colon:
        this.#isKeyNext = false;
        return false;
      case comma:
        this.#isKeyNext = !this.#isList[this.#depth];
        return false;
      default:
        return false;
    }
  }

  #isUsageHere(): boolean {
    const [, first = "", second = "", third = ""] = this.#keys;
    if (this.#depth === 1) return usageNames.has(first);
    if (this.#depth === 2) return usageHolders.has(first) && second === "usage";
    const isInChoice = first === "choices" && this.#isList[2] === true;
    return this.#depth === 3 && isInChoice && third === "usage";
  }

  #open(isList: boolean): void {
    this.#depth++;
    this.#isKeyNext = !isList;
    if (this.#depth > outerDepth) return;
    this.#keys[this.#depth] = "";
    this.#isList[this.#depth] = isList;
  }

  #capture(part: string): void {
    const usage = this.#usage;
    if (!usage) return;
    usage.chars += part.length;
    if (usage.chars <= capturedCharsMax) usage.parts.push(part);
    else usage.parts = [];
  }

  #endUsage(): void {
    const usage = this.#usage;
    this.#usage = null;
    const parsed = usage && parsedObject(usage.parts.join(""));
    if (parsed) this.usages.push(parsed);
  }
}

/** A piece of text in which the next quote or backslash is found without reading it twice. */
class ScannedPiece {
  readonly text: string;
  #quote = -1;
  #escape = -1;

  constructor(text: string) {
    this.text = text;
  }

  /** The place of the next quote or backslash; the length of the text where there is none. */
  nextQuoteOrEscape(from: number): number {
    if (this.#quote < from) this.#quote = placeOf(this.text, '"', from);
    if (this.#escape < from) this.#escape = placeOf(this.text, "\\", from);
    return Math.min(this.#quote, this.#escape);
  }
}

function placeOf(text: string, char: string, from: number): number {
  const at = text.indexOf(char, from);
  return at < 0 ? text.length : at;
}

function parsedObject(text: string): JsonObject | null {
  try {
    const value = parseJson(text);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

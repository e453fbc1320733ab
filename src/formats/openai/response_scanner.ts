import { isObject, type JsonObject, parseJson } from "../../base/json.ts";
import type { ResponseScanner, ServedBy } from "../../inference/upstream_response.ts";
import { servedBy } from "./usage.ts";

const capturedCharsMax = 64 * 1024;
const keyCharsMax = 256;
/** How deep members are scanned. Deeper ones name nothing. */
const outerDepth = 4;
const usageNames = new Set(["usage", "usageMetadata", "usage_metadata", "meta"]);
/** Members with a usage of their own: Groq's, and the message that begins Anthropic's streams. */
const usageHolders = new Set(["x_groq", "message"]);
const namedOnTop = new Set(["model", "service_tier"]);

const [quote, backslash, openBrace, closeBrace, openBracket, closeBracket, colon, comma] = [
  ...'"\\{}[]:,',
].map((char) => char.charCodeAt(0));

/** The place of a value in a JSON text. */
export interface ScannedPlace {
  /** Objects and lists around it. */
  depth: number;
  /** The key at each depth, from 1. */
  keys: readonly string[];
  /** Whether a list is open at each depth, from 1. */
  isList: readonly boolean[];
}

/** The values that are read from a JSON text. */
interface ScannedValues {
  /** Whether the object that begins here is given to `onObject`. */
  isWanted(place: ScannedPlace): boolean;
  onObject(value: JsonObject, place: ScannedPlace): void;
  /** A string of at most 256 characters. */
  onString(text: string, place: ScannedPlace): void;
  /** A key at one of the outer depths; the place has it already. */
  onKey?(place: ScannedPlace): void;
}

/**
 * Reads the usage, the model and the service tier of a response with choices. Usage counts where
 * `usageIn` looks for it.
 */
export class OpenAiScanner implements ResponseScanner {
  readonly usages: JsonObject[] = [];
  hasImage = false;
  callsTool = false;
  /** Why a choice has ended; null where none has. */
  finishReason: string | null = null;
  /** The `stop_reason` of a delta of Anthropic's; null where it has none. */
  stopReason: string | null = null;
  readonly #top: JsonObject = {};
  readonly #scanner = new JsonScanner({
    isWanted: isUsageOfChoices,
    onObject: (usage, { keys: [, first] }) => {
      if (first !== "meta" || isObject(usage.billed_units)) this.usages.push(usage);
    },
    onString: (text, place) => {
      const { depth, keys: [, key = ""] } = place;
      if (depth === 1 && text !== "" && namedOnTop.has(key)) this.#top[key] = text;
      if (depth === 2 && key === "delta" && place.keys[2] === "stop_reason") this.stopReason = text;
      if (memberOfChoice(place, 3) === "finish_reason") this.finishReason = text;
    },
    onKey: (place) => {
      const name = memberOfChoice(place, 4);
      this.hasImage ||= name === "images";
      this.callsTool ||= name === "tool_calls";
    },
  });

  push(text: string): void {
    this.#scanner.push(text);
  }

  get served(): ServedBy {
    return servedBy(this.#top);
  }
}

/** A member of a choice, or of its message at depth 4; null for what is elsewhere. */
function memberOfChoice({ depth, keys, isList }: ScannedPlace, at: 3 | 4): string | null {
  if (depth !== at || keys[1] !== "choices" || isList[2] !== true) return null;
  const isOfChoice = at === 3 || keys[3] === "delta" || keys[3] === "message";
  return isOfChoice ? keys[at] ?? null : null;
}

function isUsageOfChoices({ depth, keys, isList }: ScannedPlace): boolean {
  const [, first = "", second = "", third = ""] = keys;
  if (depth === 1) return usageNames.has(first);
  if (depth === 2) return usageHolders.has(first) && second === "usage";
  return depth === 3 && first === "choices" && isList[2] === true && third === "usage";
}

/**
 * Reads small values from a JSON text of any length as it passes, in memory that does not grow with
 * it. Text that a model wrote stands in strings, and is taken for nothing else.
 */
export class JsonScanner {
  readonly #values: ScannedValues;
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
  /** The parts of a wanted object, and the depth that it begins at. */
  #wanted: { parts: string[]; chars: number; depth: number } | null = null;

  constructor(values: ScannedValues) {
    this.#values = values;
  }

  get #place(): ScannedPlace {
    return { depth: this.#depth, keys: this.#keys, isList: this.#isList };
  }

  push(text: string): void {
    const piece = new ScannedPiece(text);
    let wantedFrom = 0;
    for (let at = 0; at < text.length; at++) {
      if (this.#inString) {
        at = this.#scanString(piece, at);
        continue;
      }
      const depth = this.#depth;
      const isWanted = this.#scanStructure(text.charCodeAt(at));
      if (isWanted) {
        this.#wanted = { parts: [], chars: 0, depth };
        wantedFrom = at;
      } else if (this.#wanted && this.#depth === this.#wanted.depth) {
        this.#capture(text.slice(wantedFrom, at + 1));
        this.#endWanted();
      }
    }
    if (this.#wanted) this.#capture(text.slice(wantedFrom));
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
      this.#isKeyNext = false;
      if (this.#depth > outerDepth) return;
      this.#keys[this.#depth] = this.#string ?? "";
      if (this.#wanted === null) this.#values.onKey?.(this.#place);
      return;
    }
    const isWithin = this.#wanted !== null || this.#depth > outerDepth;
    if (this.#string !== null && !isWithin) this.#values.onString(this.#string, this.#place);
  }

  /** Takes a character between strings. Returns whether a wanted object begins with it. */
  #scanStructure(code: number): boolean {
    switch (code) {
      case quote:
        this.#inString = true;
        this.#string = this.#depth <= outerDepth ? "" : null;
        return false;
      case openBrace: {
        const isWanted = this.#wanted === null && this.#depth <= outerDepth &&
          this.#values.isWanted(this.#place);
        this.#open(false);
        return isWanted;
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

  #open(isList: boolean): void {
    this.#depth++;
    this.#isKeyNext = !isList;
    if (this.#depth > outerDepth) return;
    this.#keys[this.#depth] = "";
    this.#isList[this.#depth] = isList;
  }

  #capture(part: string): void {
    const wanted = this.#wanted;
    if (!wanted) return;
    wanted.chars += part.length;
    if (wanted.chars <= capturedCharsMax) wanted.parts.push(part);
    else wanted.parts = [];
  }

  #endWanted(): void {
    const wanted = this.#wanted;
    this.#wanted = null;
    const parsed = wanted && parsedObject(wanted.parts.join(""));
    if (parsed) this.#values.onObject(parsed, this.#place);
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

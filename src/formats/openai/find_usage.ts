import { isObject, type JsonObject, parseJson } from "../../base/json.ts";

const usageCharsMax = 16 * 1024;

/** The usage in parts of a JSON text, the later ones first. */
export function usageInParts(parts: readonly string[]): JsonObject | undefined {
  for (const part of parts.toReversed()) {
    const usage = usageInPart(part);
    if (usage) return usage;
  }
  return undefined;
}

/**
 * The last `usage` object in a part of a JSON text that is not complete. Quotes within a string are
 * escaped, so that text which a model wrote cannot look like one.
 */
function usageInPart(text: string): JsonObject | undefined {
  for (let end = text.length; end > 0;) {
    const at = text.lastIndexOf('"usage"', end - 1);
    if (at < 0) return undefined;
    end = at;
    if (text[at - 1] === "\\") continue;
    const start = /^\s*:\s*(?=\{)/.exec(text.slice(at + 7, at + 71));
    const found = start && objectAt(text, at + 7 + start[0].length);
    if (found) return found;
  }
  return undefined;
}

/** The object that begins at this place; null where it is cut off, too long or not JSON. */
function objectAt(text: string, from: number): JsonObject | null {
  let depth = 0;
  let isQuoted = false;
  const last = Math.min(text.length, from + usageCharsMax);
  for (let at = from; at < last; at++) {
    const char = text[at];
    if (isQuoted && char === "\\") at++;
    else if (char === '"') isQuoted = !isQuoted;
    else if (!isQuoted && char === "{") depth++;
    else if (!isQuoted && char === "}" && --depth === 0) {
      return parsedObject(text.slice(from, at + 1));
    }
  }
  return null;
}

function parsedObject(text: string): JsonObject | null {
  try {
    const value = parseJson(text);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

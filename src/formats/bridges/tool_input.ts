import { isObject, type Json, type JsonObject, nestsDeeper, parseJson } from "../../base/json.ts";
import { jsonDepthMax } from "../../base/limits.ts";

/**
 * The arguments of a tool call as an object; no text at all is an empty object. Null for a text
 * that is not a JSON object, or that nests too deep to be written again.
 */
export function parsedArguments(text: string): JsonObject | null {
  if (text.trim() === "") return {};
  if (nestsDeeper(text, jsonDepthMax)) return null;
  let value: Json;
  try {
    value = parseJson(text);
  } catch {
    return null;
  }
  return isObject(value) ? value : null;
}

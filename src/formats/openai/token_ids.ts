import type { Json } from "../../base/json.ts";

/** Whether a value is a list of token ids: whole numbers of at least zero. */
export function isTokenIds(value: unknown): value is number[] {
  return Array.isArray(value) &&
    value.every((item) => Number.isSafeInteger(item) && Number(item) >= 0);
}

/** Whether a value is a list of such lists. */
export function isListOfTokens(value: unknown): value is number[][] {
  return Array.isArray(value) && value.every(isTokenIds);
}

/** The inputs in a text, a list of texts, a list of token ids, or a list of those. */
export function inputsIn(value: Json | undefined): (string | Json[])[] {
  if (typeof value === "string") return [value];
  if (!Array.isArray(value)) return [];
  if (value.every((item) => typeof item === "number")) return value.length > 0 ? [value] : [];
  return value.flatMap((item) => (typeof item === "string" || Array.isArray(item) ? [item] : []));
}

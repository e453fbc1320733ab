import type { Json } from "../../base/json.ts";

/** Whether a value is a list of token ids: whole numbers of at least zero. */
export function isTokenIds(value: unknown): value is number[] {
  if (!Array.isArray(value)) return false;
  // Lists are long: a call for each item would take several times as long.
  for (const item of value) if (!Number.isSafeInteger(item) || item < 0) return false;
  return true;
}

/** Whether a value is a list of such lists. */
export function isListOfTokens(value: unknown): value is number[][] {
  return Array.isArray(value) && value.every(isTokenIds);
}

/** The inputs in a text, a list of texts, a list of token ids, or a list of those. */
export function inputsIn(value: Json | undefined): (string | Json[])[] {
  if (typeof value === "string") return [value];
  if (!Array.isArray(value)) return [];
  if (hasOnlyNumbers(value)) return value.length > 0 ? [value] : [];
  return value.flatMap((item) => (typeof item === "string" || Array.isArray(item) ? [item] : []));
}

function hasOnlyNumbers(list: readonly Json[]): boolean {
  for (const item of list) if (typeof item !== "number") return false;
  return true;
}

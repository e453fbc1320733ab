import { isObject, type Json, type JsonObject } from "../base/json.ts";
import { inputTokensOf, type TokenCounts } from "../base/token_classes.ts";
import { readUsage } from "./usage.ts";
import {
  completionNames,
  firstCount,
  promptFields,
  promptNames,
  totalNames,
} from "./usage_fields.ts";

/** Whether a report has no count above zero of its prompt, or none of its response. */
export function lacksHalf(raw: JsonObject): boolean {
  return !firstCount(raw, promptNames) || !firstCount(raw, completionNames);
}

/**
 * Two reports of one response as one. Each event of a stream may report a part of what the response
 * has used, and repeat the rest or say zero: of a count, the highest holds. The fields that divide
 * the prompt belong together: a later report of a whole prompt, no shorter than the one before,
 * replaces all of them.
 */
export function joinReports(before: JsonObject, next: JsonObject): JsonObject {
  const ofPrompt = promptJoin(before, next);
  const joined: JsonObject = {};
  for (const [name, value] of Object.entries(before)) {
    if (ofPrompt !== "replace" || !promptFields.has(name)) joined[name] = value;
  }
  for (const [name, value] of Object.entries(next)) {
    const known = joined[name];
    if (value === null && known !== undefined) continue;
    if (!promptFields.has(name)) joined[name] = larger(known, value);
    else if (ofPrompt !== "keep" || known === undefined) joined[name] = latest(known, value);
  }
  withoutOldTotal(joined, next);
  return joined;
}

/** What becomes of the first report's prompt. */
type PromptJoin = "keep" | "replace" | "complete";

function promptJoin(before: JsonObject, next: JsonObject): PromptJoin {
  const [known, later] = [promptOf(before), promptOf(next)];
  if (later === null) return "keep";
  if (known === null) return "replace";
  if (firstCount(next, promptNames) === null || isSamePrompt(known, later)) return "complete";
  const [size, laterSize] = [inputTokensOf(known), inputTokensOf(later)];
  if (size !== laterSize) return size > laterSize ? "keep" : "replace";
  return later.uncachedInput > known.uncachedInput ? "keep" : "replace";
}

function promptOf(raw: JsonObject): TokenCounts | null {
  const counts = readUsage(raw)?.counts;
  return counts && inputTokensOf(counts) > 0 ? counts : null;
}

/** Whether two reports divide one prompt alike, as far as both divide it. */
function isSamePrompt(one: TokenCounts, other: TokenCounts): boolean {
  const written = ({ cacheWrite, cacheWriteHour }: TokenCounts) => cacheWrite + cacheWriteHour;
  return inputTokensOf(one) === inputTokensOf(other) && written(one) === written(other) &&
    one.cachedInput === other.cachedInput;
}

/** Of two values of a field, the larger number; of objects, each member's. */
function larger(known: Json | undefined, value: Json): Json {
  if (typeof known === "number" && typeof value === "number") return Math.max(known, value);
  if (!isObject(known) || !isObject(value)) return value;
  const joined = { ...known };
  for (const [name, member] of Object.entries(value)) {
    if (member !== null || known[name] === undefined) joined[name] = larger(known[name], member);
  }
  return joined;
}

/** The later of two values; of objects, the larger of each member. */
function latest(known: Json | undefined, value: Json): Json {
  return isObject(known) ? larger(known, value) : value;
}

/** A total of the first report that is less than both halves together says nothing any more. */
function withoutOldTotal(joined: JsonObject, next: JsonObject): void {
  const total = firstCount(joined, totalNames);
  if (total === null || firstCount(next, totalNames)) return;
  const halves = (firstCount(joined, promptNames) ?? 0) +
    (firstCount(joined, completionNames) ?? 0);
  if (total < halves) { for (const name of totalNames) delete joined[name]; }
}

import { type ApiError, badRequest } from "../../base/errors.ts";
import { isObject, type Json, type JsonObject } from "../../base/json.ts";
import { isSet } from "../openai/fields.ts";

/**
 * How a bridge treats a field: `carried` has an equivalent in the other format, `dropped` has no
 * effect on the response there, and a function tells whether a value has no effect.
 */
type FieldRule = "carried" | "dropped" | ((value: Json) => boolean);

/** The rules of an object's fields. A field without a rule is refused. */
type FieldRules = ReadonlyMap<string, FieldRule>;

/** Returns rules from lists of names, and a function for each of the other fields. */
export function fieldRules(
  { carried, dropped = "", unless = {} }: {
    carried: string;
    dropped?: string;
    unless?: Record<string, (value: Json) => boolean>;
  },
): FieldRules {
  const named = (names: string, rule: FieldRule) =>
    names.split(" ").filter(Boolean).map((name): [string, FieldRule] => [name, rule]);
  return new Map([
    ...named(carried, "carried"),
    ...named(dropped, "dropped"),
    ...Object.entries<FieldRule>(unless),
  ]);
}

/** A rule for a field that has no effect with one of these values. */
export function isOneOf(...values: readonly Json[]): (value: Json) => boolean {
  return (value) => values.includes(value);
}

/** A rule for a field that has no effect without any member. */
export function isEmpty(value: Json): boolean {
  return Array.isArray(value) ? value.length === 0 : isObject(value) && !hasMember(value);
}

function hasMember(value: JsonObject): boolean {
  for (const _ in value) return true;
  return false;
}

/** Throws 400 for a field that the other format cannot carry; `at` is the path before its name. */
export function requireCarried(value: JsonObject, rules: FieldRules, at = ""): void {
  for (const name in value) {
    const set = value[name];
    if (set === undefined || !isSet(set)) continue;
    const rule = rules.get(name);
    if (rule === "carried" || rule === "dropped" || rule?.(set)) continue;
    throw notCarried(`${at}${name.slice(0, 64)}`);
  }
}

/** 400: the other format has nothing for the field, or not for its value. */
export function notCarried(param: string): ApiError {
  return badRequest(
    param,
    `'${param}' is not supported with this model: its upstream speaks another format, which has ` +
      "no equivalent.",
    "unsupported_parameter",
  );
}

/** Returns an object. Throws 400 for anything else. */
export function requireObjectIn(value: Json | undefined, param: string): JsonObject {
  if (isObject(value)) return value;
  throw badRequest(param, `'${param}' must be an object.`, "invalid_type");
}

/** Returns a string. Throws 400 for anything else. */
export function requireString(value: Json | undefined, param: string): string {
  if (typeof value === "string") return value;
  throw badRequest(param, `'${param}' must be a string.`, "invalid_type");
}

/** Returns a list; an absent one is empty. Throws 400 for anything else. */
export function requireList(value: Json | undefined, param: string): Json[] {
  if (value === undefined || value === null) return [];
  if (Array.isArray(value)) return value;
  throw badRequest(param, `'${param}' must be an array.`, "invalid_type");
}

import { isObject, type Json } from "../../base/json.ts";

/** Every string inside a value. */
export function* textsIn(value: Json | undefined): Generator<string> {
  if (typeof value === "string") yield value;
  else if (Array.isArray(value)) { for (const item of value) yield* textsIn(item); }
  else if (isObject(value)) yield* textsIn(Object.values(value));
}

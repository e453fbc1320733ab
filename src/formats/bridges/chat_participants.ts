import { badRequest } from "../../base/errors.ts";
import { isObject, type Json, type JsonObject } from "../../base/json.ts";

/** The names under which each role of a chat speaks; one without a name is `undefined`. */
type Participants = ReadonlyMap<Json | undefined, ReadonlySet<Json | undefined>>;

/** Who speaks in a chat. */
export function participants(messages: readonly Json[]): Participants {
  const names = new Map<Json | undefined, Set<Json | undefined>>();
  for (const message of messages) {
    if (!isObject(message)) continue;
    const { role, name } = message;
    const known = names.get(role) ?? new Set();
    names.set(role, known.add(name ?? undefined));
  }
  return names;
}

/**
 * The name to write before what a message says, where several speak in its role and the other
 * format has no field for it. Null where its role is enough, as that of the model or a tool is.
 */
export function spokenName({ role, name }: JsonObject, namesOf: Participants): string | null {
  const isPlain = role === "assistant" || role === "tool" || role === "function";
  if (isPlain || typeof name !== "string") return null;
  return (namesOf.get(role)?.size ?? 0) < 2 ? null : name;
}

/** The id of an older call, which has none: `index` is the place of its message. */
export function legacyCallId(index: number): string {
  return `call_${index}`;
}

/** The id of the older call whose result is the message at `index`. Throws 400 for no such call. */
export function legacyCallIdBefore(messages: readonly Json[], index: number): string {
  const result = messages[index];
  const name = isObject(result) ? result.name : undefined;
  const called = messages.slice(0, index).findLastIndex((message) =>
    isObject(message) && isObject(message.function_call) && message.function_call.name === name
  );
  if (called >= 0) return legacyCallId(called);
  const at = `messages.${index}.name`;
  throw badRequest(at, `'${at}' names a function that was not called before.`);
}

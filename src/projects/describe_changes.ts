import {
  fromBytes,
  isObject,
  type Json,
  type JsonObject,
  ownMember,
  toBytes,
} from "../base/json.ts";
import { utf8Length } from "../base/utf8.ts";
import type { Project } from "./schema.ts";
import { secretNames } from "./stored_secret.ts";

/** A change of one value; null is none. */
type Move = { from: Json; to: Json };

/** The most that one audit row describes, in bytes of JSON. */
const partBytesMax = 24 * 1024;

/** The settings that an update has changed. */
interface DescribedChanges {
  /** The top-level settings whose value has changed. */
  fields: string[];
  /**
   * For the audit trail: the old and the new value of every setting that has changed, by its path,
   * such as `pricing.models.gpt-4o.input`. Of secrets it says only that they have changed. A large
   * update has several parts, each for a row of its own; one that changes nothing has none.
   */
  parts: JsonObject[];
}

/** Compares the given fields of a project before and after an update. */
export function describeChanges(
  before: Project,
  after: Project,
  given: readonly string[],
): DescribedChanges {
  const [olds, news] = [jsonOf(before), jsonOf(after)];
  const moved = given.map((field) =>
    [field, [...movesBetween(field, valueAt(olds, field), valueAt(news, field))]] as const
  ).filter(([, moves]) => moves.length > 0);
  const fields = moved.map(([field]) => field);
  const parts = partsOf(moved.flatMap(([, moves]) => moves));
  return {
    fields,
    parts: parts.map((part, at) => ({
      fields,
      ...(parts.length > 1 ? { part: `${at + 1} of ${parts.length}` } : {}),
      ...Object.fromEntries(part),
    })),
  };
}

function partsOf(moves: readonly [string, Move][]): [string, Move][][] {
  const parts: [string, Move][][] = [];
  let bytes = Infinity;
  for (const move of moves) {
    const size = utf8Length(JSON.stringify(move));
    if (bytes + size > partBytesMax) {
      parts.push([]);
      bytes = 0;
    }
    parts.at(-1)?.push(move);
    bytes += size;
  }
  return parts;
}

function* movesBetween(path: string, from: Json, to: Json): Generator<[string, Move]> {
  if (JSON.stringify(from) === JSON.stringify(to)) return;
  if (secretNames.has(path.slice(path.lastIndexOf(".") + 1))) {
    const both = from !== null && to !== null;
    yield [path, { from: from && "a secret", to: to && (both ? "another secret" : "a secret") }];
  } else if (hasMembers(from) || hasMembers(to)) {
    const [olds, news] = [membersOf(from), membersOf(to)];
    const names = new Set([...Object.keys(olds), ...Object.keys(news)]);
    if (names.size === 0) yield [path, { from, to }];
    for (const name of names) {
      yield* movesBetween(
        `${path}.${name}`,
        ownMember(olds, name) ?? null,
        ownMember(news, name) ?? null,
      );
    }
  } else yield [path, { from, to }];
}

/** Whether a value is compared member by member. A list of simple values is one value. */
function hasMembers(value: Json): boolean {
  return isObject(value) || (Array.isArray(value) && value.some(isObject));
}

function membersOf(value: Json): JsonObject {
  if (isObject(value)) return value;
  return Array.isArray(value) ? Object.fromEntries(Object.entries(value)) : {};
}

function jsonOf(project: Project): JsonObject {
  return fromBytes<JsonObject>(toBytes(project));
}

/** The value of a field, or of a field below `pricing`; null where it is not set. */
function valueAt(project: JsonObject, field: string): Json {
  let at: Json = project;
  for (const part of field.split(".")) at = isObject(at) ? ownMember(at, part) ?? null : null;
  return at;
}

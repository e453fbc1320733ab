import { fromBytes } from "../base/json.ts";
import { encodeUtf8, utf8Length } from "../base/utf8.ts";
import { keyText } from "./batch.ts";
import type { Increment, Key, Write } from "./kv.ts";

/** Sums by field; each a vector of whole numbers, such as a count and an amount in 1e-9 units. */
export type Sum = Map<string, readonly bigint[]>;

/** Sums that are kept as rows: how the store can tell totals without reading what they are of. */
export interface Sums {
  /** The rows that hold after these additions, and what to call once they have landed. */
  after(additions: readonly Increment[]): { sets: Write["sets"]; committed(): void };
  /** Nobody knows whether the rows for these additions landed: they are not written to again. */
  abandon(additions: readonly Increment[]): void;
}

/** One row of a sum: nobody else writes it, so no write has to check it. */
interface Shard {
  key: Key;
  fields: Sum;
}

/** Most fields of a row with the same first part (`model:…`); what comes later is `model:other`. */
const fieldsMax = 24;
/** Longest name of a field, in bytes of its JSON; longer ones are `…:other` too. */
const fieldBytesMax = 128;
/**
 * Rows that are remembered; beyond that all are forgotten, and begun anew when they are added to.
 */
const shardsMax = 10_000;

/**
 * Adds up in memory and writes whole rows with the batches that are written anyway. A row belongs
 * to the process that made it, and to its memory: when that is gone, by a crash or after a write of
 * which nobody knows, another row is begun, and whoever reads adds the rows together.
 */
export function createSums(newShard: () => string): Sums {
  const shards = new Map<string, Shard>();

  function shardOf(key: Key): Shard {
    const name = keyText(key);
    const known = shards.get(name);
    if (known) return known;
    if (shards.size >= shardsMax) shards.clear();
    const made = { key: [...key, newShard()], fields: new Map() };
    shards.set(name, made);
    return made;
  }

  return {
    after(additions) {
      const changed = new Map<Shard, Sum>();
      for (const { key, field, values } of additions) {
        const shard = shardOf(key);
        let fields = changed.get(shard);
        if (!fields) changed.set(shard, fields = new Map(shard.fields));
        const name = boundedField(fields, field);
        const before = fields.get(name);
        fields.set(name, before ? added(before, values) : values);
      }
      return {
        sets: [...changed].map(([{ key }, fields]) => ({ key, value: encode(fields) })),
        committed: () => changed.forEach((fields, shard) => void (shard.fields = fields)),
      };
    },
    abandon(additions) {
      for (const { key } of additions) shards.delete(keyText(key));
    },
  };
}

/** The sum of two vectors as a new one; what is missing from the shorter one counts as zero. */
export function added(one: readonly bigint[], other: readonly bigint[]): bigint[] {
  const [longer, shorter] = one.length < other.length ? [other, one] : [one, other];
  return longer.map((value, at) => value + (shorter[at] ?? 0n));
}

/** Reads a row of a sum. */
export function decodeSum(bytes: Uint8Array): Sum {
  const fields = Object.entries(fromBytes<Record<string, string[]>>(bytes));
  return new Map(fields.map(([field, values]) => [field, values.map(BigInt)]));
}

/** A row is small, however many names callers think of. */
function boundedField(fields: Sum, field: string): string {
  if (fields.has(field)) return field;
  const group = field.slice(0, field.indexOf(":") + 1);
  // Of names that callers do not think of, such as "deposit", there are few.
  if (group === "") return field;
  let alike = 0;
  for (const name of fields.keys()) if (name.startsWith(group)) alike++;
  const fits = alike < fieldsMax && utf8Length(JSON.stringify(field)) <= fieldBytesMax;
  return fits ? field : `${group}other`;
}

function encode(sum: Sum): Uint8Array {
  const fields = [...sum].map(([field, values]) =>
    `${JSON.stringify(field)}:[${values.map((value) => `"${value}"`).join(",")}]`
  );
  return encodeUtf8(`{${fields.join(",")}}`);
}

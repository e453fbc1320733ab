import { fromBytes } from "../base/json.ts";
import { encodeUtf8, utf8Length } from "../base/utf8.ts";
import { keyText } from "./batch.ts";
import type { Increment, Key, Write } from "./kv.ts";

/** Sums by field; each a vector of whole numbers, such as a count and an amount in 1e-9 units. */
export type Sum = Map<string, readonly bigint[]>;

/** Sums stored as rows: totals are available without reading the records that they count. */
interface Sums {
  /** Returns the rows after these increments, and what to call once they are committed. */
  after(additions: readonly Increment[]): { sets: Write["sets"]; committed(): void };
  /** The outcome of the write is unknown: its rows are not written to again. */
  abandon(additions: readonly Increment[]): void;
}

/** One row of a sum. No other process writes it, so no write has to check it. */
interface Shard {
  key: Key;
  fields: Map<string, Field>;
}

/** A field of a row, which is never changed: an addition makes another one. */
interface Field {
  values: readonly bigint[];
  /** The field as it is stored: most fields of a row stay the same from write to write. */
  text: string;
}

/**
 * The most fields of a row with the same first part (`model:…`); further ones are counted as
 * `model:other`.
 */
const fieldsMax = 24;
/** The longest name of a field, in bytes of its JSON; longer ones are counted as `…:other`. */
const fieldBytesMax = 128;
/**
 * How many rows are kept in memory; beyond that all are dropped, and later increments start new
 * rows.
 */
const shardsMax = 10_000;

/**
 * Adds up in memory, and writes whole rows with batches that are written anyway. A row belongs to
 * the process that created it, and to its memory: when that is lost, by a crash or after a write of
 * unknown outcome, another row is started, and readers add the rows together.
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

  /** What is added to each field of each row. */
  function gathered(additions: readonly Increment[]): Map<Shard, Map<string, bigint[]>> {
    const sums = new Map<Shard, Map<string, bigint[]>>();
    for (const { key, field, values } of additions) {
      const shard = shardOf(key);
      let fields = sums.get(shard);
      if (!fields) sums.set(shard, fields = new Map());
      const before = fields.get(field);
      if (before) addTo(before, values);
      else fields.set(field, [...values]);
    }
    return sums;
  }

  return {
    after(additions) {
      const changed = new Map<Shard, Map<string, Field>>();
      for (const [shard, sums] of gathered(additions)) {
        const fields = new Map(shard.fields);
        for (const [field, values] of sums) {
          const name = boundedField(fields, field);
          fields.set(name, newField(name, added(fields.get(name)?.values ?? [], values)));
        }
        changed.set(shard, fields);
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

/** Returns the sum of two vectors; missing positions of the shorter one count as zero. */
export function added(one: readonly bigint[], other: readonly bigint[]): bigint[] {
  const [longer, shorter] = one.length < other.length ? [other, one] : [one, other];
  return longer.map((value, at) => value + (shorter[at] ?? 0n));
}

/** Adds a vector to another one, in place. */
export function addTo(sum: bigint[], values: readonly bigint[]): void {
  for (const [at, value] of values.entries()) sum[at] = (sum[at] ?? 0n) + value;
}

/** Decodes a row of a sum. */
export function decodeSum(bytes: Uint8Array): Sum {
  const fields = Object.entries(fromBytes<Record<string, string[]>>(bytes));
  return new Map(fields.map(([field, values]) => [field, values.map(BigInt)]));
}

/** Keeps a row small, however many names callers use. */
function boundedField(fields: ReadonlyMap<string, Field>, field: string): string {
  if (fields.has(field)) return field;
  const group = field.slice(0, field.indexOf(":") + 1);
  // Names that callers do not choose, such as "deposit", are few.
  if (group === "") return field;
  let alike = 0;
  for (const name of fields.keys()) if (name.startsWith(group)) alike++;
  const fits = alike < fieldsMax && utf8Length(JSON.stringify(field)) <= fieldBytesMax;
  return fits ? field : `${group}other`;
}

function newField(name: string, values: readonly bigint[]): Field {
  return { values, text: `${JSON.stringify(name)}:["${values.join('","')}"]` };
}

function encode(fields: ReadonlyMap<string, Field>): Uint8Array {
  let text = "";
  for (const field of fields.values()) text += text === "" ? field.text : `,${field.text}`;
  return encodeUtf8(`{${text}}`);
}

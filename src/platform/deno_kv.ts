import type { Key, Kv, KvLimits, ListOptions, Row } from "../store/kv.ts";

/** A file of this process, or a database in its memory. */
export const fileLimits: KvLimits = { checks: 100, readKeys: 10, inFlight: 1, isShared: false };
/** A server of KV Connect, or the database of Deno Deploy: each call is a round trip. */
export const serverLimits: KvLimits = { checks: 10, readKeys: 10, inFlight: 4, isShared: true };

/** Adapts Deno KV: a local file, KV Connect or Deno Deploy. */
export function denoKv(kv: Deno.Kv, limits: KvLimits = fileLimits): Kv {
  return {
    limits,
    get: async (key) => toRow(await kv.get<Uint8Array>(key)),
    async getMany(keys) {
      const reads: Promise<Deno.KvEntryMaybe<Uint8Array>[]>[] = [];
      for (let i = 0; i < keys.length; i += limits.readKeys) {
        reads.push(kv.getMany<Uint8Array[]>(keys.slice(i, i + limits.readKeys)));
      }
      return (await Promise.all(reads)).flat().map(toRow);
    },
    async list(options) {
      const rows = kv.list<Uint8Array>(selector(options), {
        limit: options.limit,
        reverse: options.reverse ?? false,
      });
      return (await Array.fromAsync(rows)).map(toRow);
    },
    async atomic(write) {
      const operation = kv.atomic();
      for (const { key, version } of write.checks) operation.check({ key, versionstamp: version });
      for (const { key, value } of write.sets) operation.set(key, value);
      for (const key of write.deletes) operation.delete(key);
      const result = await operation.commit();
      return result.ok ? result.versionstamp : null;
    },
    close: () => kv.close(),
  };
}

function toRow(entry: Deno.KvEntryMaybe<Uint8Array>): Row {
  return { key: entry.key as Key, value: entry.value, version: entry.versionstamp };
}

function selector({ prefix, start, end }: ListOptions): Deno.KvListSelector {
  if (start && end) return { start, end };
  if (start) return { prefix, start };
  if (end) return { prefix, end };
  return { prefix };
}

import type { Key, Write } from "./kv.ts";

/** A write that waits for its turn. */
export interface Pending {
  write: Write;
  resolve: (version: string | null) => void;
  reject: (error: unknown) => void;
}

/** Some pending writes as one. */
export interface Batch {
  write: Write;
  members: Pending[];
}

// Deno KV's limits for one atomic write, less the marker and some room for its own encoding:
// 1,000 mutations, 800 KiB in all, 80 KiB of keys.
const mutationsMax = 950;
const bytesMax = 700 * 1024;
const keyBytesMax = 70 * 1024;

/**
 * Takes as many writes from the head of `queue` as fit into one atomic write. A write stays behind
 * when it sets a key that an earlier member sets, or expects another version of a checked key:
 * such two can never be one write. Always takes at least one.
 */
export function openBatch(queue: Pending[], checksMax: number): Batch {
  const first = queue[0];
  if (queue.length === 1 && first) {
    queue.length = 0;
    return { write: first.write, members: [first] };
  }
  const checks = new Map<string, Write["checks"][number]>();
  const touched = new Set<string>();
  const batch: Batch = { write: { checks: [], sets: [], deletes: [] }, members: [] };
  const left: Pending[] = [];
  const used = { mutations: 0, bytes: 0, keyBytes: 0 };
  for (const [index, pending] of queue.entries()) {
    const { write } = pending;
    const size = measure(write);
    const full = used.mutations + size.mutations > mutationsMax ||
      used.bytes + size.bytes > bytesMax || used.keyBytes + size.keyBytes > keyBytesMax ||
      checks.size + write.checks.length >= checksMax;
    if (full && batch.members.length > 0) {
      left.push(...queue.slice(index));
      break;
    }
    const mine = [...write.sets.map(({ key }) => key), ...write.deletes].map(keyText);
    if (!agrees(write, checks) || mine.some((key) => touched.has(key))) {
      mine.forEach((key) => touched.add(key));
      left.push(pending);
      continue;
    }
    used.mutations += size.mutations;
    used.bytes += size.bytes;
    used.keyBytes += size.keyBytes;
    for (const check of write.checks) checks.set(keyText(check.key), check);
    mine.forEach((key) => touched.add(key));
    batch.write.sets.push(...write.sets);
    batch.write.deletes.push(...write.deletes);
    batch.members.push(pending);
  }
  batch.write.checks = [...checks.values()];
  queue.splice(0, queue.length, ...left);
  return batch;
}

/** Whether `write` expects no other version of a key than the writes gathered so far. */
function agrees(write: Write, checks: Map<string, Write["checks"][number]>): boolean {
  return write.checks.every(({ key, version }) => {
    const known = checks.get(keyText(key));
    return !known || known.version === version;
  });
}

/** Mutations, bytes, and bytes of keys, as Deno KV counts them. */
function measure(write: Write): { mutations: number; bytes: number; keyBytes: number } {
  let bytes = 0;
  let keyBytes = 0;
  for (const { key } of write.checks) bytes += keySize(key);
  for (const { key, value } of write.sets) {
    keyBytes += keySize(key);
    bytes += 2 * keySize(key) + value.length;
  }
  for (const key of write.deletes) bytes += keySize(key);
  return { mutations: write.sets.length + write.deletes.length, bytes, keyBytes };
}

/** An upper bound of a key's encoded size: 3 bytes a character, 9 a number, 2 around each part. */
function keySize(key: Key): number {
  let size = 0;
  for (const part of key) size += typeof part === "string" ? part.length * 3 + 2 : 9;
  return size;
}

/** A key as text, to compare by. Parts cannot run together: ids and users hold no U+0000. */
export function keyText(key: Key): string {
  return key.join("\u0000");
}

import { firstIdAt } from "../base/ids.ts";
import { isArchivable, readStored } from "../ledger/carry_forward.ts";
import { ownEntriesPrefix } from "../store/keys.ts";
import type { Kv } from "../store/kv.ts";

const rowsPerRead = 200;
/** A clock may have been set back: an id may be later than its entry. */
const laterMs = 60 * 60 * 1000;
const newline = new Uint8Array([0x0a]);

/**
 * Streams the entries of a project that can be archived as they are stored, one JSON text a line,
 * in order of their ids. A read that fails aborts the stream.
 */
export function archivableLines(
  kv: Kv,
  { projectId, before, after }: { projectId: string; before: number; after: string },
): ReadableStream<Uint8Array> {
  const prefix = ownEntriesPrefix(projectId);
  const end = [...prefix, firstIdAt("act", before + laterMs)];
  let last: string | null = after;
  return new ReadableStream({
    async pull(controller) {
      for (let found = false; !found;) {
        if (last === null) return controller.close();
        const rows = await kv.list({
          prefix,
          start: [...prefix, last, ""],
          end,
          limit: rowsPerRead,
        });
        last = rows.length < rowsPerRead ? null : String(rows.at(-1)?.key[2]);
        for (const row of rows) {
          const stored = readStored(row);
          if (!row.value || !stored || !isArchivable(stored.entry, before)) continue;
          found = true;
          controller.enqueue(row.value);
          controller.enqueue(newline);
        }
      }
    },
  }, { highWaterMark: 0 });
}

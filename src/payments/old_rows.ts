import type { Deps } from "../deps.ts";
import { emptyWrite, type Key } from "../store/kv.ts";
import { listAfter } from "../store/scan.ts";

const rowsPerSweep = 100;

/**
 * Creates a sweep that deletes the rows under a prefix once they are too old. Each call does a
 * bounded part and continues where the last one stopped.
 */
export function sweepOldRows(
  { kv, committer, clock }: Pick<Deps, "kv" | "committer" | "clock">,
  { prefix, lifetimeMs, timeOf }: {
    prefix: Key;
    lifetimeMs: number;
    /** When a row was last written, in milliseconds since 1970. */
    timeOf(value: Uint8Array): number;
  },
): () => Promise<void> {
  let after: Key | null = null;
  return async () => {
    const rows = await listAfter(kv, prefix, { after, limit: rowsPerSweep });
    after = rows.length < rowsPerSweep ? null : rows.at(-1)?.key ?? null;
    const old = rows.filter(({ value }) => value && clock.now() - timeOf(value) > lifetimeMs);
    const deletes = old.map(({ key }) => key);
    if (deletes.length > 0) await committer.commit({ ...emptyWrite(), deletes });
  };
}

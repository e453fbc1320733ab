import { chatReplayDuePrefix, chatReplayKey } from "../store/keys.ts";
import { emptyWrite, type Kv } from "../store/kv.ts";
import type { Committer } from "../store/commit.ts";

const dueRowsPerSweep = 200;

/**
 * Removes stored answers that `ended` says are over, in order of their end, with their due rows.
 * One call does a bounded part.
 */
export async function sweepReplayRows(
  { kv, committer }: { kv: Kv; committer: Committer },
  now: number,
  ended: (value: Uint8Array) => boolean,
): Promise<void> {
  const due = await kv.list({ prefix: chatReplayDuePrefix, limit: dueRowsPerSweep });
  for (const { key } of due) {
    const [, dueMs, projectId, idempotencyKey] = key;
    if (Number(dueMs) > now) return;
    const row = await kv.get(chatReplayKey(String(projectId), String(idempotencyKey)));
    const write = emptyWrite();
    write.deletes.push(key);
    if (row.value && ended(row.value)) {
      write.checks.push({ key: row.key, version: row.version });
      write.deletes.push(row.key);
    }
    await committer.commit(write);
  }
}

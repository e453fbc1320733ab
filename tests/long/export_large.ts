// Takes minutes, so it is no part of `deno task test`:
//   deno test -A tests/long/export_large.ts
import assert from "node:assert/strict";
import { toBytes } from "../../src/base/json.ts";
import { createIds } from "../../src/base/ids.ts";
import type { Entry } from "../../src/ledger/entry.ts";
import { entryKey } from "../../src/store/keys.ts";
import { openShop } from "../support/backups.ts";
import { databaseOf, makeFolder, serviceEnv, startFarebox } from "../support/process.ts";
import { sleep } from "../support/traffic.ts";
import { mulberry32 } from "../support/random.ts";
import { adminKey } from "../support/world.ts";

const entriesCount = 1_000_000;
const growthMaxMiB = 80;

Deno.test("export: a million entries take no more memory than a few, and a slow reader none", async () => {
  await using folder = await makeFolder();
  const start = () => startFarebox({ folder: folder.path, env: serviceEnv });
  const projectId = await (async () => {
    await using farebox = await start();
    return (await openShop(farebox)).projectId;
  })();
  await writeEntries(folder.path, projectId);
  await using farebox = await start();
  const path = `/v1/admin/projects/${projectId}/export?what=entries&format=`;
  const memory = () => memoryOf(farebox.pid);
  const ask = (format: string) => farebox.call(path + format, { key: adminKey });
  // Memory that the garbage collector does not free is reached early.
  for (const format of ["jsonl", "csv"]) await countLines((await ask(format)).body, 100_000);
  const before = memory();

  const waiting = await ask("jsonl");
  await sleep(5_000);
  const whileWaiting = memory() - before;
  await waiting.body?.cancel();
  assert.ok(whileWaiting < growthMaxMiB, `${whileWaiting} MiB for a reader that does not read`);

  const startedAt = performance.now();
  let most = 0;
  const watch = setInterval(() => most = Math.max(most, memory() - before), 50);
  assert.equal(await countLines((await ask("csv")).body), entriesCount + 1);
  clearInterval(watch);
  const seconds = (performance.now() - startedAt) / 1000;
  console.log({ before, whileWaiting, most, perSecond: Math.round(entriesCount / seconds) });
  assert.ok(most < growthMaxMiB, `${most} MiB more while it was exported`);
});

async function writeEntries(folder: string, projectId: string): Promise<void> {
  using kv = await Deno.openKv(databaseOf(folder));
  let now = Date.parse("2026-01-01T00:00:00Z");
  const id = createIds(() => now, mulberry32(1));
  for (let at = 0; at < entriesCount; at += 500) {
    const write = kv.atomic();
    for (let n = 0; n < 500; n++) {
      now += 1_000;
      const entry: Entry = {
        id: id("act"),
        seq: at + n + 1,
        prev: null,
        kind: "deposit",
        user: `user-${n}`,
        delta: "1.5",
        balanceAfter: "1.5",
        heldAfter: "0",
        shortfall: "0",
        createdAt: now,
        idempotencyKey: `order-${at + n}`,
        metadata: { order: at + n, note: "as written by a checkout" },
        usage: null,
        refundedActivityId: null,
      };
      write.set([...entryKey(projectId, entry.id)], toBytes(entry));
    }
    await write.commit();
  }
}

/** Reads this many lines, and disconnects. */
async function countLines(
  body: ReadableStream<Uint8Array> | null,
  linesMax = Infinity,
): Promise<number> {
  let lines = 0;
  for await (const piece of body ?? []) {
    for (const byte of piece) if (byte === 10) lines++;
    if (lines >= linesMax) break;
  }
  return lines;
}

/** Resident memory of a process, in MiB. */
function memoryOf(pid: number): number {
  const [, kib] = /VmRSS:\s+(\d+)/.exec(Deno.readTextFileSync(`/proc/${pid}/status`)) ?? [];
  return Math.round(Number(kib) / 1024);
}

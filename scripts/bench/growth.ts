import { toBytes } from "../../src/base/json.ts";
import { createIds } from "../../src/base/ids.ts";
import { formatAmount, toAmount } from "../../src/base/money.ts";
import { emptyAccount, encodeAccount } from "../../src/ledger/account.ts";
import type { Entry } from "../../src/ledger/entry.ts";
import { accountKey, entryKey } from "../../src/store/keys.ts";
import { denoKv } from "../../src/platform/deno_kv.ts";
import { emptyWrite } from "../../src/store/kv.ts";
import { type Figure, median, show } from "./figures.ts";
import { startProcess } from "./processes.ts";
import { adminKey, makeFolder, type Service, startService } from "./service.ts";

const entriesEach = 10;
const accountsPerWrite = 40;
const oneUnit = 1_000_000_000n;

/** Writes accounts with ten deposits each, in the form that the service writes. */
async function fill(path: string, projectId: string, accounts: number): Promise<void> {
  const store = await Deno.openKv(path);
  const kv = denoKv(store);
  const id = createIds(Date.now, Math.random);
  for (let made = 0; made < accounts; made += accountsPerWrite) {
    const write = emptyWrite();
    for (let n = made; n < Math.min(accounts, made + accountsPerWrite); n++) {
      const user = `user-${n}`;
      let last: string | null = null;
      for (let seq = 1; seq <= entriesEach; seq++) {
        const balance = formatAmount(BigInt(seq) * oneUnit);
        const entry: Entry = {
          id: id("act"),
          seq,
          prev: last,
          kind: "deposit",
          user,
          delta: "1",
          balanceAfter: balance,
          heldAfter: "0",
          shortfall: "0",
          createdAt: Date.now(),
          idempotencyKey: null,
          metadata: { order: `order-${n}-${seq}` },
          usage: null,
          refundedActivityId: null,
        };
        write.sets.push({ key: entryKey(projectId, entry.id), value: toBytes(entry) });
        last = entry.id;
      }
      const balance = toAmount(BigInt(entriesEach) * oneUnit);
      const account = { ...emptyAccount(), balance, seq: entriesEach, last };
      write.sets.push({ key: accountKey(projectId, user), value: encodeAccount(account) });
    }
    await kv.atomic(write);
  }
  kv.close();
}

const rounds = 300;
const warmUp = 60;

/** Starts a service on a database with so many accounts, of ten entries each. */
export async function filled(
  folder: string,
  env: Record<string, string>,
  accounts: number,
  fillMore: (path: string, projectId: string) => Promise<void> = () => Promise.resolve(),
) {
  let before: { projectId: string; key: string };
  {
    await using service = await startService(env, folder);
    before = { projectId: service.projectId, key: service.key };
  }
  await fill(`${folder}/bench.kv`, before.projectId, accounts);
  await fillMore(`${folder}/bench.kv`, before.projectId);
  const startedAt = performance.now();
  const service = Object.assign(await startService(env, folder), before);
  return { service, startMs: performance.now() - startedAt };
}

function monthOf({ projectId }: Service): string {
  const from = new Date(Date.now() - 30 * 24 * 60 * 60 * 1000).toISOString();
  return `/v1/admin/projects/${projectId}/summary?from=${from}`;
}

/** Measures what each operation costs with few accounts and with many, in turns. */
export async function benchGrowth(long: boolean): Promise<Figure[]> {
  const many = long ? 100_000 : 10_000;
  await using upstream = await startProcess("upstream.ts");
  const env = { UPSTREAM_URL: `http://127.0.0.1:${upstream.port}/v1`, LOG_LEVEL: "info" };
  using fewFolder = makeFolder();
  using manyFolder = makeFolder();
  const small = await filled(fewFolder.path, env, 100);
  const large = await filled(manyFolder.path, env, many);
  await using _small = small.service;
  await using _large = large.service;
  const figures: Figure[] = [{
    name: `start with ${many * entriesEach} entries`,
    value: large.startMs,
    unit: "ms",
    bar: "under 2,000",
    ok: large.startMs < 2_000,
  }];
  const messages = [{ role: "user", content: "Hello, what is the weather in Paris?" }];
  const work: Record<string, (service: Service, user: string) => Promise<unknown>> = {
    chat: (service, user) =>
      service.json("/v1/chat/completions", { model: "m", user, messages, max_tokens: 100 }),
    deposit: (service, user) => service.json("/v1/user/balance/deposit", { user, amount: "1" }),
    balance: (service, user) => service.json(`/v1/user/balance?user=${user}`),
    "page of activities": (service, user) => service.json(`/v1/user/activities?user=${user}`),
    "page of users": (service, user) =>
      service.json(
        `/v1/admin/projects/${service.projectId}/users?prefix=${user}`,
        undefined,
        adminKey,
      ),
    "summary of a month": (service) => service.json(monthOf(service), undefined, adminKey),
  };
  for (const [name, ask] of Object.entries(work)) {
    const times: [number[], number[]] = [[], []];
    for (let round = 0; round < rounds + warmUp; round++) {
      for (const [at, { service }] of [small, large].entries()) {
        const accounts = at === 0 ? 100 : many;
        const user = `user-${(round * 7919) % accounts}`;
        const startedAt = performance.now();
        await ask(service, user);
        if (round >= warmUp) times[at]?.push(performance.now() - startedAt);
      }
    }
    const ratio = median(times[1]) / median(times[0]);
    figures.push({
      name: `a ${name} with ${many * entriesEach} entries against 1,000`,
      value: ratio,
      unit: "times",
      bar: "at most 1.3",
      ok: ratio <= 1.3,
    });
  }
  figures.forEach(show);
  return figures;
}

import { createIds } from "../../src/base/ids.ts";
import { toBytes } from "../../src/base/json.ts";
import { formatAmount, fromDecimal, toAmount, zero } from "../../src/base/money.ts";
import { type Account, emptyAccount, encodeAccount } from "../../src/ledger/account.ts";
import { createEntry } from "../../src/ledger/entry.ts";
import { encodeIdempotency } from "../../src/ledger/store.ts";
import { isLarge } from "../../src/store/batch.ts";
import { accountKey, entryKey, idempotencyKey } from "../../src/store/keys.ts";
import { emptyWrite, type Kv, type Write } from "../../src/store/kv.ts";

const entriesEach = 100;
const chatCost = fromDecimal("0.00002");
const paid = fromDecimal("5");
const price = { input: "1", output: "2", markupPercent: "0", requestFee: "0" };
const usageOf = (requestId: string) => ({
  model: "m",
  requestId,
  source: "provider" as const,
  uncachedInputTokens: 10,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  outputTokens: 5,
  reasoningTokens: 0,
  price,
});

/**
 * Writes accounts with one deposit and 99 chats each, in turns, as many users leave them. The rows
 * are those that the service writes, without events and sums; one entry each `stepMs` from a time
 * on.
 */
export async function fillBooks(
  kv: Kv,
  projectId: string,
  { entries, from, stepMs }: { entries: number; from: number; stepMs: number },
): Promise<void> {
  let now = from;
  const id = createIds(() => Math.floor(now), Math.random);
  const accounts = Array.from(
    { length: Math.ceil(entries / entriesEach) },
    (_, n) => ({ user: `user-${n}`, account: emptyAccount() }),
  );
  let write = emptyWrite();
  const flush = async () => {
    await kv.atomic(write);
    write = emptyWrite();
  };
  for (let n = 0; n < entries; n++) {
    const at = accounts[n % accounts.length];
    if (at) addEntry(write, at, { projectId, id: id("act"), createdAt: Math.floor(now) });
    now += stepMs;
    if (isLarge(write)) await flush();
  }
  for (const { user, account } of accounts) {
    write.sets.push({ key: accountKey(projectId, user), value: encodeAccount(account) });
    if (isLarge(write)) await flush();
  }
  await flush();
}

function addEntry(
  write: Write,
  { user, account }: { user: string; account: Account },
  { projectId, id, createdAt }: { projectId: string; id: string; createdAt: number },
): void {
  const isFirst = account.seq === 0;
  const delta = isFirst ? paid : toAmount(-chatCost);
  account.balance = toAmount(account.balance + delta);
  account.seq++;
  const key = isFirst ? `order-${user}` : null;
  const made = isFirst
    ? { kind: "deposit" as const, idempotencyKey: key }
    : { kind: "usage" as const, usage: usageOf(id.replace("act_", "req_")) };
  const moved = { user, delta, shortfall: zero, createdAt };
  const entry = createEntry({ id, ...made }, account, moved);
  account.last = id;
  write.sets.push({ key: entryKey(projectId, id), value: toBytes(entry) });
  if (key === null) return;
  const record = encodeIdempotency({ activityId: id, fingerprint: formatAmount(paid) });
  write.sets.push({ key: idempotencyKey(projectId, "deposit", key), value: record });
}

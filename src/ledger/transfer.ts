import { type Amount, least, toAmount, zero } from "../base/money.ts";
import { toBytes } from "../base/json.ts";
import type { Deps } from "../deps.ts";
import { attemptsToWrite } from "../store/backoff.ts";
import { accountKey, entryKey } from "../store/keys.ts";
import { emptyWrite, type Row, type Write } from "../store/kv.ts";
import { type Account, availableIn, decodeAccount, encodeAccount } from "./account.ts";
import { accountContended } from "./account_queue.ts";
import { createEntry, type Entry, noProject } from "./entry.ts";
import { decodeEntry } from "./store.ts";

/** A movement between two wallets of one currency. */
interface Transfer {
  currency: string;
  from: string;
  into: string;
  /** The most to move; all by default. */
  most?: Amount;
}

/** Moves money between the wallets of one person. */
export interface Transfers {
  /**
   * Moves the money that no running call holds, by an entry in either wallet, in one write, and
   * returns the amount. Repeated, it moves what has come since. Throws 503 while others keep
   * writing.
   */
  move(transfer: Transfer): Promise<Amount>;
  /**
   * Moves money on that has come into a wallet which is part of another one, and returns how much.
   * What was moved back a moment ago is about to be taken there, and stays. Throws 503 while others
   * keep writing.
   */
  forward(transfer: Transfer): Promise<Amount>;
}

/** How long money that was moved back stays where it is, in ms. */
const restMs = 60_000;

type TransferDeps = Pick<
  Deps,
  "kv" | "committer" | "clock" | "id" | "randomBytes" | "metrics"
>;

/** Creates transfers. They belong to no project: no event tells of them, and no sum counts them. */
export function createTransfers(deps: TransferDeps): Transfers {
  const { kv, committer, clock, metrics } = deps;

  async function move(
    { currency, from, into, most }: Transfer,
    mayMove: (account: Account) => Promise<boolean>,
  ): Promise<Amount> {
    const keys = [accountKey(from, currency), accountKey(into, currency)];
    for await (const _ of attemptsToWrite(deps)) {
      const [source, target] = await kv.getMany(keys);
      if (!source || !target) return zero;
      const account = decodeAccount(source.value);
      const available = availableIn(account);
      const amount = most === undefined ? available : least(most, available);
      if (amount <= 0n || !await mayMove(account)) return zero;
      const ids = { from: deps.id("act"), into: deps.id("act") };
      const now = clock.now();
      const write = emptyWrite();
      const entries = [
        append(write, source, {
          ...{ amount: toAmount(-amount), id: ids.from, now },
          transfer: { wallet: into, activityId: ids.into },
        }),
        append(write, target, {
          ...{ amount, id: ids.into, now },
          transfer: { wallet: from, activityId: ids.from },
        }),
      ];
      if ((await committer.commit(write)) === null) continue;
      for (const entry of entries) metrics.entry(entry, currency);
      return amount;
    }
    throw accountContended();
  }

  return {
    move: (transfer) => move(transfer, () => Promise.resolve(true)),
    forward: (transfer) =>
      move(transfer, async ({ last }) => {
        if (last === null) return true;
        const { value } = await kv.get(entryKey(transfer.from, last));
        const entry = value && decodeEntry(value);
        const isBack = entry?.kind === "transfer" && !entry.delta.startsWith("-");
        return !isBack || Math.abs(clock.now() - entry.createdAt) >= restMs;
      }),
  };
}

/** Adds one of the two entries to the write, with its account. */
function append(
  write: Write,
  { key, value, version }: Row,
  { amount, id, now, transfer }: {
    amount: Amount;
    id: string;
    now: number;
    transfer: NonNullable<Entry["transfer"]>;
  },
): Entry {
  const account = decodeAccount(value);
  account.balance = toAmount(account.balance + amount);
  account.seq++;
  const moved = { user: transfer.wallet, delta: amount, shortfall: zero, createdAt: now };
  const entry: Entry = {
    ...createEntry({ id, kind: "transfer" }, account, moved),
    projectId: noProject,
    transfer,
  };
  account.last = id;
  write.checks.push({ key, version });
  write.sets.push(
    { key, value: encodeAccount(account) },
    { key: entryKey(String(key[1]), id), value: toBytes({ ...entry }) },
  );
  return entry;
}

import { toAmount } from "../../src/base/money.ts";
import { AccountTx } from "../../src/ledger/account_tx.ts";
import type { SpendingBound } from "../../src/ledger/bounds.ts";
import type { Committer } from "../../src/store/commit.ts";
import type { Key, Kv, ListOptions, Row, Write } from "../../src/store/kv.ts";
import type { Seams } from "./process.ts";
import type { Timeline } from "./timeline.ts";

/** A planted defect, at a seam of the service and never inside of it. */
export interface Defect {
  name: string;
  seams?: Seams;
  /** Changes something that all processes share; the returned function undoes it. */
  install?: () => () => void;
  /** The most seeds within which it must be found. */
  seedsMax: number;
}

/** Changes every atomic write on its way to the store; `late` may hold it back before. */
export function writing(
  change: (write: Write) => Write,
  late: (write: Write, timeline: Timeline) => Promise<void> = () => Promise.resolve(),
): Seams {
  return {
    kv(kv, timeline) {
      const { atomicOrFailed } = kv;
      const atomic: Kv["atomic"] = async (write) => {
        await late(write, timeline);
        return await kv.atomic(change(write));
      };
      if (!atomicOrFailed) return { ...kv, atomic };
      return {
        ...kv,
        atomic,
        async atomicOrFailed(write) {
          await late(write, timeline);
          const changed = change(write);
          const outcome = await atomicOrFailed(changed);
          if (typeof outcome === "string") return outcome;
          const failed = outcome.map((at) => changed.checks[at]);
          return write.checks.flatMap((check, at) => failed.includes(check) ? [at] : []);
        },
      };
    },
  };
}

/** Writes without some of their checks. */
export function withoutChecks(of: (key: Key) => boolean): Seams {
  return writing((write) => ({ ...write, checks: write.checks.filter(({ key }) => !of(key)) }));
}

/** Changes every row that is read by its key. */
export function reading(change: (row: Row) => Row): Seams {
  return {
    kv: (kv) => ({
      ...kv,
      get: (key) => kv.get(key).then(change),
      getMany: (keys) => kv.getMany(keys).then((rows) => rows.map(change)),
    }),
  };
}

/** Replaces a listing. */
export function listing(change: (options: ListOptions, kv: Kv) => ReturnType<Kv["list"]>): Seams {
  return { kv: (kv) => ({ ...kv, list: (options) => change(options, kv) }) };
}

/** Replaces a commit. */
export function committing(
  commit: (inner: Committer, write: Write) => ReturnType<Committer["commit"]>,
) {
  return {
    deps: (deps) => {
      const { committer } = deps;
      const changed = { ...committer, commit: (write: Write) => commit(committer, write) };
      return { ...deps, committer: changed };
    },
  } satisfies Seams;
}

/** Replaces a method of every account transaction by what `make` returns. */
export function accountTx<Name extends "put" | "takeHold" | "credit" | "debit" | "emit" | "finish">(
  name: Name,
  make: (
    inner: AccountTx[Name],
  ) => (this: AccountTx, ...given: Parameters<AccountTx[Name]>) => unknown,
): () => () => void {
  return () => {
    const inner = AccountTx.prototype[name];
    Object.defineProperty(AccountTx.prototype, name, { value: make(inner), configurable: true });
    return () =>
      Object.defineProperty(AccountTx.prototype, name, { value: inner, configurable: true });
  };
}

/** Changes what bounds a user's spending. */
export function bounds(
  change: (this: AccountTx, bounds: readonly SpendingBound[]) => readonly SpendingBound[],
): () => () => void {
  return () => {
    const inner = AccountTx.prototype.bounds;
    AccountTx.prototype.bounds = function (this: AccountTx, budgets) {
      return change.call(this, inner.call(this, budgets));
    };
    return () => void (AccountTx.prototype.bounds = inner);
  };
}

/** Replaces what the balance leaves. */
export function available(get: (this: AccountTx) => bigint): () => () => void {
  return bounds(function ([balance, ...others]) {
    return balance ? [{ ...balance, left: toAmount(get.call(this)) }, ...others] : others;
  });
}

/** Whether a key is one of these kinds. */
export const is = (...names: string[]) => ([name]: Key) => names.includes(String(name));
/** The write without its rows of one kind. */
export const lacks = (write: Write, name: string): Write => ({
  ...write,
  sets: write.sets.filter(({ key }) => key[0] !== name),
});

/** Whether this id is one of those that a defect affects: one in eight. */
export const isConcerned = (id: string) => "0123".includes(id.at(-1) ?? "");

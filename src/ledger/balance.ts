import type { Amount } from "../base/money.ts";
import type { Key, Kv } from "../store/kv.ts";
import type { AccountRef } from "./account.ts";
import { listHoldIndex, readAccount } from "./store.ts";
import { settledAt } from "./view.ts";

/** A user's exact balance and what is held of it, read afresh, expired holds counted out. */
export async function readBalance(
  kv: Kv,
  ref: AccountRef,
  now: number,
): Promise<{ balance: Amount; held: Amount }> {
  return settledAt(await readAccount(kv, ref), now);
}

/** Whether a hold still stands. */
export async function isHoldActive(
  kv: Kv,
  ref: AccountRef,
  { id, now }: { id: string; now: number },
): Promise<boolean> {
  const { holds } = await readAccount(kv, ref);
  return holds.some((hold) => hold.id === id && hold.expiresAt > now);
}

const holdingPage = 200;

/** Whether money may be held for a user, on whatever account: as far as the sweep has come. */
export async function hasIndexedHold(
  kv: Kv,
  { projectId, user }: Pick<AccountRef, "projectId" | "user">,
): Promise<boolean> {
  for (let after: Key | null = null;;) {
    const { refs, next } = await listHoldIndex(kv, after, holdingPage);
    if (refs.some((ref) => ref.projectId === projectId && ref.user === user)) return true;
    if (!next) return false;
    after = next;
  }
}

import type { Amount } from "../base/money.ts";
import type { Key, Kv } from "../store/kv.ts";
import type { AccountRef } from "./account.ts";
import { listHoldIndex, readAccount } from "./store.ts";
import { settledAt } from "./view.ts";

/** Reads a user's exact balance and held amount from the store. Expired holds do not count. */
export async function readBalance(
  kv: Kv,
  ref: AccountRef,
  now: number,
): Promise<{ balance: Amount; held: Amount }> {
  return settledAt(await readAccount(kv, ref), now);
}

/** Whether a hold is still active. */
export async function isHoldActive(
  kv: Kv,
  ref: AccountRef,
  { id, now }: { id: string; now: number },
): Promise<boolean> {
  const { holds } = await readAccount(kv, ref);
  return holds.some((hold) => hold.id === id && hold.expiresAt > now);
}

const holdingPage = 200;

/** Whether any account may hold money for a user, according to the hold index. */
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

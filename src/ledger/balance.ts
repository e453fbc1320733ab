import type { Amount } from "../base/money.ts";
import type { Kv } from "../store/kv.ts";
import type { AccountRef } from "./account.ts";
import { readAccount } from "./store.ts";
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
export async function isHeld(
  kv: Kv,
  ref: AccountRef,
  { id, now }: { id: string; now: number },
): Promise<boolean> {
  const { holds } = await readAccount(kv, ref);
  return holds.some((hold) => hold.id === id && hold.expiresAt > now);
}

import type { Amount } from "../base/money.ts";
import type { Deps } from "../deps.ts";
import type { AccountRef } from "./account.ts";
import { holdsEndedBy } from "./hold_end.ts";
import { readAccount } from "./store.ts";
import { settledNow } from "./api/view.ts";

type Services = Pick<Deps, "kv" | "clock" | "holders">;

/** Reads a user's exact balance and held amount from the store. Ended holds do not count. */
export async function readBalance(
  deps: Services,
  ref: AccountRef,
): Promise<{ balance: Amount; held: Amount }> {
  return settledNow(await readAccount(deps.kv, ref), holdsEndedBy(deps));
}

/** Whether a hold is still active. */
export async function isHoldActive(
  deps: Services,
  ref: AccountRef,
  id: string,
): Promise<boolean> {
  const { holds } = await readAccount(deps.kv, ref);
  const hasEnded = holdsEndedBy(deps);
  return holds.some((hold) => hold.id === id && !hasEnded(hold));
}

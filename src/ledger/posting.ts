import type { JsonObject } from "../base/json.ts";
import type { Amount } from "../base/money.ts";
import type { AccountRef } from "./account.ts";
import type { Draft } from "./draft.ts";
import type { Entry } from "./entry.ts";
import type { Origin } from "./events.ts";
import type { Obstacle } from "./obstacle.ts";
import type { Key } from "../store/kv.ts";
import type { BalanceView } from "./view.ts";

/** A deposit or a charge to make. */
export interface Posting {
  ref: AccountRef;
  amount: Amount;
  metadata: JsonObject | null;
  /** The caller's idempotency key, or null. */
  key: string | null;
  origin: Origin;
  /** Rows to write with the entry. */
  alongside?: (draft: Draft, entry: Entry) => void;
  /** Rows that `alongside` looks at: the write checks them. */
  reads?: readonly Key[];
  /** It was paid, or paid back, outside: it is booked also where nothing new is taken. */
  paid?: boolean;
}

/** A refund to make; without an amount, of all that is left. */
export interface Refund extends Omit<Posting, "amount"> {
  amount: Amount | null;
  original: Entry;
}

/** What was refused, and the balance that it met. */
export interface NotPosted {
  kind: Obstacle;
  balance: BalanceView;
}

/**
 * What became of it: booked now, booked before under this key, or refused, by whatever stands in the
 * way.
 */
export type Posted = Booked | NotPosted;

/** An entry that is in the books; `replayed`: since an earlier request of the same key. */
export interface Booked {
  kind: "booked" | "replayed";
  entry: Entry;
}

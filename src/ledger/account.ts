import { fromBytes, toBytes } from "../base/json.ts";
import { type Amount, toAmount, zero } from "../base/money.ts";

/** Money put aside for one running answer. Counts for nothing from `expiresAt` on. */
export interface Hold {
  /** Our own id of the request that holds. */
  id: string;
  amount: Amount;
  /** In milliseconds since 1970. */
  expiresAt: number;
  /** What the answer had used when the hold was last renewed: charged if it expires. */
  used: Amount;
}

/** One user's money in one project: one record, so that hold, settle and balance touch one key. */
export interface Account {
  balance: Amount;
  /** The number of the last entry; entries are numbered without gaps. */
  seq: number;
  /** The last entry's activity id; each entry names the one before it. */
  last: string | null;
  holds: Hold[];
  /** The sum of `holds`. Not stored. */
  held: Amount;
  /** Whether the sweep knows that this account may hold money. */
  listed: boolean;
}

/** Whose account: an account is made by its first operation. */
export interface AccountRef {
  projectId: string;
  user: string;
}

interface StoredAccount {
  balance: string;
  seq: number;
  last: string | null;
  holds: [id: string, amount: string, expiresAt: number, used: string][];
  listed: boolean;
}

/** An account before its first operation. */
export function emptyAccount(): Account {
  return { balance: zero, seq: 0, last: null, holds: [], held: zero, listed: false };
}

/** An account as it is stored; amounts are whole 1e-9 units as text. */
export function encodeAccount(account: Account): Uint8Array {
  const { balance, seq, last, holds, listed } = account;
  const stored: StoredAccount = {
    balance: balance.toString(),
    seq,
    last,
    holds: holds.map((hold) => [
      hold.id,
      hold.amount.toString(),
      hold.expiresAt,
      hold.used.toString(),
    ]),
    listed,
  };
  return toBytes(stored);
}

/** Reads what `encodeAccount` wrote; null is an account before its first operation. */
export function decodeAccount(bytes: Uint8Array | null): Account {
  if (!bytes) return emptyAccount();
  const { balance, seq, last, holds, listed } = fromBytes<StoredAccount>(bytes);
  const decoded = holds.map(([id, amount, expiresAt, used]): Hold => ({
    id,
    amount: toAmount(BigInt(amount)),
    expiresAt,
    used: toAmount(BigInt(used)),
  }));
  return {
    balance: toAmount(BigInt(balance)),
    seq,
    last,
    holds: decoded,
    held: decoded.reduce((sum, hold) => toAmount(sum + hold.amount), zero),
    listed,
  };
}

/** What can be spent now: the balance less what is held. */
export function availableIn(account: Pick<Account, "balance" | "held">): Amount {
  return toAmount(account.balance - account.held);
}

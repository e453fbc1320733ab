import { ApiError } from "../base/errors.ts";
import { fromBytes, toBytes } from "../base/json.ts";
import { type Amount, toAmount, zero } from "../base/money.ts";
import {
  decodePeriodSpend,
  encodePeriodSpend,
  type PeriodSpend,
  type StoredPeriodSpend,
} from "./period_spend.ts";
import { type BudgetHold, holdsNothing } from "./tx_budgets.ts";

/** Money set aside for one running call: see `holdsEndedBy` for when it no longer counts. */
export interface Hold {
  /** The id of the request that holds the money. */
  id: string;
  amount: Amount;
  /** In milliseconds since 1970. */
  expiresAt: number;
  /**
   * The cost of the call so far, as of the hold's last renewal. It is charged if the hold expires.
   */
  used: Amount;
  /** In a wallet: the connection that the hold belongs to. */
  connectionId: string | null;
  /** The budgets that the hold counts toward: most often none. */
  budgets: readonly BudgetHold[];
  /** The process that runs the call; null where 0.9.0 placed it. Version 1.1 may drop it. */
  holder: string | null;
}

/** How much of a project's rate limits one user has used up. Stored only where there are limits. */
export interface RateCounters {
  /** When the limits of requests and tokens will be fully available again, in ms. */
  requests: number;
  tokens: number;
}

/** One user's money in one project. One record, so that hold, settle and balance touch one key. */
export interface Account {
  balance: Amount;
  /** The number of the last entry; entries are numbered without gaps. */
  seq: number;
  /** The last entry's activity id; each entry names the one before it. */
  last: string | null;
  holds: Hold[];
  /** The sum of `holds`. Not stored. */
  held: Amount;
  /** Whether the hold index already lists this account. */
  listed: boolean;
  /** Usage counted against the project's rate limits; null where there are none. */
  counters: RateCounters | null;
  /** Usage and spend of this month; null before the first charge, and in a wallet. */
  use: PeriodSpend | null;
  /** While the user is being forgotten: the name that entries not yet renamed still carry. */
  formerly: string | null;
  /** The user is being forgotten, and the money has already moved to another name. */
  closed: boolean;
}

/**
 * A person's money in one currency, and the connection through which a project's user spends it.
 */
export interface WalletRef {
  personId: string;
  currency: string;
  connectionId: string;
}

/** Names an account and the user it is used for. The first operation creates the account. */
export interface AccountRef {
  projectId: string;
  user: string;
  /** The wallet that pays, in the shared mode. Absent: the user's own account in this project. */
  wallet?: WalletRef | undefined;
}

/** Returns where an account and its entries are stored. */
export function accountLocation(
  { projectId, user, wallet }: AccountRef,
): { owner: string; name: string } {
  return wallet
    ? { owner: wallet.personId, name: wallet.currency }
    : { owner: projectId, name: user };
}

/** Returns the wallet's owner as events name them. */
export function walletUserOf({ user, wallet }: AccountRef): string {
  return wallet?.personId ?? user;
}

/** In 0.9.0, a hold ends with its connection, or before it. Version 1.1 may drop it. */
type StoredHold = [
  id: string,
  amount: string,
  expiresAt: number,
  used: string,
  connectionId?: string | null,
  budgets?: [name: string, amount: string][],
  holder?: string,
];

interface StoredAccount {
  balance: string;
  seq: number;
  last: string | null;
  holds: StoredHold[];
  listed: boolean;
  counters?: RateCounters;
  use?: StoredPeriodSpend;
  formerly?: string;
  closed?: true;
}

/** Returns an account as it is before its first operation. */
export function emptyAccount(): Account {
  return {
    balance: zero,
    seq: 0,
    last: null,
    holds: [],
    held: zero,
    listed: false,
    counters: null,
    use: null,
    formerly: null,
    closed: false,
  };
}

/**
 * Throws for an account that no correct operation leaves: a negative balance or hold, `held` other
 * than the sum of the holds, or more held than the balance. Runs at every write and before every
 * decision, so a defect becomes a 500 that changes nothing.
 */
function assertAccount({ balance, held, holds }: Account): void {
  let sum: Amount = zero;
  for (const { amount, used } of holds) {
    if (amount < 0n || used < 0n) throw new Error(`a hold of ${amount} has used ${used}`);
    sum = toAmount(sum + amount);
  }
  if (sum !== held) throw new Error(`an account holds ${held}, but its holds add up to ${sum}`);
  if (balance < 0n || held > balance) {
    throw new Error(`an account with a balance of ${balance} holds ${held}`);
  }
}

/**
 * Encodes an account for the store; amounts are whole 1e-9 units as text. Throws for an unsound
 * account: see `assertAccount`.
 */
export function encodeAccount(account: Account): Uint8Array {
  assertAccount(account);
  const { balance, seq, last, holds, listed, counters, use, formerly, closed } = account;
  const stored: StoredAccount = {
    balance: balance.toString(),
    seq,
    last,
    holds: holds.map(encodeHold),
    listed,
  };
  if (counters) stored.counters = counters;
  if (use) stored.use = encodePeriodSpend(use);
  if (formerly !== null) stored.formerly = formerly;
  if (closed) stored.closed = closed;
  return toBytes(stored);
}

function encodeHold(
  { id, amount, expiresAt, used, connectionId, budgets, holder }: Hold,
): StoredHold {
  const held = budgets.map(([name, held]): [string, string] => [name, held.toString()]);
  const hold: StoredHold = [
    id,
    amount.toString(),
    expiresAt,
    used.toString(),
    connectionId,
    held,
  ];
  if (holder !== null) hold.push(holder);
  return hold;
}

function decodeHold(
  [id, amount, expiresAt, used, connectionId, budgets, holder]: StoredHold,
): Hold {
  return {
    id,
    amount: toAmount(BigInt(amount)),
    expiresAt,
    used: toAmount(BigInt(used)),
    connectionId: connectionId ?? null,
    budgets: budgets?.map(([name, held]) => [name, toAmount(BigInt(held))]) ?? holdsNothing,
    holder: holder ?? null,
  };
}

/**
 * Reads what `encodeAccount` wrote; null is an account before its first operation. Throws for an
 * unsound account: see `assertAccount`.
 */
export function decodeAccount(bytes: Uint8Array | null): Account {
  const account = parseAccount(bytes);
  assertAccount(account);
  return account;
}

/**
 * Reads an account without checking it, for lists and for `verify`, which reports what is wrong.
 */
export function parseAccount(bytes: Uint8Array | null): Account {
  if (!bytes) return emptyAccount();
  const { balance, seq, last, holds, listed, counters, use, formerly, closed } = fromBytes<
    StoredAccount
  >(bytes);
  const decoded = holds.map(decodeHold);
  return {
    balance: toAmount(BigInt(balance)),
    seq,
    last,
    holds: decoded,
    held: decoded.reduce((sum, hold) => toAmount(sum + hold.amount), zero),
    listed,
    counters: counters ?? null,
    use: decodePeriodSpend(use),
    formerly: formerly ?? null,
    closed: closed ?? false,
  };
}

/** Throws 403 `user_being_forgotten` for an account whose money is moving to another name. */
export function requireNotClosed({ closed }: Account): void {
  if (!closed) return;
  throw new ApiError(403, {
    message:
      "This user is being forgotten. Until that completes, no money can be recorded for them.",
    type: "permission_error",
    code: "user_being_forgotten",
  });
}

/** Returns what can be spent now: the balance less what is held. */
export function availableIn(account: Pick<Account, "balance" | "held">): Amount {
  return toAmount(account.balance - account.held);
}

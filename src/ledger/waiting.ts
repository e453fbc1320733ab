import { keyText } from "../store/batch.ts";
import type { Key } from "../store/kv.ts";
import type { Draft } from "./draft.ts";

/** What an operation came to. A refusal is only believed on a record that was read afresh. */
export interface Verdict<T> {
  value: T;
  refused?: boolean;
}

/** One thing to do to one account. `apply` may run several times; only the last run is written. */
export interface Operation<T> {
  /** Rows that it looks at besides the account; the commit checks them too. */
  reads: readonly Key[];
  /** A row that it makes unless it is there: read only where that is likely, but checked always. */
  claim?: Key | null;
  /** About how much it writes, in bytes. */
  bytes: number;
  /** It is about holds of before: where no account is, it is for nobody new, and brings no trial. */
  ofHolds?: true;
  /** Decides and alters the draft. What it throws reaches its own caller alone, and undoes it. */
  apply(draft: Draft): Verdict<T>;
}

/** An operation that waits for its turn. */
export interface Waiting {
  operation: Omit<Operation<unknown>, "apply">;
  decide(draft: Draft): Decision;
  reject: (error: unknown) => void;
}

/** An operation's decision, to be told once it is durable. */
export interface Decision {
  tell: () => void;
  refused: boolean;
  /** It threw, and may have left the draft half changed. */
  failed: boolean;
}

const operationsMax = 64;
const bytesMax = 256 * 1024;

/** As many operations as one write should carry, in order; at least one. */
export function takeBatch(waiting: Waiting[], readsMax: number): Waiting[] {
  let bytes = 0;
  let reads = 0;
  let count = 0;
  for (const { operation } of waiting) {
    bytes += operation.bytes;
    reads += operation.reads.length + (operation.claim ? 1 : 0);
    if (count > 0 && (count >= operationsMax || bytes > bytesMax || reads > readsMax)) break;
    count++;
  }
  return waiting.splice(0, count);
}

/** Decides, and keeps what to tell until that is durable. */
export function decider<T>(
  operation: Operation<T>,
  resolve: (value: T) => void,
  reject: (error: unknown) => void,
): Waiting["decide"] {
  return (draft) => {
    try {
      const { value, refused = false } = operation.apply(draft);
      return { refused, failed: false, tell: () => resolve(value) };
    } catch (error) {
      return { refused: true, failed: true, tell: () => reject(error) };
    }
  };
}

/** The rows that operations look at, each once; and those that they claim and need not look at. */
export function rowsOf(
  batch: Waiting[],
  looksFor: (claim: string) => boolean,
): { keys: Key[]; unread: Key[] } {
  const keys = new Map<string, Key>();
  const unread = new Map<string, Key>();
  for (const { operation: { reads, claim } } of batch) {
    for (const key of reads) keys.set(keyText(key), key);
    if (!claim) continue;
    const name = keyText(claim);
    if (unread.has(name) || keys.has(name)) continue;
    (looksFor(name) ? keys : unread).set(name, claim);
  }
  return { keys: [...keys.values()], unread: [...unread.values()] };
}

import { ApiError } from "../base/errors.ts";
import type { Deps } from "../deps.ts";
import type { Directory } from "../projects/directory.ts";
import { keyText } from "../store/batch.ts";
import { waitForTurn } from "../store/contention.ts";
import { accountKey, authorizationKey } from "../store/keys.ts";
import type { Row } from "../store/kv.ts";
import type { TopUsers } from "../summaries/top_users.ts";
import { type Account, type AccountRef, decodeAccount, placeOf, requireOpen } from "./account.ts";
import { createClaims } from "./claims.ts";
import { Draft } from "./draft.ts";
import {
  decider,
  type Decision,
  type Operation,
  rowsOf,
  takeBatch,
  type Waiting,
} from "./waiting.ts";

/** The one way that money moves: operations of one account, one after the other. */
export interface AccountQueue {
  /** Resolves once what the operation decided is durable. Throws 503 when it cannot be. */
  run<T>(ref: AccountRef, operation: Operation<T>): Promise<T>;
  /** Resolves after the next write to this account from here, or when `signal` aborts. */
  changed(ref: AccountRef, signal: AbortSignal): Promise<void>;
}

/** Operations on one account, for one project's user, that came while its last write was under way. */
interface Lane {
  ref: AccountRef;
  waiting: Waiting[];
}

const attemptsMax = 20;
const cachedAccountsMax = 20_000;

/**
 * Combines what waits for one account into one write (one read, many operations, one check), so a
 * hot user costs one commit for many requests and never conflicts with itself. The check on the
 * account's version is the truth: another process that wrote in between makes it read again.
 */
export function createAccountQueue(
  deps: Pick<Deps, "kv" | "committer" | "clock" | "id" | "config" | "randomBytes" | "meter">,
  rooms: { directory: Directory; topUsers: Pick<TopUsers, "see"> },
): AccountQueue {
  const lanes = new Map<string, Lane>();
  const cache = new Map<string, { account: Account; version: string | null }>();
  const claims = createClaims();
  const listeners = new Map<string, Set<() => void>>();
  const readsMax = deps.config.kvChecksMax - 4;

  async function drain(laneName: string, lane: Lane): Promise<void> {
    const name = nameOf(lane.ref);
    while (lane.waiting.length > 0) {
      const batch = takeBatch(lane.waiting, readsMax);
      await settleBatch(name, lane.ref, batch).catch((error) =>
        batch.forEach((waiting) => waiting.reject(error))
      );
    }
    lanes.delete(laneName);
  }

  async function settleBatch(name: string, ref: AccountRef, batch: Waiting[]): Promise<void> {
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      if (attempt > 2) await waitForTurn(deps, attempt);
      const { draft, fresh, unread } = await openDraft(name, ref, batch, attempt);
      const decisions: Decision[] = [];
      for (const waiting of batch) {
        decisions.push(waiting.decide(draft));
        if (draft.isFull) break;
      }
      if (!fresh && decisions.some(({ refused }) => refused)) {
        cache.delete(name);
        continue;
      }
      if (decisions.some(({ failed }) => failed)) {
        decisions.forEach(({ failed, tell }) => failed && tell());
        const others = batch.filter((_, at) => !decisions[at]?.failed);
        return others.length > 0 ? await settleBatch(name, ref, others) : undefined;
      }
      if (draft.changed) {
        const version = await commitDraft(name, draft);
        if (version === null && unread.length > 0) claims.surprised();
        if (version === null) continue;
        remember(name, draft.account, version);
        const { use } = draft.spending;
        if (use) rooms.topUsers.see(ref.projectId, ref.user, use);
        draft.entries.forEach((entry) => deps.meter.entry(entry, draft.snapshot.project.currency));
      }
      decisions.forEach(({ tell }) => tell());
      if (draft.changed) notify(name);
      const others = batch.slice(decisions.length);
      return others.length > 0 ? await settleBatch(name, ref, others) : undefined;
    }
    throw accountContended();
  }

  async function openDraft(name: string, ref: AccountRef, batch: Waiting[], attempt: number) {
    const known = cache.get(name);
    // What is decided without a write is believed on a fresh record: then everything was read.
    const looksFor = (claim: string) => !claims.isNew(claim) || !known || attempt > 0;
    const { keys, unread } = rowsOf(batch, looksFor);
    if (ref.wallet) keys.push(authorizationKey(ref.projectId, ref.user));
    const place = placeOf(ref);
    const wanted = known ? keys : [accountKey(place.owner, place.name), ...keys];
    const rows: Row[] = wanted.length > 0 ? await deps.kv.getMany(wanted) : [];
    const { account, version } = known ?? readRow(rows.shift());
    rows.push(...unread.map((key) => ({ key, value: null, version: null })));
    requireOpen(account);
    const snapshot = attempt === 0
      ? await rooms.directory.current(ref.projectId)
      : await rooms.directory.refresh(ref.projectId);
    const { id, clock } = deps;
    const isNew = version === null && !batch.every(({ operation }) => operation.ofHolds);
    const draft = new Draft({ ref, account, version, isNew, snapshot, rows, now: clock.now(), id });
    return { draft, fresh: !known, unread };
  }

  async function commitDraft(name: string, draft: Draft): Promise<string | null> {
    try {
      const version = await deps.committer.commit(draft.finish());
      if (version === null) cache.delete(name);
      return version;
    } catch (error) {
      cache.delete(name);
      throw error;
    }
  }

  /** The one that came first goes first, which spares the map a change for each operation. */
  function remember(name: string, account: Account, version: string): void {
    // One that is closed is opened again by a write that is not made here.
    if (account.closed) return void cache.delete(name);
    const known = cache.get(name);
    if (known) return void Object.assign(known, { account, version });
    cache.set(name, { account, version });
    if (cache.size <= cachedAccountsMax) return;
    const [oldest = ""] = cache.keys();
    cache.delete(oldest);
  }

  function notify(name: string): void {
    const waiting = listeners.get(name);
    listeners.delete(name);
    waiting?.forEach((wake) => wake());
  }

  return {
    run<T>(ref: AccountRef, operation: Operation<T>): Promise<T> {
      // A wallet has a lane for each connection: an operation is one of a project.
      const laneName = ref.wallet
        ? keyText([nameOf(ref), ref.projectId, ref.user, ref.wallet.connectionId])
        : nameOf(ref);
      return new Promise<T>((resolve, reject) => {
        const waiting = { operation, decide: decider(operation, resolve, reject), reject };
        const lane = lanes.get(laneName);
        if (lane) return void lane.waiting.push(waiting);
        const opened = { ref, waiting: [waiting] };
        lanes.set(laneName, opened);
        drain(laneName, opened);
      });
    },
    changed(ref, signal) {
      const name = nameOf(ref);
      const wakers = listeners.get(name) ?? new Set();
      listeners.set(name, wakers);
      return new Promise((resolve) => {
        const wake = () => {
          wakers.delete(wake);
          if (wakers.size === 0 && listeners.get(name) === wakers) listeners.delete(name);
          signal.removeEventListener("abort", wake);
          resolve();
        };
        wakers.add(wake);
        signal.addEventListener("abort", wake, { once: true });
      });
    },
  };
}

function readRow(row: Row | undefined): { account: Account; version: string | null } {
  return { account: decodeAccount(row?.value ?? null), version: row?.version ?? null };
}

/** What tells accounts apart. */
function nameOf(ref: AccountRef): string {
  const { owner, name } = placeOf(ref);
  return keyText([owner, name]);
}

/** 503: others kept changing the account, and nothing was changed. */
export function accountContended(): ApiError {
  return new ApiError(503, {
    message: "The account is written to from too many places at once. Try again.",
    type: "service_unavailable_error",
    code: "account_contended",
    headers: { "retry-after": "1" },
  });
}

import { type Amount, formatAmount } from "../base/money.ts";
import type { Deps } from "../deps.ts";
import { type NewEvent, newEvent, type Subject, type Trigger } from "../events/event.ts";
import { decodeAccount, requireNotClosed } from "../ledger/account.ts";
import {
  type Authorization,
  chargesOf,
  decodeAuthorization,
  encodeAuthorization,
  formerPayers,
} from "../ledger/authorization.ts";
import type { AuthorizationLink, LinkSubject } from "../paywall/link_subject.ts";
import type { CommitWithEvents } from "../projects/commit_with_events.ts";
import { accountKey, authorizationKey, connectionKey } from "../store/keys.ts";
import { emptyWrite, type Write } from "../store/kv.ts";
import { listConnections, markConnection, type WalletConnection } from "./store.ts";

/**
 * Authorizations to charge a person's wallet. Each user has at most one at a time. All methods
 * throw 403 `user_being_forgotten` while the user is being erased.
 */
export interface Authorizations {
  /**
   * Allows the user to spend; false when the link had already expired or been used. `who` returns
   * the person, and what belongs in the same write.
   */
  approve(
    approval: AuthorizationLink,
    by: { who: Who; dailyCap: Amount },
  ): Promise<boolean>;
  /**
   * Declines; another person's authorization stays. False when the link had expired or been used.
   */
  decline(approval: AuthorizationLink, personId: string | null): Promise<boolean>;
  /**
   * Ends an authorization; false when there was none, or it was given by a person other than
   * `personId`.
   */
  revoke(
    subject: LinkSubject,
    by: { personId: string | null; trigger: Trigger },
  ): Promise<boolean>;
  /** Changes the cap of an authorization; false when this person has none there. */
  setCap(subject: LinkSubject, by: { personId: string; dailyCap: Amount }): Promise<boolean>;
  /** Lists everything that a person has ever decided about. */
  ofPerson(personId: string): Promise<WalletConnection[]>;
}

/** Returns a person who decides, and what belongs in the write of their decision. */
type Who = () => Promise<{ personId: string; write: Write }>;

/** Returns the trigger of an end user on one of the pages. */
export function personTrigger(personId: string): Trigger {
  return { source: "checkout", actorType: "end-user", actorId: personId };
}

/** Creates authorizations over the project's writes. */
export function createAuthorizations(
  { kv, clock, id }: Pick<Deps, "kv" | "clock" | "id">,
  commit: CommitWithEvents,
): Authorizations {
  /** Writes what `decide` returns for the last decision; false when it returns nothing. */
  async function decide(
    { projectId, user }: LinkSubject,
    decision: (last: Authorization | null, personId: string) => {
      next: Authorization;
      events: NewEvent[];
    } | null,
    who: Who = () => Promise.resolve({ personId: "", write: emptyWrite() }),
  ): Promise<boolean> {
    let done = false;
    await commit(projectId, async () => {
      const key = authorizationKey(projectId, user);
      const { personId, write } = await who();
      const [found, own] = await kv.getMany([key, accountKey(projectId, user)]);
      const made = decision(found?.value ? decodeAuthorization(found.value) : null, personId);
      done = made !== null;
      if (!made) return null;
      // Closed while the user is being erased: a new decision would mix with the old records.
      requireNotClosed(decodeAccount(own?.value ?? null));
      const { next, events } = made;
      for (const row of [found, own]) {
        if (row) write.checks.push({ key: row.key, version: row.version });
      }
      write.sets.push({ key, value: encodeAuthorization(next) });
      // A person without a wallet who declines has nothing to find again.
      if (next.personId !== "") {
        markConnection(write, connectionKey(next.personId, projectId, user));
      }
      return { write, events };
    });
    return done;
  }

  /**
   * Never earlier than the decision before, also where a clock was set back: a link is for one
   * decision.
   */
  function decidedAt(approval: AuthorizationLink | null, last: Authorization | null): number {
    return Math.max(clock.now(), approval?.issuedAt ?? 0, last?.decidedAt ?? 0);
  }

  function about(user: string, subjectId: string): Subject {
    return { type: "authorization", id: subjectId, externalId: user };
  }

  return {
    approve: (approval, { who, dailyCap }) =>
      decide(approval, (last, personId) => {
        if (isLinkSuperseded(approval, last)) return null;
        const { user, requestId } = approval;
        // A person who returns continues where they stopped: a day has one cap.
        const own = last?.personId === personId
          ? last
          : last?.former?.find((payer) => payer.personId === personId);
        const former = formerPayers(last, personId);
        const connectionId = own?.connectionId ?? id("con");
        const next: Authorization = {
          connectionId,
          personId,
          status: "active",
          dailyCap: formatAmount(dailyCap),
          ...(own ? chargesOf(own) : { day: "", spent: "0" }),
          decidedAt: decidedAt(approval, last),
          requestId,
          ...(former.length > 0 ? { former } : {}),
          // The counters of the project's own limits belong to the user, whoever pays.
          ...(last?.counters ? { counters: last.counters } : {}),
          ...(last?.use ? { use: last.use } : {}),
          ...(last?.moves ? { moves: last.moves } : {}),
        };
        const subject = about(user, connectionId);
        const data = { externalUserId: user, walletUserId: personId, connectionId };
        const trigger = personTrigger(personId);
        return {
          next,
          events: [newEvent("authorization.completed", { trigger, subject }, data)],
        };
      }, who),
    async decline(approval, personId) {
      const { user, requestId } = approval;
      const trigger = personTrigger(personId ?? user);
      const declined = newEvent("authorization.declined", {
        trigger,
        subject: about(user, requestId),
      }, { externalUserId: user, walletUserId: personId, requestId, reason: "declined" });
      return await decide(approval, (last) => {
        if (isLinkSuperseded(approval, last)) return null;
        const decided = { decidedAt: decidedAt(approval, last), requestId };
        const kept = last?.status === "active" && last.personId !== personId;
        const next: Authorization = last
          ? { ...last, ...decided, status: kept ? "active" : "declined" }
          : {
            ...emptyAuthorization,
            ...decided,
            connectionId: id("con"),
            personId: personId ?? "",
          };
        return { next, events: [declined] };
      });
    },
    revoke: (subject, { personId, trigger }) =>
      decide(subject, (last) => {
        if (last?.status !== "active") return null;
        if (personId !== null && last.personId !== personId) return null;
        const { user } = subject;
        const data = { externalUserId: user, walletUserId: last.personId };
        const named = { trigger, subject: about(user, last.connectionId) };
        return {
          next: { ...last, status: "revoked", decidedAt: decidedAt(null, last), requestId: null },
          events: [newEvent("authorization.revoked", named, data)],
        };
      }),
    setCap: (subject, { personId, dailyCap }) =>
      decide(
        subject,
        (last) =>
          last?.status === "active" && last.personId === personId
            ? { next: { ...last, dailyCap: formatAmount(dailyCap) }, events: [] }
            : null,
      ),
    ofPerson: (personId) => listConnections(kv, personId),
  };
}

/** Whether a decision has been made since the link was created. */
export function isLinkSuperseded(
  { issuedAt }: AuthorizationLink,
  last: Authorization | null,
): boolean {
  return last !== null && last.decidedAt >= issuedAt;
}

const emptyAuthorization = { status: "declined", dailyCap: "0", day: "", spent: "0" } as const;

import { ApiError, badRequest, errorFields, notFound } from "../base/errors.ts";
import { type Amount, toAmount } from "../base/money.ts";
import type { Deps } from "../deps.ts";
import type { Transfers } from "../ledger/transfer.ts";
import { type AuditAction, type AuditActor, auditRow } from "../projects/audit.ts";
import { byUnknown } from "../projects/refused_keys.ts";
import { walletJoinKey, walletJoinsPrefix } from "../store/keys.ts";
import type { Key, Write } from "../store/kv.ts";
import { listAfter } from "../store/scan.ts";
import { readWalletBalance } from "./balances.ts";
import { moveAll } from "./join_moves.ts";
import {
  decodeJoin,
  type JoinConsent,
  joinRemoval,
  joinWrite,
  listJoinsInto,
  ownerOf,
  readJoin,
  type WalletJoin,
} from "./join_rows.ts";
import { readWaysOf, walletExists } from "./ways.ts";

/** One side of a join. */
type JoinSide = "from" | "into";

/**
 * An operator's request for a join. A wallet that nobody can open needs a reason instead of its
 * owner.
 */
interface JoinRequest {
  from: string;
  into: string;
  reasons: { from: string | null; into: string | null };
}

/**
 * Two wallets of one person become one. The operator asks for it; each wallet's owner confirms on a
 * device of theirs, or the operator says why nobody can.
 */
export interface WalletJoins {
  /** Throws 404 for an unknown wallet, 400 for what cannot be joined and for a missing reason. */
  ask(request: JoinRequest, by: AuditActor): Promise<WalletJoin>;
  /** Throws 404 where nothing is asked, 400 once it is done. */
  withdraw(from: string, by: AuditActor): Promise<void>;
  /** The joins for which a wallet's owner is asked. */
  askedOf(personId: string): Promise<WalletJoin[]>;
  /** A wallet's owner confirms; harmless where nothing is asked of them. */
  confirm(from: string, personId: string): Promise<void>;
  /** A wallet's owner declines; harmless where nothing is asked of them. */
  decline(from: string, personId: string): Promise<void>;
  /** Moves back what is about to be taken from a wallet that is part of another one. */
  bringBack(wallet: { personId: string; currency: string }, amount: Amount): Promise<void>;
  /** Moves on what has come into wallets that are part of others; some at each call. */
  sweep(): Promise<void>;
}

const joinsPerSweep = 20;

type JoinDeps = Pick<
  Deps,
  "kv" | "committer" | "clock" | "holders" | "id" | "log" | "randomBytes"
>;

/** Creates joins. */
export function createWalletJoins(deps: JoinDeps, transfers: Transfers): WalletJoins {
  const { kv, committer, clock, log } = deps;
  let after: Key | null = null;

  const auditRowOf = (join: WalletJoin, action: Omit<AuditAction, "target">) =>
    auditRow(deps, null, { ...action, target: join.from });

  async function write(
    { checks, sets, deletes }: Write,
    row: ReturnType<typeof auditRowOf> | null,
  ): Promise<boolean> {
    const rows = row ? [...sets, row] : sets;
    return (await committer.commit({ checks, deletes, sets: rows })) !== null;
  }

  /** Writes what the sides have agreed, and does it once both have. False when it has changed. */
  async function agree(join: WalletJoin, version: string | null, by: AuditActor | null) {
    const { into, consents } = join;
    const isJoined = consents.from !== null && consents.into !== null;
    const next = { ...join, isJoined };
    const action = isJoined ? "wallet.joined" : "wallet.join_asked";
    const made = joinWrite(next, version);
    // Neither may become part of a third wallet, or of each other, at the same time.
    const target = await readJoin(kv, into);
    if (target?.join.isJoined) throw alreadyJoined(into);
    made.checks.push({ key: walletJoinKey(into), version: target?.version ?? null });
    const asker = by ?? byUnknown("console");
    const detail = { into, fromBy: wordsOf(consents.from), intoBy: wordsOf(consents.into) };
    const row = by || isJoined ? auditRowOf(next, { by: asker, action, detail }) : null;
    if (!await write(made, row)) return null;
    if (isJoined) await run(next);
    return next;
  }

  /** Moves the money of a joined wallet. Where that fails, the sweep does it. */
  async function run({ from }: WalletJoin): Promise<void> {
    await ownerOf(kv, from)
      .then((into) => moveAll(deps, transfers, { from, into }))
      .catch((error) => log("error", "wallet_join_failed", errorFields(error)));
  }

  async function pending(from: string) {
    const found = await readJoin(kv, from);
    return found && !found.join.isJoined ? found : null;
  }

  return {
    async ask({ from, into, reasons }, by) {
      if (from === into) throw badRequest("into", "These are one wallet.");
      for (const id of [from, into]) if (!await walletExists(kv, id)) throw notFound("wallet");
      const known = await readJoin(kv, from);
      if (known?.join.isJoined) throw alreadyJoined(from);
      if (known) {
        throw badRequest("from", "This wallet is asked to join another one.", "join_pending");
      }
      const consents = {
        from: await consentOf("from", from, reasons.from),
        into: await consentOf("into", into, reasons.into),
      };
      const join = { from, into, isJoined: false, askedAt: clock.now(), consents };
      return await agree(join, null, by) ?? contended();
    },
    async withdraw(from, by) {
      const found = await readJoin(kv, from);
      if (!found) throw notFound("join");
      if (found.join.isJoined) throw alreadyJoined(from);
      const row = auditRowOf(found.join, { by, action: "wallet.join_withdrawn" });
      if (!await write(joinRemoval(found.join, found.version), row)) contended();
    },
    async askedOf(personId) {
      const own = await readJoin(kv, personId);
      const all = [...own ? [own.join] : [], ...await listJoinsInto(kv, personId)];
      return all.filter(({ isJoined }) => !isJoined);
    },
    async confirm(from, personId) {
      const found = await pending(from);
      const side = found && sideOf(found.join, personId);
      if (!found || !side) return;
      const consents = { ...found.join.consents, [side]: { by: "owner", at: clock.now() } };
      if (!await agree({ ...found.join, consents }, found.version, null)) contended();
    },
    async decline(from, personId) {
      const found = await pending(from);
      if (!found || !sideOf(found.join, personId)) return;
      const by = byUnknown("console");
      const row = auditRowOf(found.join, {
        by,
        action: "wallet.join_declined",
        detail: { personId },
      });
      if (!await write(joinRemoval(found.join, found.version), row)) contended();
    },
    async bringBack({ personId, currency }, amount) {
      const owner = await ownerOf(kv, personId);
      if (owner === personId) return;
      const { balance, held } = await readWalletBalance(deps, { personId, currency });
      const most = amount - (balance - held);
      if (most > 0n) {
        await transfers.move({ currency, from: owner, into: personId, most: toAmount(most) });
      }
    },
    async sweep() {
      const rows = await listAfter(kv, walletJoinsPrefix, { after, limit: joinsPerSweep })
        .catch((error) => {
          // The other sweeps need not wait for it.
          log("error", "wallet_join_failed", errorFields(error));
          return [];
        });
      after = rows.length < joinsPerSweep ? null : rows.at(-1)?.key ?? null;
      for (const { value } of rows) {
        const join = value && decodeJoin(value);
        if (join?.isJoined) await run(join);
      }
    },
  };

  async function consentOf(
    side: JoinSide,
    personId: string,
    reason: string | null,
  ): Promise<JoinConsent | null> {
    const { devices, passkeys, emails } = await readWaysOf(deps, personId);
    const canConfirm = devices + passkeys + emails > 0;
    const param = `reasons.${side}`;
    if (canConfirm && reason !== null) {
      const message = `Its owner can open ${personId}, and confirms: no reason can stand for them.`;
      throw badRequest(param, message, "owner_confirms");
    }
    if (canConfirm) return null;
    if (reason !== null) return { by: "operator", at: clock.now(), reason };
    const message = `No device, passkey or e-mail address opens ${personId}: state the reason.`;
    throw badRequest(param, message, "reason_required");
  }
}

/** Why a side agrees, for the audit trail. */
function wordsOf(consent: JoinConsent | null): string | null {
  if (consent === null) return null;
  return consent.by === "owner" ? "its owner" : `the operator: ${consent.reason}`;
}

function sideOf({ from, into }: WalletJoin, personId: string): JoinSide | null {
  return personId === from ? "from" : personId === into ? "into" : null;
}

function alreadyJoined(id: string): ApiError {
  return badRequest(null, `Wallet ${id} is part of another one.`, "wallet_joined");
}

function contended(): never {
  throw new ApiError(503, { message: "It has just changed. Try again.", code: "contended" });
}

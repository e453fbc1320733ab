import { toBytes } from "../../src/base/json.ts";
import { formatAmount, toAmount } from "../../src/base/money.ts";
import { emptyAccount, encodeAccount } from "../../src/ledger/account.ts";
import { encodeAuthorization } from "../../src/ledger/authorization.ts";
import type { Entry } from "../../src/ledger/entry.ts";
import { accountKey, authorizationKey, entryKey } from "../../src/store/keys.ts";
import type { Write } from "../../src/store/kv.ts";

interface WalletOptions {
  now: number;
  balance: bigint;
  connections: { projectId: string; user: string; dailyCap: bigint }[];
}

const personId = "per_00000000000000000000000ADA";
/** What the person paid in before the simulation began. */
export const paidId = "act_00000000000000000000000000";

/** A wallet as it is once a person has paid into it, and allowed these users to spend of it. */
export function walletWrite({ now, balance, connections }: WalletOptions): Write {
  const [first] = connections;
  const paid: Entry = {
    id: paidId,
    seq: 1,
    prev: null,
    kind: "deposit",
    user: first?.user ?? "",
    projectId: first?.projectId ?? "",
    delta: formatAmount(balance),
    balanceAfter: formatAmount(balance),
    heldAfter: "0",
    shortfall: "0",
    createdAt: now,
    idempotencyKey: null,
    metadata: null,
    usage: null,
    refundedActivityId: null,
  };
  const account = encodeAccount({
    ...emptyAccount(),
    balance: toAmount(balance),
    seq: 1,
    last: paidId,
  });
  const authorizations = connections.map(({ projectId, user, dailyCap }, at) => ({
    key: authorizationKey(projectId, user),
    value: encodeAuthorization({
      connectionId: `con_0000000000000000000000000${at}`,
      personId,
      status: "active",
      dailyCap: formatAmount(dailyCap),
      day: new Date(now).toISOString().slice(0, 10),
      spent: "0",
      decidedAt: now,
      requestId: null,
    }),
  }));
  return {
    checks: [],
    sets: [
      { key: accountKey(personId, "usd"), value: account },
      { key: entryKey(personId, paidId), value: toBytes(paid) },
      ...authorizations,
    ],
    deletes: [],
  };
}

import { holdsPerAccountMax } from "../../base/limits.ts";
import { formatAmount } from "../../base/money.ts";
import { holdingKey } from "../../store/keys.ts";
import type { Kv, Row } from "../../store/kv.ts";
import { countRows, readOrNull, type ScanCounts, verifyAtRest } from "../../store/scan.ts";
import { parseStoredAccount } from "./schemas.ts";

/**
 * How long an ended hold may stay without being a fault, in ms. The sweep ends expired holds every
 * few seconds, but a large number takes it a while.
 */
const holdGraceMs = 10 * 60 * 1000;

/** Returns what is wrong with an account's own record, apart from its entries. */
export async function faultsOfAccount(
  kv: Kv,
  { key, value }: Row,
  { now, counts }: { now: number; counts: ScanCounts },
): Promise<string[]> {
  const [owner, name] = [String(key[1]), String(key[2])];
  countRows(counts, "accounts");
  const account = readOrNull(value, parseStoredAccount);
  if (!account) return [`account ${owner}/${name} cannot be read`];
  const { balance, held, holds, seq, last } = account;
  const faults: string[] = [];
  const say = (wrong: boolean, what: string) => void (wrong && faults.push(what));
  say(balance < 0n, `has a balance of ${formatAmount(balance)}`);
  say(held > balance, `holds ${formatAmount(held)} of ${formatAmount(balance)}`);
  say(
    (last === null) !== (seq === 0),
    `has ${seq} entries, of which ${last ?? "none"} is the last`,
  );
  say(last === null && balance !== 0n, `has ${formatAmount(balance)}, but no entry`);
  say(holds.length > holdsPerAccountMax, `has ${holds.length} holds`);
  say(new Set(holds.map(({ id }) => id)).size < holds.length, "lists a hold twice");
  for (const { id, amount, used, expiresAt } of holds) {
    const late = `is still there ${Math.round((now - expiresAt) / 1000)} s after its expiry`;
    say(expiresAt < now - holdGraceMs, `has hold ${id}, which ${late}`);
    say(amount < 0n || used < 0n, `has hold ${id}, which is less than zero`);
  }
  countRows(counts, "holds", holds.length);
  if (holds.length > 0) {
    // The row changes in one write with the account.
    faults.push(
      ...await verifyAtRest(kv, { key, counts }, async (row) => {
        const now = readOrNull(row.value, parseStoredAccount);
        const connections = new Set(now?.holds.map((hold) => hold.connectionId));
        const rows = await kv.getMany([...connections].map((id) => holdingKey(owner, name, id)));
        return rows.some((found) => found.value === null)
          ? ["has holds, but is missing in the hold index"]
          : [];
      }),
    );
  }
  return faults.map((fault) => `account ${owner}/${name} ${fault}`);
}

import { fromDecimal } from "../../base/money.ts";
import { entryKey } from "../../store/keys.ts";
import type { Kv } from "../../store/kv.ts";
import { readOrNull } from "../../store/scan.ts";
import { type Entry, noProject } from "../entry.ts";
import { parseStoredEntry } from "./schemas.ts";

/**
 * Returns the faults of an entry as a transfer: the same amount left one wallet and arrived in the
 * other, in one write, and each of the two entries names the other.
 */
export async function faultsOfTransfer(
  kv: Kv,
  { owner }: { owner: string },
  { id, kind, transfer, projectId, delta }: Entry,
): Promise<string[]> {
  const isTransfer = kind === "transfer";
  if (!isTransfer && !transfer && projectId !== noProject) return [];
  if (!isTransfer || !transfer || projectId !== noProject) return ["is only partly a transfer"];
  const { wallet, activityId } = transfer;
  const { value } = await kv.get(entryKey(wallet, activityId));
  const other = readOrNull(value, parseStoredEntry);
  const about = `moves ${delta} between wallets, and ${activityId} of ${wallet}`;
  if (!other) return [`${about} is missing`];
  if (other.transfer?.activityId !== id || other.transfer.wallet !== owner) {
    return [`${about} does not name it`];
  }
  const sum = fromDecimal(delta) + fromDecimal(other.delta);
  return sum === 0n ? [] : [`${about} moves ${other.delta}`];
}

import { hash } from "node:crypto";
import { z } from "zod";
import { fromBytes, toBytes } from "../../base/json.ts";
import type { Committer } from "../../store/commit.ts";
import { movedKey, verifiedKey } from "../../store/keys.ts";
import { emptyWrite, type Row } from "../../store/kv.ts";
import { readOrNull } from "../../store/scan.ts";
import type { Entry } from "../entry.ts";

/** The sum of the fingerprints of entries, in hex. */
export const fingerprints = z.string().regex(/^[0-9a-f]{32}$/);

/**
 * What the last verification of an account without a fault has seen. It states that the account's
 * entries up to `last` were sound at that time, and lets a whole verification notice that one of
 * them has changed since.
 */
export const markSchema = z.strictObject({
  /** The account's last entry, its number, and the balance after it. */
  last: z.string().min(1).max(64),
  seq: z.int().min(1),
  balance: z.string().regex(/^-?\d{1,36}(\.\d{1,9})?$/),
  /** The sum of the fingerprints of all entries up to that one. */
  sum: fingerprints,
  /** In milliseconds since 1970. */
  at: z.number(),
});
/** The state of an account at its last verification without a fault. */
export type VerifiedMark = z.output<typeof markSchema>;

/** Reads a mark; null where there is none, or where archiving has ended it. */
export function readMark({ value }: Pick<Row, "value">): VerifiedMark | null {
  return readOrNull(value, (bytes) => markSchema.parse(fromBytes<unknown>(bytes)));
}

/** The value that replaces the mark of an account whose older entries have been archived. */
export const endedMark: Uint8Array = toBytes(null);

const modulus = 1n << 128n;

/** The sum of no fingerprints. */
export const noFingerprints = "0".repeat(32);

/** Adds an entry's fingerprint to a sum. The order in which entries are added does not matter. */
export function addFingerprint(sum: string, entry: Entry): string {
  return ((BigInt(`0x${sum}`) + fingerprintOf(entry)) % modulus).toString(16).padStart(32, "0");
}

/** Adds two sums of different entries. */
export function addSums(one: string, other: string): string {
  return ((BigInt(`0x${one}`) + BigInt(`0x${other}`)) % modulus).toString(16).padStart(32, "0");
}

/**
 * A hash of the fields of an entry that never change. An erasure replaces names, keys and metadata.
 */
function fingerprintOf(entry: Entry): bigint {
  const { id, seq, kind, delta, balanceAfter, heldAfter, shortfall, createdAt } = entry;
  const { requestId: _, ...usage } = entry.usage ?? {};
  const fixed = [
    id,
    seq,
    kind,
    delta,
    balanceAfter,
    heldAfter,
    shortfall,
    createdAt,
    entry.refundedActivityId,
    usage,
  ];
  return BigInt(`0x${hash("sha256", JSON.stringify(fixed), "hex").slice(0, 32)}`);
}

/**
 * Writes a mark, unless another verification, an archiving or a move of the owner's accounts has
 * come between: `versions` are those of the mark and of the move when the account was read.
 */
export async function writeMark(
  committer: Pick<Committer, "commit">,
  { owner, name }: { owner: string; name: string },
  { mark, versions }: {
    mark: VerifiedMark;
    versions: { mark: string | null; moved: string | null };
  },
): Promise<void> {
  const key = verifiedKey(owner, name);
  await committer.commit({
    ...emptyWrite(),
    checks: [
      { key, version: versions.mark },
      { key: movedKey(owner), version: versions.moved },
    ],
    sets: [{ key, value: toBytes(mark) }],
  });
}

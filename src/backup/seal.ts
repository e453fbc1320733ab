import { createHash, createHmac, type Hash, hkdfSync } from "node:crypto";
import type { Secret } from "../base/secret.ts";

// The last line of a backup states the length of everything before it and, in hex, either its
// SHA-256 (version 1), or the first half of that and the first half of an HMAC by SECRETS_KEY
// (version 2). Either half reveals a file that was cut off or damaged; only the HMAC reveals one
// that somebody changed and sealed anew. SQLite, which uses the number of pages in its header,
// still opens the file as the database.
const sealPattern = /^\nfarebox-backup ([12]) (\d{16}) ([0-9a-f]{64})\n$/;
const halfChars = 32;

/** The length of a seal, in bytes. */
export const sealBytes = 100;

/** The bytes before a seal. */
export interface SealedSum {
  bytes: number;
  /** In hex. */
  sha256: string;
}

/** What a seal states about the bytes before it. */
export interface Seal {
  bytes: number;
  /** In hex; only its first half where there is a proof. */
  sha256: string;
  /** The first half of the HMAC, in hex; null without `SECRETS_KEY`, and in backups of 0.9.0. */
  proof: string | null;
}

/** Counts and hashes bytes that pass through. */
export class Sealing {
  #bytes = 0;
  readonly #hash: Hash = createHash("sha256");

  add(piece: Uint8Array): void {
    this.#bytes += piece.length;
    this.#hash.update(piece);
  }

  /** Returns the sum of what has passed. Call it once, at the end. */
  end(): SealedSum {
    return { bytes: this.#bytes, sha256: this.#hash.digest("hex") };
  }
}

/** Encodes the seal for the end of a backup, with a proof where there is a key. */
export function encodeSeal(sum: SealedSum, keys: readonly Secret[] = []): Uint8Array {
  const length = sum.bytes.toString().padStart(16, "0");
  const [proof] = proofsOf(sum, keys);
  const rest = proof === undefined
    ? `1 ${length} ${sum.sha256}`
    : `2 ${length} ${sum.sha256.slice(0, halfChars)}${proof}`;
  return new TextEncoder().encode(`\nfarebox-backup ${rest}\n`);
}

/**
 * Decodes the last bytes of a backup; null when they are not a seal, as in a file that was cut off.
 */
export function decodeSeal(end: Uint8Array): Seal | null {
  const [, version, bytes, digest] = sealPattern.exec(new TextDecoder().decode(end)) ?? [];
  if (!bytes || !digest) return null;
  return version === "1" ? { bytes: Number(bytes), sha256: digest, proof: null } : {
    bytes: Number(bytes),
    sha256: digest.slice(0, halfChars),
    proof: digest.slice(halfChars),
  };
}

/** Whether the bytes are those that were sealed, if nobody has sealed them anew. */
export function isWhole({ bytes, sha256 }: Seal, found: SealedSum): boolean {
  return found.bytes === bytes && found.sha256.startsWith(sha256);
}

/**
 * Whether somebody who has one of the keys has sealed the bytes: the service, with its key or,
 * after a rotation, an older one.
 */
export function isProven(
  { proof }: Seal,
  found: SealedSum,
  keys: readonly Secret[],
): boolean {
  return proof !== null && proofsOf(found, keys).includes(proof);
}

/** The proofs by keys of `SECRETS_KEY`. Each key is derived for this purpose alone (RFC 5869). */
function proofsOf({ bytes, sha256 }: SealedSum, keys: readonly Secret[]): string[] {
  return keys.map((key) => {
    const root = Uint8Array.fromBase64(key.reveal());
    const derived = new Uint8Array(hkdfSync("sha256", root, "", "farebox backups", 32));
    const hmac = createHmac("sha256", derived).update(`farebox-backup 2 ${bytes} ${sha256}`);
    return hmac.digest("hex").slice(0, halfChars);
  });
}

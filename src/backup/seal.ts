import { createHash, type Hash } from "node:crypto";

// The last line of a backup states the length and SHA-256 of everything before it. A file that was
// cut off or changed is recognized, however it was transferred; and SQLite, which uses the number
// of pages in its header, still opens the file as the database.
const sealPattern = /^\nfarebox-backup 1 (\d{16}) ([0-9a-f]{64})\n$/;

/** The length of a seal, in bytes. */
export const sealBytes = 100;

/** What a seal states about the bytes before it. */
export interface Seal {
  bytes: number;
  /** In hex. */
  sha256: string;
}

/** Counts and hashes bytes that pass through. */
export class Sealing {
  #bytes = 0;
  readonly #hash: Hash = createHash("sha256");

  add(piece: Uint8Array): void {
    this.#bytes += piece.length;
    this.#hash.update(piece);
  }

  /** Returns the seal of what has passed. Call it once, at the end. */
  end(): Seal {
    return { bytes: this.#bytes, sha256: this.#hash.digest("hex") };
  }
}

/** Encodes the seal for the end of a backup. */
export function encodeSeal({ bytes, sha256 }: Seal): Uint8Array {
  const length = bytes.toString().padStart(16, "0");
  return new TextEncoder().encode(`\nfarebox-backup 1 ${length} ${sha256}\n`);
}

/**
 * Decodes the last bytes of a backup; null when they are not a seal, as in a file that was cut off.
 */
export function decodeSeal(end: Uint8Array): Seal | null {
  const [, bytes, sha256] = sealPattern.exec(new TextDecoder().decode(end)) ?? [];
  return bytes && sha256 ? { bytes: Number(bytes), sha256 } : null;
}

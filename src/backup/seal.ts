import { createHash, type Hash } from "node:crypto";

// The last line of a backup says how long what comes before it is, and its SHA-256. So a file that
// was cut off or changed is known by itself, whatever brought it; and SQLite, which goes by the
// number of pages in its header, still opens the file as the database that it is.
const sealPattern = /^\nfarebox-backup 1 (\d{16}) ([0-9a-f]{64})\n$/;

/** How long a seal is, in bytes. */
export const sealBytes = 100;

/** What a seal says of the bytes before it. */
export interface Seal {
  bytes: number;
  /** In hex. */
  sha256: string;
}

/** Counts and hashes what passes by. */
export class Sealing {
  #bytes = 0;
  readonly #hash: Hash = createHash("sha256");

  add(piece: Uint8Array): void {
    this.#bytes += piece.length;
    this.#hash.update(piece);
  }

  /** What has passed by. Once, at the end. */
  end(): Seal {
    return { bytes: this.#bytes, sha256: this.#hash.digest("hex") };
  }
}

/** The seal as it stands at the end of a backup. */
export function encodeSeal({ bytes, sha256 }: Seal): Uint8Array {
  const length = bytes.toString().padStart(16, "0");
  return new TextEncoder().encode(`\nfarebox-backup 1 ${length} ${sha256}\n`);
}

/** Reads the last bytes of a backup; null when they are no seal, as of a file that was cut off. */
export function decodeSeal(end: Uint8Array): Seal | null {
  const [, bytes, sha256] = sealPattern.exec(new TextDecoder().decode(end)) ?? [];
  return bytes && sha256 ? { bytes: Number(bytes), sha256 } : null;
}

import { DatabaseSync } from "node:sqlite";
import {
  decodeSeal,
  isWhole,
  type Seal,
  sealBytes,
  type SealedSum,
  Sealing,
} from "../../src/backup/seal.ts";
import { refused } from "./failure.ts";
import { foreignSchema } from "./kv_schema.ts";

/** Separates a backup's bytes from the seal at their end, chunk by chunk. */
export class SealReader {
  readonly #sealing = new Sealing();
  #tail = new Uint8Array();

  /** Takes the next chunk; returns what is known to come before the seal. */
  add(piece: Uint8Array): Uint8Array {
    const all = new Uint8Array(this.#tail.length + piece.length);
    all.set(this.#tail);
    all.set(piece, this.#tail.length);
    const end = Math.max(0, all.length - sealBytes);
    this.#tail = all.slice(end);
    const known = all.subarray(0, end);
    this.#sealing.add(known);
    return known;
  }

  /**
   * Returns the seal and the sum of what is before it, once everything has been added. Throws
   * `Failure` where the seal is missing or does not match.
   */
  end(name: string): { seal: Seal; sum: SealedSum } {
    const said = decodeSeal(this.#tail);
    if (!said) {
      throw refused(`${name} is not a backup, or not a complete one: its last line is missing.`);
    }
    const found = this.#sealing.end();
    if (isWhole(said, found)) return { seal: said, sum: found };
    throw refused(
      `${name} is damaged: it has ${found.bytes} bytes with the SHA-256 ${found.sha256}, ` +
        `but was created with ${said.bytes} and ${said.sha256}${said.proof === null ? "" : "…"}.`,
    );
  }
}

/**
 * Compares its schema with Deno KV's, and has SQLite check every page. Throws `Failure` when it is
 * not a sound Farebox database.
 */
export function checkDatabase(path: string, name: string): void {
  let faults: string[];
  try {
    using database = new DatabaseSync(path, { readOnly: true });
    faults = foreignSchema(database).map((foreign) => `it has ${foreign}`);
    if (faults.length === 0) {
      faults = database.prepare("PRAGMA integrity_check").all().map((row) =>
        String(Object.values(row))
      );
      if (faults[0] === "ok") return;
    }
  } catch (error) {
    faults = [error instanceof Error ? error.message : String(error)];
  }
  throw refused(`${name} is not a sound Farebox database: ${faults.slice(0, 3).join("; ")}.`);
}

import { DatabaseSync } from "node:sqlite";
import { decodeSeal, type Seal, sealBytes, Sealing } from "../../src/backup/seal.ts";
import { refused } from "./failure.ts";

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
   * Returns the seal, once everything has been added. Throws `Failure` where it is missing or does
   * not match.
   */
  end(name: string): Seal {
    const said = decodeSeal(this.#tail);
    if (!said) {
      throw refused(`${name} is not a backup, or not a complete one: its last line is missing.`);
    }
    const found = this.#sealing.end();
    if (found.bytes === said.bytes && found.sha256 === said.sha256) return said;
    throw refused(
      `${name} is damaged: it has ${found.bytes} bytes with the SHA-256 ${found.sha256}, ` +
        `but was created with ${said.bytes} and ${said.sha256}.`,
    );
  }
}

/** Has SQLite check every page. Throws `Failure` when it is not a sound Farebox database. */
export function checkDatabase(path: string, name: string): void {
  let faults: string[];
  try {
    using database = new DatabaseSync(path, { readOnly: true });
    faults = database.prepare("PRAGMA integrity_check").all().map((row) =>
      String(Object.values(row))
    );
    if (faults[0] === "ok") {
      database.prepare("SELECT k, v FROM kv LIMIT 1").get();
      return;
    }
  } catch (error) {
    faults = [error instanceof Error ? error.message : String(error)];
  }
  throw refused(`${name} is not a sound Farebox database: ${faults.slice(0, 3).join("; ")}.`);
}

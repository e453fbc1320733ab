import { keyText } from "../store/batch.ts";
import type { Key, Row, Write } from "../store/kv.ts";

/** The rows beside the account that a transaction has read, and its changes to them. */
export class TxRows {
  readonly #write: Write;
  readonly #values = new Map<string, Uint8Array | null>();
  readonly #puts = new Map<string, Write["sets"][number]>();

  constructor(write: Write, rows: readonly Row[]) {
    this.#write = write;
    for (const { key, value } of rows) this.#values.set(keyText(key), value);
  }

  /** Returns the row as this write will leave it; null where it is absent or was not read. */
  get(key: Key): Uint8Array | null {
    return this.#values.get(keyText(key)) ?? null;
  }

  put(key: Key, value: Uint8Array): void {
    const text = keyText(key);
    this.#values.set(text, value);
    this.#write.deletes = this.#write.deletes.filter((other) => keyText(other) !== text);
    const pending = this.#puts.get(text);
    if (pending) return void (pending.value = value);
    const set = { key, value };
    this.#puts.set(text, set);
    this.#write.sets.push(set);
  }

  remove(key: Key): void {
    const text = keyText(key);
    this.#values.set(text, null);
    const pending = this.#puts.get(text);
    this.#puts.delete(text);
    this.#write.sets = this.#write.sets.filter((set) => set !== pending);
    this.#write.deletes.push(key);
  }
}

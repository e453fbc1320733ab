import { Buffer } from "node:buffer";
import { fromBytes } from "../../src/base/json.ts";
import type { Entry } from "../../src/ledger/entry.ts";
import type { ForgetJob } from "../../src/ledger/forget_account.ts";
import type { Write } from "../../src/store/kv.ts";
import type { MemoryStore } from "./memory_store.ts";
import type { Violations } from "./violations.ts";

/** Tracks erased users: their entries only change in names, and in the end nothing names them. */
export class ForgottenAudit {
  /** By pseudonym: the users who are being erased, or were. */
  readonly #users = new Map<string, string>();
  readonly #violations: Violations;

  constructor(violations: Violations) {
    this.#violations = violations;
  }

  /** Called with each write that has landed, before its entries. */
  landed({ sets }: Write): void {
    for (const { key, value } of sets) {
      if (key[0] !== "forget_job") continue;
      const { pseudonym, user } = fromBytes<ForgetJob>(value);
      this.#users.set(pseudonym, user);
    }
  }

  /**
   * An entry that is written again: with a pseudonym for the user, and without the app's metadata.
   */
  renamed(known: Entry, entry: Entry): void {
    const isFine = this.#users.get(entry.user) === known.user &&
      bookedIn(known) === bookedIn(entry);
    const about = () => `${JSON.stringify(known)} -> ${JSON.stringify(entry)}`;
    this.#violations.must(isFine, "a recorded entry stays recorded", about);
  }

  /** In a simulation, no one returns under the name of an erased user. */
  atTheEnd(store: MemoryStore): void {
    const users = new Set(this.#users.values());
    if (users.size === 0) return;
    for (const { key, value } of store.list({ prefix: [], limit: 1_000_000 })) {
      const text = Buffer.from(value ?? []);
      for (const user of users) {
        const isNamed = key.includes(user) || text.includes(user);
        const about = () => `${key.join(" ")}: ${text} names ${user}`;
        this.#violations.must(!isNamed, "nothing names an erased user", about);
      }
    }
  }
}

/** Everything except the user, and what their app provided. */
function bookedIn(entry: Entry): string {
  const usage = entry.usage && { ...entry.usage, requestId: null };
  return JSON.stringify({ ...entry, user: null, metadata: null, idempotencyKey: null, usage });
}

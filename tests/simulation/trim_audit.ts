import { timeOfId } from "../../src/base/ids.ts";
import type { Key, Write } from "../../src/store/kv.ts";
import type { Delivery } from "../../src/webhooks/schema.ts";
import type { MemoryStore } from "./memory_store.ts";
import type { Violations } from "./violations.ts";

/** How long deliveries are kept, in days. */
export const retentionDays = 1;
const dayMs = 24 * 60 * 60 * 1000;

/**
 * After this time nothing of them is left, in ms: an event outlives its deliveries by eight days.
 */
export const allTrimmedAfterMs = (retentionDays + 8 + 1) * dayMs;

/** Records that are only kept for a time, by the first part of their keys. */
const passing = ["delivery", "log", "event", "redelivery_job", "chat_replay"];

/**
 * Tracks the removal of deliveries and events: only old and ended ones, and in time all of them.
 */
export class TrimAudit {
  readonly #deliveries: Map<string, Delivery>;
  readonly #violations: Violations;
  readonly #now: () => number;
  readonly #toleranceMs: number;

  constructor(
    deliveries: Map<string, Delivery>,
    { violations, now, clockErrorMaxMs }: {
      violations: Violations;
      now: () => number;
      clockErrorMaxMs: number;
    },
  ) {
    this.#deliveries = deliveries;
    this.#violations = violations;
    this.#now = now;
    this.#toleranceMs = 2 * clockErrorMaxMs;
  }

  /** Called with each write that has landed, before its deliveries. */
  landed({ deletes }: Write): void {
    for (const key of deletes) {
      if (key[0] === "delivery") this.#remove(key);
    }
    const gone = deletes.filter(([name]) => name === "event").map(([, , id]) => id);
    if (gone.length === 0) return;
    for (const { eventId, id } of this.#deliveries.values()) {
      const isKept = !gone.includes(eventId);
      this.#violations.must(
        isKept,
        "an event outlives its deliveries",
        () => `${eventId} of ${id}`,
      );
    }
  }

  #remove([, , id = ""]: Key): void {
    const delivery = this.#deliveries.get(String(id));
    const about = () => `${id}: ${JSON.stringify(delivery)}`;
    const isOld = timeOfId(String(id)) < this.#now() - retentionDays * dayMs + this.#toleranceMs;
    const hasEnded = delivery !== undefined && delivery.status !== "pending";
    this.#violations.must(isOld && hasEnded, "only old and ended records are removed", about);
    this.#deliveries.delete(String(id));
  }

  /** Whether it was made while everything else grew old, such as the event of an alert. */
  #isYoung(key: Key): boolean {
    const id = key.map(String).find((part) => /^(dly|evt)_/.test(part));
    return id !== undefined && timeOfId(id) > this.#now() - allTrimmedAfterMs;
  }

  /** Called once everything is old. */
  atTheEnd(store: MemoryStore): void {
    for (const name of passing) {
      const rows = store.list({ prefix: [name], limit: 10_000 });
      const left = rows.find(({ key }) => !this.#isYoung(key));
      this.#violations.must(!left, "old records are removed", () => JSON.stringify(left?.key));
    }
  }
}

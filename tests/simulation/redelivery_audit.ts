import { fromBytes } from "../../src/base/json.ts";
import type { Write } from "../../src/store/kv.ts";
import type { Delivery, RedeliveryJob } from "../../src/webhooks/schema.ts";
import type { Violations } from "./violations.ts";

/**
 * Tracks redeliveries of all that failed: each failed one becomes pending again, and each job ends.
 */
export class RedeliveryAudit {
  readonly #jobs = new Map<string, RedeliveryJob>();
  /** Deliveries that had failed when a job started, and have not become pending since. */
  readonly #owed = new Map<string, RedeliveryJob>();
  /** Made pending again by the current write. */
  #reopened = 0;
  readonly #violations: Violations;

  constructor(violations: Violations) {
    this.#violations = violations;
  }

  /** Called with a delivery's new state. */
  moved(before: Delivery | undefined, after: Delivery): void {
    if (!before || before.status === "pending" || after.status !== "pending") return;
    this.#owed.delete(after.id);
    this.#reopened++;
  }

  /** Called with each write that has landed, after its deliveries. */
  landed({ sets }: Write, deliveries: ReadonlyMap<string, Delivery>): void {
    for (const { key, value } of sets) {
      if (key[0] === "redelivery_job") this.#goOn(fromBytes(value), deliveries);
    }
    this.#reopened = 0;
  }

  #goOn(job: RedeliveryJob, deliveries: ReadonlyMap<string, Delivery>): void {
    const before = this.#jobs.get(job.id);
    this.#jobs.set(job.id, job);
    if (!before) return this.#owe(job, deliveries);
    const goesOn = before.status === "running" && job.from >= before.from;
    const counts = job.redelivered - before.redelivered <= this.#reopened;
    const about = () => `${JSON.stringify(before)} -> ${JSON.stringify(job)}`;
    this.#violations.must(goesOn, "a redelivery only moves forward, to one end", about);
    this.#violations.must(counts, "a redelivery counts what it does", about);
  }

  #owe(job: RedeliveryJob, deliveries: ReadonlyMap<string, Delivery>): void {
    for (const { id, subscriptionId, status } of deliveries.values()) {
      const isMeant = subscriptionId === job.subscriptionId && id >= job.from && id < job.until;
      if (isMeant && status === "error") this.#owed.set(id, job);
    }
  }

  /** Whether all jobs have ended. */
  get isQuiet(): boolean {
    return [...this.#jobs.values()].every(({ status }) => status === "done");
  }

  atTheEnd(): void {
    const [left] = this.#owed;
    this.#violations.must(!left, "failed deliveries are redelivered", () => JSON.stringify(left));
  }
}

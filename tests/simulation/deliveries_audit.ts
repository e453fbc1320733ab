import { fromBytes } from "../../src/base/json.ts";
import type { Event } from "../../src/events/event.ts";
import type { Entry } from "../../src/ledger/entry.ts";
import type { Project } from "../../src/projects/schema.ts";
import { projectKey } from "../../src/store/keys.ts";
import type { Key, Write } from "../../src/store/kv.ts";
import type { Delivery, Subscription } from "../../src/webhooks/schema.ts";
import type { MemoryStore } from "./memory_store.ts";
import type { Post, Receivers } from "./receivers.ts";
import { RedeliveryAudit } from "./redelivery_audit.ts";
import { TrimAudit } from "./trim_audit.ts";
import type { Violations } from "./violations.ts";

const entryEvents: Record<Exclude<Entry["kind"], "carried">, string | null> = {
  deposit: "balance.deposit.created",
  charge: "balance.charge.created",
  refund: "balance.refund.created",
  usage: "usage.charge.created",
  expired: "usage.charge.created",
  trial: "balance.trial.granted",
  // It belongs to no project.
  transfer: null,
};

/** A store error this long before an attempt may be the reason for its repetition, in ms. */
const excuseMs = 45_000;

interface Rules {
  attemptsMax: number;
  backoffBaseMs: number;
  /** How wrong any process's clock may be. */
  clockErrorMaxMs: number;
}

/**
 * Clocks that differ by more than this make processes take others' attempts for ended, and repeat
 * them.
 */
const clocksAgreeMs = 2_000;

/** Tracks events from the writes that cause them to the receivers' own ledgers. */
export class DeliveriesAudit {
  readonly #store: MemoryStore;
  readonly #receivers: Receivers;
  readonly #violations: Violations;
  readonly #rules: Rules;
  /** The subscriptions when an event landed, by event and subscription. */
  readonly #expected = new Map<string, { eventId: string; subscriptionId: string }>();
  readonly #deliveries = new Map<string, Delivery>();
  /** Entries and events that were seen before: writing them again only renames. */
  readonly #known = new Set<string>();
  readonly #redeliveries: RedeliveryAudit;
  readonly #trim: TrimAudit;
  readonly #projects = new Map<string, { version: string | null; project: Project }>();
  #faultAt = -Infinity;
  #now: () => number;

  constructor(
    { store, receivers, violations, rules, now }: {
      store: MemoryStore;
      receivers: Receivers;
      violations: Violations;
      rules: Rules;
      now: () => number;
    },
  ) {
    this.#store = store;
    this.#receivers = receivers;
    this.#violations = violations;
    this.#rules = rules;
    this.#now = now;
    this.#redeliveries = new RedeliveryAudit(violations);
    const { clockErrorMaxMs } = rules;
    this.#trim = new TrimAudit(this.#deliveries, { violations, now, clockErrorMaxMs });
    receivers.onPost = (post, before) => this.#posted(post, before);
  }

  get expected(): number {
    return this.#expected.size;
  }

  /** A crash, or an error of the store: a reason to repeat an attempt. */
  fault(): void {
    this.#faultAt = this.#now();
  }

  /** Whether nothing is left to redeliver. */
  get isQuiet(): boolean {
    return this.#redeliveries.isQuiet;
  }

  landed(write: Write): void {
    const { sets } = write;
    this.#trim.landed(write);
    const events: Event[] = [];
    for (const { key, value } of sets) {
      if (key[0] === "event" && this.#isNew(key)) events.push(fromBytes(value));
      if (key[0] === "delivery") this.#moved(fromBytes(value));
    }
    this.#redeliveries.landed(write, this.#deliveries);
    for (const event of events) this.#expect(event);
    for (const { key, value } of sets) {
      if (key[0] !== "entry" || !this.#isNew(key)) continue;
      this.#told(String(key[1]), fromBytes(value), events);
    }
    for (const { key } of sets) {
      if (key[0] !== "project") continue;
      this.#archived(String(key[1]), events);
      this.#noteProject(String(key[1]));
    }
  }

  #isNew([, , id = ""]: Key): boolean {
    const isNew = !this.#known.has(String(id));
    this.#known.add(String(id));
    return isNew;
  }

  /** The project as this write leaves it, and as it was before. */
  #projectOf(id: string): { before: Project; after: Project } {
    const { value, version } = this.#store.read(projectKey(id));
    const known = this.#projects.get(id);
    if (known?.version === version) return { before: known.project, after: known.project };
    const project = fromBytes<Project>(value ?? new Uint8Array());
    return { before: known?.project ?? project, after: project };
  }

  #noteProject(id: string): void {
    const { value, version } = this.#store.read(projectKey(id));
    const project = fromBytes<Project>(value ?? new Uint8Array());
    this.#projects.set(id, { version, project });
  }

  /**
   * Its subscriptions, in either reading of this write: if it also changes them, its events may
   * have happened before or after that.
   */
  #listenersTo(projectId: string, type: string): string[] {
    const { before, after } = this.#projectOf(projectId);
    const isBilling = /^(balance|usage)\./.test(type);
    if (isBilling && !after.billingEvents) return [];
    const wanted = after.listeners.filter(({ events }) =>
      events.some((name) =>
        name === "*" || name === type || (name.endsWith("*") && type.startsWith(name.slice(0, -1)))
      )
    ).map(({ subscriptionId }) => subscriptionId);
    const knownBefore = new Set(before.listeners.map(({ subscriptionId }) => subscriptionId));
    return wanted.filter((id) => knownBefore.has(id));
  }

  #expect({ id, paywallId, type }: Event): void {
    for (const subscriptionId of this.#listenersTo(paywallId, type)) {
      this.#expected.set(`${id} ${subscriptionId}`, { eventId: id, subscriptionId });
    }
  }

  /** An entry's event is written with it, if there is a subscriber. */
  #told(owner: string, { id, kind, projectId }: Entry, events: Event[]): void {
    if (kind === "carried") return;
    const type = entryEvents[kind];
    if (type === null) return;
    if (this.#listenersTo(projectId ?? owner, type).length === 0) return;
    const told = events.some((event) => event.type === type && event.data.activityId === id);
    this.#must(told, "money emits its event in the same write", () => `${type} of ${id}`);
  }

  /** The archiving of a project emits its event with the same write. */
  #archived(id: string, events: Event[]): void {
    const { before, after } = this.#projectOf(id);
    if (before.status === after.status || this.#listenersTo(id, "archived").length === 0) return;
    const told = events.some(({ type, paywallId }) => type === "archived" && paywallId === id);
    this.#must(told, "archiving emits its event in the same write", () => id);
  }

  /** Called with a delivery's new state. */
  #moved(after: Delivery): void {
    const before = this.#deliveries.get(after.id);
    this.#deliveries.set(after.id, after);
    this.#redeliveries.moved(before, after);
    const about = () => `${JSON.stringify(before)} -> ${JSON.stringify(after)}`;
    const attempts = before?.attempts ?? 0;
    const used = after.attempts - after.attemptsBefore;
    this.#must(used <= this.#rules.attemptsMax, "attempts within the maximum", about);
    const steps = after.attempts - attempts;
    this.#must(steps === 0 || steps === 1, "one result for one attempt", about);
    const again = after.attemptsBefore > (before?.attemptsBefore ?? 0);
    const ended = before && before.status !== "pending";
    const stays = before?.status === after.status && steps === 0;
    const isFine = !ended || stays || again || isReopened(before, after);
    this.#must(isFine, "an ended delivery stays ended", about);
    if (steps === 1) this.#count(after, about);
  }

  /** The result of an attempt belongs to one that the receiver knows, and to no other result. */
  #count({ id, lastAttempt }: Delivery, about: () => string): void {
    const posts = this.#receivers.posts.get(id) ?? [];
    const begun = posts.filter((one) => !one.counted && one.startedAt === lastAttempt?.at);
    // By a coarse clock two attempts started at the same time.
    const post = begun.find(({ status }) => status === lastAttempt?.responseCode) ?? begun[0];
    this.#must(post !== undefined, "one result for one attempt", about);
    if (!post) return;
    post.counted = true;
    const agrees = lastAttempt?.responseCode === post.status || lastAttempt?.responseCode === null;
    this.#must(agrees, "the receiver's ledger agrees", about);
  }

  #posted(post: Post, before: Post | undefined): void {
    const about = () => `${JSON.stringify(before)} then ${JSON.stringify(post)}`;
    const toleranceMs = 2 * this.#rules.clockErrorMaxMs;
    const stored = this.#deliveries.get(post.deliveryId);
    // A repeated attempt was leased before the result of the first one: it needs an excuse, below.
    const isNew = stored !== undefined && post.attempt > stored.attempts;
    if (isNew && stored.attempts > 0 && stored.nextRetryAt !== null) {
      this.#must(
        post.startedAt >= stored.nextRetryAt - toleranceMs,
        "retries are never early",
        () => `${about()} before ${stored.nextRetryAt}`,
      );
    }
    if (!before) return;
    if (post.attempt === before.attempt + 1) {
      const used = before.attempt - (stored?.attemptsBefore ?? 0);
      const wait = this.#rules.backoffBaseMs * 2 ** (used - 1) * 0.5;
      const earliest = (before.endedAt ?? before.startedAt) + Math.max(wait, before.retryAfterMs);
      const asked = stored?.attemptsBefore === before.attempt ||
        post.startedAt >= Math.floor(earliest) - toleranceMs;
      this.#must(asked, "retries are never early", about);
      return;
    }
    // Where clocks disagree, a lease ends early for another process: its attempt may come last, and
    // be followed by the one after those that were recorded.
    const clocksDisagree = toleranceMs > clocksAgreeMs;
    const isNext = post.attempt === (stored?.attempts ?? 0) + 1;
    const isKnown = post.attempt === before.attempt ||
      (clocksDisagree && (post.attempt < before.attempt || isNext));
    this.#must(isKnown, "one result for one attempt", about);
    const excused = this.#faultAt >= before.startedAt - excuseMs || clocksDisagree;
    this.#must(excused, "no attempt is repeated without a reason", about);
  }

  atTheEnd(): void {
    this.#redeliveries.atTheEnd();
    const rows = this.#store.list({ prefix: ["delivery"], limit: 100_000 });
    const byTarget = new Map<string, Delivery>();
    for (const { value } of rows) {
      const delivery = fromBytes<Delivery>(value ?? new Uint8Array());
      const name = `${delivery.eventId} ${delivery.subscriptionId}`;
      this.#must(!byTarget.has(name), "one delivery per event and subscription", () => name);
      byTarget.set(name, delivery);
      this.#ended(delivery);
    }
    for (const [name, target] of this.#expected) {
      this.#must(byTarget.has(name), "no event is lost", () => JSON.stringify(target));
    }
    for (const prefix of ["outbox", "due", "fresh"]) {
      const [left] = this.#store.list({ prefix: [prefix], limit: 1 });
      this.#must(!left, "nothing is left to deliver", () => JSON.stringify(left?.key));
    }
    const pointers = this.#store.list({ prefix: ["log"], limit: 100_000 });
    this.#must(
      pointers.length === 4 * rows.length,
      "the log shows each delivery once",
      () => `${pointers.length} rows for ${rows.length} deliveries`,
    );
  }

  /** Called once everything is old. */
  atTheVeryEnd(): void {
    this.#trim.atTheEnd(this.#store);
  }

  #ended(delivery: Delivery): void {
    const about = () => JSON.stringify(delivery);
    const posts = this.#receivers.posts.get(delivery.id) ?? [];
    const answered = posts.filter(({ counted }) => counted);
    this.#must(delivery.status !== "pending", "every delivery ends", about);
    this.#must(answered.length === delivery.attempts, "the receiver's ledger agrees", about);
    const last = answered.at(-1)?.status ?? 0;
    if (delivery.status === "success") {
      this.#must(last >= 200 && last < 300, "the receiver's ledger agrees", about);
      return;
    }
    const { error, attempts, attemptsBefore } = delivery;
    const reasoned = [400, 401, 403, 404, 410, 422].includes(last) ||
      attempts - attemptsBefore >= this.#rules.attemptsMax ||
      (error === "subscription inactive" && this.#wasInactive(delivery)) ||
      error?.startsWith("gave up") === true;
    this.#must(reasoned, "a delivery is given up for a reason", about);
  }

  /** Whether its subscription has ended or was ever changed: it may be active again. */
  #wasInactive({ projectId, subscriptionId }: Delivery): boolean {
    const { value } = this.#store.read(["subscription", projectId, subscriptionId]);
    const subscription = value && fromBytes<Subscription>(value);
    return subscription !== null &&
      (!subscription.isActive || subscription.updatedAt !== subscription.createdAt);
  }

  #must(holds: boolean, invariant: string, detail: () => string): void {
    this.#violations.must(holds, invariant, detail);
  }
}

/** Made pending again by an operator. */
function isReopened(before: Delivery, after: Delivery): boolean {
  return after.status === "pending" && after.claims === 0 && after.lease === null &&
    after.attemptsBefore === before.attempts;
}

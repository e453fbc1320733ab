import { watchedAlerts } from "./alerts_audit.ts";
import { fromDecimal } from "../../src/base/money.ts";
import type { BooksAudit } from "./books_audit.ts";
import { absoluteAmount } from "../../src/ledger/entry.ts";
import type { Callers, Project } from "./callers.ts";
import type { ClaimsAudit } from "./claims_audit.ts";
import type { Crashes } from "./crashes.ts";
import type { MemoryStore } from "./memory_store.ts";
import { firstPricing, Operators } from "./operators.ts";
import type { PasskeysAudit } from "./passkeys_audit.ts";
import { People } from "./people.ts";
import type { Manner, Receivers } from "./receivers.ts";
import { routedSettings } from "./routed_upstreams.ts";
import type { StripeAudit } from "./stripe_audit.ts";
import { stripeKeys, StripeSide } from "./stripe_side.ts";
import type { Timeline } from "./timeline.ts";

interface Parts {
  timeline: Timeline;
  callers: Callers;
  claims: ClaimsAudit;
  books: BooksAudit;
  crashes: Crashes;
  stripe: StripeAudit;
  passkeys: PasskeysAudit;
  receivers: Receivers;
  store: MemoryStore;
}

const eventChoices: readonly string[][] = [
  ["balance.deposit.created", "balance.charge.created"],
  ["balance.refund.created", "balance.trial.granted"],
  ["usage.charge.created"],
  ["balance.*"],
  ["proxy.request.failed", "request.blocked"],
  ["updated", "balance.depleted", "archived"],
];

const manners: readonly [Manner, number][] = [
  ["good", 10],
  ["flaky", 3],
  ["failing", 2],
  ["slow", 2],
  ["hanging", 1],
  ["permanent", 1],
  ["throttled", 1],
];

/** In a rush, so many callers make so many calls each for one user, without a pause. */
const rushCallers = 12;
const rushCalls = 4;

/** What the callers, owners and operators of several projects do. */
export class Workload {
  readonly projects: Project[] = [];
  readonly #parts: Parts;
  readonly #operators: Operators;
  readonly #stripe: StripeSide;
  readonly #people: People;
  /** Whose users pay at Stripe, in some seeds: some of them into wallets. */
  readonly #paid: Project[] = [];
  #receivers = 0;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#people = new People(parts);
    this.#operators = new Operators({ ...parts, people: this.#people });
    this.#stripe = new StripeSide(parts);
  }

  /** Creates projects with their users, subscriptions and first deposits. */
  async open(): Promise<void> {
    const { timeline } = this.#parts;
    const count = timeline.whole(2, 3);
    for (let at = 0; at < count; at++) {
      const users = Array.from({ length: timeline.whole(2, 4) }, (_, n) => `user-${at}-${n}`);
      const project = await this.#make(`Project ${at}`, users, {
        trialCredits: timeline.pick(["0", "0", "0.0003"]),
        billingEvents: at < 2,
        topUpUrl: "https://shop.example.com/{user}",
      });
      const subscriptions = at === 0 ? 2 : timeline.whole(0, 1);
      for (let n = 0; n < subscriptions; n++) {
        const everything = at === 0 && n === 0 && timeline.chance(0.15);
        await this.#subscribe(project, everything ? ["*"] : timeline.pick(eventChoices));
      }
      for (const user of users) {
        if (timeline.chance(0.8)) await this.#deposit(project, user);
      }
    }
    if (timeline.chance(0.5)) await this.#openWallets();
    if (timeline.chance(0.5)) await this.#openStripe();
  }

  async #make(name: string, users: string[], more: Record<string, unknown>): Promise<Project> {
    const { timeline } = this.#parts;
    const routed = timeline.chance(0.5) ? routedSettings(timeline) : {};
    // They bound nothing here: what counts is that they are kept, and erased with their user.
    const own = users.map((user) => [user, { concurrent: 100, spendPerMonth: "100000" }] as const);
    const limits = timeline.chance(0.5) ? { users: Object.fromEntries(own) } : {};
    const settings = {
      ...{ name, pricing: firstPricing, alerts: watchedAlerts, limits },
      ...routed,
      ...more,
    };
    const answer = await this.#parts.callers.operate("POST", "", settings);
    const { project: { id }, apiKey } = answer?.body as { project: { id: string }; apiKey: string };
    const budget = timeline.pick(["0.0002", "0.001", "0.005"]);
    const made = await this.#parts.callers.operate("POST", `/${id}/keys`, { budget });
    const { apiKey: budgetKey } = made?.body as { apiKey: string };
    const shared = more.mode === "shared";
    const isRouted = "routes" in routed;
    const keys = { apiKey, budgetKey };
    const project = { id, ...keys, users, subscriptions: [], shared, archived: false, isRouted };
    this.projects.push(project);
    return project;
  }

  /** Creates a person's wallet with a balance, which users of two projects may spend. */
  async #openWallets(): Promise<void> {
    const { timeline } = this.#parts;
    const one = await this.#make("Shared 0", ["wallet-0", "wallet-1"], { mode: "shared" });
    const other = await this.#make("Shared 1", ["wallet-2"], { mode: "shared" });
    for (const project of [one, other]) {
      for (const user of project.users) await this.#people.begin(project, user);
    }
    if (timeline.chance(0.5)) this.#people.usePasskeys();
    this.#paid.push(one, other);
    await this.#subscribe(one, timeline.pick(eventChoices));
    this.#begin(this.#pay(one));
  }

  /** Creates a project whose users pay into its own Stripe account. */
  async #openStripe(): Promise<void> {
    const { timeline } = this.#parts;
    const paid = await this.#make("Paid 0", ["payer-0", "payer-1"], { stripe: stripeKeys });
    this.#paid.push(paid);
    await this.#subscribe(paid, timeline.pick(eventChoices));
  }

  /**
   * Runs actions one after another, and now and then several at once; resolves after a number of
   * calls.
   */
  async run(calls: number): Promise<void> {
    const { timeline, callers } = this.#parts;
    const archiveAt = timeline.chance(0.4) ? calls * timeline.between(0.3, 0.8) : Infinity;
    const forgetAt = timeline.chance(0.5) ? calls * timeline.between(0.05, 0.4) : Infinity;
    let rushAt = timeline.chance(0.5) ? calls * timeline.between(0.1, 0.7) : Infinity;
    let toForget = Number.isFinite(forgetAt);
    let toArchive = Number.isFinite(archiveAt) ? timeline.pick(this.projects) : null;
    while (callers.calls < calls) {
      const together = timeline.chance(0.15) ? timeline.whole(2, 6) : 1;
      const project = this.#pickProject();
      const user = timeline.pick(project.users);
      for (let n = 0; n < together; n++) this.#begin(this.#something(project, user));
      if (callers.calls >= rushAt) {
        for (let n = 0; n < rushCallers; n++) this.#begin(this.#rush(project, user));
        rushAt = Infinity;
      }
      if (toArchive && callers.calls >= archiveAt) {
        this.#begin(this.#operators.archive(toArchive, timeline.pick(toArchive.users)));
        toArchive = null;
      }
      if (toForget && callers.calls >= forgetAt) {
        this.#begin(this.#forgetOne());
        toForget = false;
      }
      await timeline.pause(timeline.between(0, 900));
    }
  }

  /** One of the callers for whom the processes contend for an account. */
  async #rush(project: Project, user: string): Promise<void> {
    for (let n = 0; n < rushCalls; n++) await this.#something(project, user);
  }

  /** Runs checks, one after another, up to a total number of calls. */
  async lookAround(calls: number): Promise<void> {
    const { timeline, callers } = this.#parts;
    while (callers.calls < calls) await this.#look(timeline.pick(this.projects), "nobody");
  }

  /** Returns a user; departed ones are never seen again. */
  async #forgetOne(): Promise<void> {
    const { timeline } = this.#parts;
    const among = this.#paid.length > 0 && timeline.chance(0.5) ? this.#paid : this.projects;
    const project = timeline.pick(among.filter(({ users }) => users.length > 1));
    const user = timeline.pick(project.users);
    project.users = project.users.filter((other) => other !== user);
    await this.#operators.forget(project, user);
  }

  #begin(work: Promise<unknown>): void {
    const { callers } = this.#parts;
    callers.underWay++;
    work.finally(() => callers.underWay--);
  }

  /** Returns any project; archived ones are chosen rarely. */
  #pickProject(): Project {
    const { timeline } = this.#parts;
    const picked = timeline.pick(this.projects);
    return picked.archived && timeline.chance(0.75) ? timeline.pick(this.projects) : picked;
  }

  #something(project: Project, user: string): Promise<unknown> {
    const { timeline, callers } = this.#parts;
    const operators = this.#operators;
    const dice = timeline.between(0, 100);
    if (project.shared && timeline.chance(this.#people.walletOf(project, user) ? 0.1 : 0.6)) {
      return this.#people.decide(project, user);
    }
    if (dice < 19) return callers.chat(project, user, { keyed: timeline.chance(0.2) });
    if (dice < 35) return callers.stream(project, user);
    if (dice < 55) return this.#deposit(project, user);
    if (dice < 69) return this.#charge(project, user);
    if (dice < 77) return this.#refund(project);
    if (dice < 80) return this.#reuseKey(project, user);
    if (dice < 89.5) return this.#look(project, user);
    if (dice < 92) return this.#payOrLook(project);
    if (dice < 94) return this.#changeSubscriptions(project);
    if (dice < 95) return this.#changeManner();
    if (dice < 96.5) return operators.redeliver(project);
    if (dice < 98) return operators.redeliverAll(project);
    if (dice < 98.5) return operators.changeRoutes(project);
    return operators.changePrices(project, user);
  }

  #payOrLook(project: Project): Promise<unknown> {
    const { timeline } = this.#parts;
    if (this.#paid.length > 0) return this.#pay(timeline.pick(this.#paid));
    return this.#look(project, "nobody");
  }

  /** Paid at Stripe, and soon spent, so that some of it cannot be taken back. */
  #pay(project: Project): Promise<unknown> {
    const { timeline } = this.#parts;
    if (project.users.length === 0) return Promise.resolve();
    const user = timeline.pick(project.users);
    const wallet = project.shared ? this.#people.walletOf(project, user) : null;
    if (project.shared && !wallet) return this.#people.decide(project, user);
    const spend = async () => {
      await timeline.pause(timeline.between(0, 20_000));
      // A user to be erased is not seen again.
      if (project.users.includes(user)) await this.#charge(project, user);
    };
    return Promise.all([this.#stripe.pay(project, user, wallet), spend()]);
  }

  #deposit(project: Project, user: string): Promise<void> {
    const { timeline, callers } = this.#parts;
    if (project.shared) return this.#charge(project, user);
    const amount = BigInt(timeline.whole(100_000, 1_500_000));
    const keyed = timeline.chance(0.8);
    return callers.money(project, { verb: "deposit", user, amount, keyed });
  }

  #charge(project: Project, user: string): Promise<void> {
    const { timeline, callers } = this.#parts;
    const most = this.#paid.includes(project) && !project.shared ? 20_000_000 : 500_000;
    const amount = BigInt(timeline.whole(10_000, most));
    const keyed = timeline.chance(0.8);
    return callers.money(project, { verb: "charge", user, amount, keyed });
  }

  /** Refunds an entry of this project: all of it, a part, or more than is left. */
  async #refund(project: Project): Promise<void> {
    const { timeline, callers, claims, books } = this.#parts;
    const booked = claims.claims.filter(({ projectId, user }) =>
      projectId === project.id && project.users.includes(user)
    ).flatMap(
      ({ user, outcomes }) =>
        outcomes.flatMap((told) => (told.kind === "booked" ? [{ user, id: told.activityId }] : [])),
    );
    if (booked.length === 0) return await this.#deposit(project, timeline.pick(project.users));
    const { user, id } = timeline.pick(booked.slice(-12));
    const entry = books.entries.get(id);
    const whole = fromDecimal(entry ? absoluteAmount(entry) : "0");
    const part = timeline.pick([null, whole / 2n, whole / 3n]);
    const amount = part === 0n ? null : part;
    const keyed = timeline.chance(0.8);
    await callers.money(project, { verb: "refund", user, amount, activityId: id, keyed });
  }

  /** A key that was used for something else: 422, or the first to land wins. */
  async #reuseKey(project: Project, user: string): Promise<void> {
    const { timeline, callers, claims } = this.#parts;
    const used = claims.claims.filter(({ kind, projectId, idempotencyKey }) =>
      kind === "deposit" && projectId === project.id && idempotencyKey !== null
    );
    const usedKey = used.length > 0 ? timeline.pick(used.slice(-8)).idempotencyKey : null;
    if (usedKey === null) return await this.#deposit(project, user);
    await callers.money(project, { verb: "deposit", user, amount: 77_777n, keyed: true, usedKey });
  }

  async #look({ apiKey: key }: Project, user: string): Promise<void> {
    const { timeline, callers } = this.#parts;
    const paths = [`/v1/user/balance?user=${user}`, `/v1/user/activities?user=${user}&limit=5`];
    const path = timeline.pick([...paths, "/v1/webhooks/logs?limit=5"]);
    await callers.call(path, { method: "GET", key });
  }

  async #subscribe(project: Project, events: string[]): Promise<void> {
    const { timeline, callers, receivers } = this.#parts;
    const host = `receiver-${++this.#receivers}.example.com`;
    receivers.manners.set(host, pickManner(timeline));
    const answer = await callers.call("/v1/webhooks/subscriptions", {
      key: project.apiKey,
      body: { url: `https://${host}/hook`, events },
    });
    const subscription = answer?.body.subscription;
    const id = typeof subscription === "object" && subscription && Reflect.get(subscription, "id");
    if (typeof id === "string") project.subscriptions.push(id);
  }

  async #changeSubscriptions(project: Project): Promise<void> {
    const { timeline, callers } = this.#parts;
    const { subscriptions, apiKey: key } = project;
    if (subscriptions.length < 2 || timeline.chance(0.5)) {
      return await this.#subscribe(project, timeline.pick(eventChoices));
    }
    const id = timeline.pick(subscriptions);
    project.subscriptions = subscriptions.filter((other) => other !== id);
    await callers.call(`/v1/webhooks/subscriptions/${id}`, { method: "DELETE", key });
  }

  async #changeManner(): Promise<void> {
    const { timeline, receivers } = this.#parts;
    const host = timeline.pick([...receivers.manners.keys()]);
    receivers.manners.set(host, pickManner(timeline));
    await this.#look(timeline.pick(this.projects), "nobody");
  }

  /** Redelivers some old deliveries at once, and sends what people had not sent in time. */
  redeliver(): void {
    for (const project of this.projects) this.#begin(this.#operators.redeliver(project));
    this.#begin(this.#people.comeLate());
  }

  /** Makes every receiver work again. */
  recover(): void {
    const { receivers } = this.#parts;
    for (const host of receivers.manners.keys()) receivers.manners.set(host, "good");
  }

  /** At the end most receivers recover; some not for long. Every passkey is used once more. */
  settle(): void {
    const { timeline, receivers } = this.#parts;
    this.#begin(this.#people.comeBack());
    for (const [host, manner] of receivers.manners) {
      if (manner !== "permanent" && timeline.chance(0.85)) receivers.manners.set(host, "good");
    }
  }
}

function pickManner(timeline: Timeline): Manner {
  const all = manners.reduce((sum, [, share]) => sum + share, 0);
  let left = timeline.between(0, all);
  for (const [manner, share] of manners) {
    left -= share;
    if (left < 0) return manner;
  }
  return "good";
}

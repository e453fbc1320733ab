import type { Callers, Project } from "./callers.ts";
import type { People } from "./people.ts";
import { modelName } from "../support/model_formats.ts";
import { fromBytes } from "../../src/base/json.ts";
import { ownDeliveriesPrefix } from "../../src/store/keys.ts";
import type { Delivery } from "../../src/webhooks/schema.ts";
import type { ClaimsAudit } from "./claims_audit.ts";
import type { Crashes } from "./crashes.ts";
import type { MemoryStore } from "./memory_store.ts";
import { routesOf } from "./routed_upstreams.ts";
import type { StripeAudit } from "./stripe_audit.ts";
import type { Timeline } from "./timeline.ts";

interface Parts {
  timeline: Timeline;
  callers: Callers;
  claims: ClaimsAudit;
  crashes: Pick<Crashes, "planForgetting">;
  stripe: Pick<StripeAudit, "isOwed">;
  people: Pick<People, "isDeciding" | "disconnect">;
  store: MemoryStore;
}

/** From a user's last request to their erasure: by then nothing of theirs is under way. */
const goneMinMs = 8_000;
const forgetWaitMaxMs = 60_000;

/** A project's prices: some do not divide evenly, one has free output; others have conditions. */
const priceLists = [
  { fee: "0.000005", input: "1", output: "2" },
  {
    fee: "0.000002",
    input: "1.500007",
    output: "1.25",
    tiers: [{ above: 30, output: "2.5" }],
    serviceTiers: { flex: { factor: "0.5" } },
  },
  {
    fee: "0.000009",
    input: "0.7",
    output: "3.000001",
    request: "0.000003",
    markupPercent: "12.5",
    minimum: "0.00004",
  },
  { fee: "0.000007", input: "2", output: "0", toolCalls: { web_search: "0.000011" } },
];

/** The initial prices of a project. */
export const firstPricing = pricingOf(0);

function pricingOf(at: number) {
  const { fee, ...rates } = priceLists[at] ?? { fee: "0", input: "0", output: "0" };
  return { requestFee: fee, models: { [modelName]: { ...rates, maxOutputTokens: 1_000 } } };
}

/** The actions of operators on projects in use. */
export class Operators {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  async rename({ id }: Project): Promise<void> {
    const { timeline, callers } = this.#parts;
    await callers.operate("PATCH", `/${id}`, { name: `Name ${timeline.whole(1, 9)}` });
  }

  /** A project without routes is renamed. */
  async changeRoutes(project: Project): Promise<void> {
    const { timeline, callers } = this.#parts;
    if (!project.isRouted) return await this.rename(project);
    await callers.operate("PATCH", `/${project.id}`, routesOf(timeline));
  }

  /** Just when calls start. */
  async changePrices(project: Project, user: string): Promise<void> {
    const { timeline, callers } = this.#parts;
    const chats = this.#chats(project, user);
    await timeline.pause(timeline.between(0, 300));
    const pricing = pricingOf(timeline.whole(0, priceLists.length - 1));
    await callers.operate("PATCH", `/${project.id}`, { pricing });
    await chats;
  }

  /** Archives a project just when calls start; repeated until the outcome is known. */
  async archive(project: Project, user: string): Promise<void> {
    const { timeline, callers } = this.#parts;
    const chats = this.#chats(project, user);
    await timeline.pause(timeline.between(0, 300));
    while (!project.archived) {
      const answer = await callers.operate("POST", `/${project.id}/archive`, undefined);
      project.archived = answer?.status === 200;
      if (!project.archived) await timeline.pause(timeline.between(5, 3_000));
    }
    await chats;
  }

  /** Redelivers one of its last deliveries; refused while that is pending. */
  async redeliver(project: Project): Promise<void> {
    const { timeline, callers } = this.#parts;
    const last = this.#lastDeliveries(project);
    if (last.length === 0) return await this.rename(project);
    const path = `/${project.id}/deliveries/${timeline.pick(last).id}/redeliver`;
    await callers.operate("POST", path, {});
  }

  /** Redelivers all that failed at one of its subscriptions: since the start, or recently. */
  async redeliverAll(project: Project): Promise<void> {
    const { timeline, callers } = this.#parts;
    const failed = this.#lastDeliveries(project).filter(({ status }) => status === "error");
    const subscriptions = failed.map(({ subscriptionId }) => subscriptionId);
    const from = subscriptions.length > 0 ? subscriptions : project.subscriptions;
    if (from.length === 0) return await this.rename(project);
    const path = `/${project.id}/subscriptions/${timeline.pick(from)}/redeliver`;
    const since = new Date(timeline.now - timeline.pick([10_000, 600_000])).toISOString();
    await callers.operate("POST", path, { since });
  }

  /**
   * Erases a user, forfeiting what is left. Refused while something of theirs is under way; once it
   * may have started, the service is often left to continue alone.
   */
  async forget(project: Project, user: string): Promise<void> {
    const { timeline, callers, claims, crashes, stripe, people } = this.#parts;
    if (timeline.chance(0.7)) crashes.planForgetting();
    await timeline.pause(timeline.between(goneMinMs, 2 * goneMinMs));
    for (let waitMs = 1_000;; waitMs = Math.min(1.5 * waitMs, forgetWaitMaxMs)) {
      await timeline.pause(waitMs);
      if (claims.isBusy(user) || stripe.isOwed(user) || people.isDeciding(user)) continue;
      if (project.shared) await people.disconnect(project, user);
      const path = `/${project.id}/users/${user}/forget`;
      const answer = await callers.operate("POST", path, { forfeit: true });
      const hasBegunPerhaps = answer?.status !== 400;
      if (answer?.status === 200 || (hasBegunPerhaps && timeline.chance(0.7))) return;
    }
  }

  #lastDeliveries({ id }: Project): Delivery[] {
    const rows = this.#parts.store.list({
      prefix: ownDeliveriesPrefix(id),
      reverse: true,
      limit: 20,
    });
    return rows.flatMap(({ value }) => (value ? [fromBytes<Delivery>(value)] : []));
  }

  async #chats(project: Project, user: string): Promise<void> {
    const { callers } = this.#parts;
    await Promise.all([
      callers.chat(project, user, { keyed: false }),
      callers.stream(project, user),
    ]);
  }
}

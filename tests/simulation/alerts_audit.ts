import { type Alert, conditionOf, decodeAlerts } from "../../src/alerts/alert.ts";
import type { Write } from "../../src/store/kv.ts";
import { type Defect, is, reading } from "./defect_seams.ts";
import type { Violations } from "./violations.ts";

/** What every project of a simulation watches. */
export const watchedAlerts = {
  webhookFailing: { afterMinutes: 1 },
  errorRate: { percent: 5, calls: 3 },
  userBalance: { below: "0.001" },
  totalBalance: { below: "0.01" },
  negativeMargin: true,
};

/** Tracks alerts: each condition has one, which stays until it is resolved, once. */
export class AlertsAudit {
  readonly #known = new Map<string, readonly Alert[]>();
  readonly #violations: Violations;

  constructor(violations: Violations) {
    this.#violations = violations;
  }

  /** Called with each write that has landed. */
  landed({ sets }: Write): void {
    for (const { key, value } of sets) {
      if (key[0] === "alerts") this.#changed(String(key[1]), decodeAlerts(value).alerts);
    }
  }

  #changed(projectId: string, alerts: readonly Alert[]): void {
    const about = () => `${projectId}: ${JSON.stringify(alerts)}`;
    const firing = alerts.filter(({ resolvedAt }) => resolvedAt === null);
    const conditions = new Set(firing.map(conditionOf));
    this.#violations.must(conditions.size === firing.length, "a condition has one alert", about);
    for (const before of this.#known.get(projectId) ?? []) {
      const after = alerts.find(({ id }) => id === before.id);
      // Erasure removes a user's alerts, and old ones are forgotten.
      const stays = after !== undefined || before.about.user !== undefined ||
        before.resolvedAt !== null;
      const isFinal = before.resolvedAt === null || after === undefined ||
        after.resolvedAt === before.resolvedAt;
      this.#violations.must(stays, "an alert stays until it is resolved", about);
      this.#violations.must(isFinal, "an alert is resolved once", about);
    }
    this.#known.set(projectId, alerts);
  }
}

/** Defects of alerts. */
export const alertDefects: readonly Defect[] = [
  {
    name: "an alert that fires is forgotten",
    seams: reading((row) => is("alerts")(row.key) ? { ...row, value: null } : row),
    seedsMax: 10,
  },
];

import { fromDecimal } from "../base/money.ts";
import { formatShort } from "../base/money_text.ts";
import type { Deps } from "../deps.ts";
import { isPseudonym } from "../ledger/pseudonym.ts";
import { readUserStats } from "../ledger/user_stats.ts";
import { merchantIdOf, unbookedOfProject } from "../payments/unbooked.ts";
import { isSecretWrong, readUnverified } from "../payments/unverified.ts";
import type { AlertSettings } from "../projects/alerts_schema.ts";
import type { Project } from "../projects/schema.ts";
import { errorRateOf } from "../summaries/request_counts.ts";
import { readSummary } from "../summaries/summary.ts";
import type { Subscriptions } from "../webhooks/subscriptions/subscriptions.ts";
import { type AlertRule, alertRules, type Finding } from "./alert.ts";

/** The services that conditions are read from. */
export interface FindServices {
  deps: Pick<Deps, "kv" | "clock">;
  subscriptions: Pick<Subscriptions, "list">;
}

type Find = (
  services: FindServices,
  project: Project,
  settings: AlertSettings,
) => Promise<Finding[]>;

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
/** The conditions of one rule that hold at once; further ones are not looked at. */
const findingsMax = 100;

/** Whether a project watches a condition. */
export function isWatched(settings: AlertSettings, rule: AlertRule): boolean {
  return Boolean(settings[rule]);
}

/** Returns the conditions of a project that hold now, of those that it watches. */
export async function findConditions(
  services: FindServices,
  project: Project,
): Promise<Finding[]> {
  const settings = project.alerts;
  const watched = alertRules.filter((rule) => isWatched(settings, rule));
  const found = await Promise.all(
    watched.map((rule) => finders[rule](services, project, settings)),
  );
  return found.flatMap((findings) => findings.slice(0, findingsMax));
}

const finders: Readonly<Record<AlertRule, Find>> = {
  async webhookFailing({ deps: { clock }, subscriptions }, { id }, { webhookFailing }) {
    const since = clock.now() - (webhookFailing?.afterMinutes ?? 0) * minuteMs;
    return (await subscriptions.list(id, "active")).flatMap(({ id, url, failingSince }) => {
      if (failingSince === undefined || Date.parse(failingSince) > since) return [];
      const summary = `The webhook to ${new URL(url).host} is failing.`;
      return [{ rule: "webhookFailing", about: { subscriptionId: id }, summary }];
    });
  },

  async paymentNotBooked({ deps: { kv, clock } }, project) {
    const payments = (await unbookedOfProject(kv, project)).map(({ sessionId, paid }) => ({
      rule: "paymentNotBooked" as const,
      about: { sessionId },
      summary: paid === null
        ? "A payment is not booked."
        : `A payment of ${paid.amount} ${paid.currency.toUpperCase()} is not booked.`,
    }));
    // Strangers cannot cause this one, however many events without a signature they send.
    const unverified = await readUnverified(kv, merchantIdOf(project));
    if (unverified === null || !isSecretWrong(unverified, clock.now())) return payments;
    const summary = "Payments arrive late: no event fits the signing secret of Stripe’s webhook.";
    return [...payments, { rule: "paymentNotBooked", about: {}, summary }];
  },

  async errorRate({ deps: { kv, clock } }, { id }, { errorRate }) {
    const { percent: most = 100, calls: least = 1 } = errorRate ?? {};
    const now = clock.now();
    const { models, failures } = await readSummary(kv, id, { from: now - hourMs, to: now + 1 });
    // The log has the provider's own words.
    const isAccounts = failures[0]?.reason === "upstream_unavailable";
    const why = isAccounts ? " The provider refuses the key or the account; see the log." : "";
    return models.flatMap(({ model, calls, failed }) => {
      if (calls < least || failed * 100 < calls * most) return [];
      const percent = Math.round(errorRateOf({ calls, failed }));
      const summary = `${percent} % of ${calls} calls of ${model} failed.${why}`;
      return [{ rule: "errorRate", about: { model }, summary }];
    });
  },

  async negativeMargin({ deps: { kv, clock } }, { id, currency }) {
    const now = clock.now();
    const { models } = await readSummary(kv, id, { from: now - 24 * hourMs, to: now + 1 });
    return models.filter(({ margin }) => margin < 0n).map(({ model, margin }) => ({
      rule: "negativeMargin",
      about: { model },
      summary: `${model} has a margin of ${
        formatShort(margin, currency, { rounding: "halfEven" })
      }.`,
    }));
  },

  async userBalance({ deps }, project, { userBalance }) {
    const stats = await readUserStats(deps, project);
    const least = userBalance && fromDecimal(userBalance.below);
    if (stats === null || least === null) return [];
    const { currency } = project;
    return stats.first.low.filter(({ user, balance }) => balance < least && !isPseudonym(user)).map(
      ({ user, balance }) => ({
        rule: "userBalance",
        about: { user },
        summary: `A user’s balance is ${formatShort(balance, currency, { rounding: "trunc" })}.`,
      }),
    );
  },

  async totalBalance({ deps }, project, { totalBalance }) {
    const stats = await readUserStats(deps, project);
    const least = totalBalance && fromDecimal(totalBalance.below);
    if (stats === null || least === null || stats.owed >= least) return [];
    const sum = formatShort(stats.owed, project.currency, { rounding: "trunc" });
    const summary = `The balances of all users add up to ${sum}.`;
    return [{ rule: "totalBalance", about: {}, summary }];
  },
};

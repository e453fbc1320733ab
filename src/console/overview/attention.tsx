/** @jsxImportSource @hono/hono/jsx */
import { Icon } from "../../pages/icons.tsx";
import { checkoutKindOf, topUpWayOf } from "../../payments/merchant.ts";
import { errorRateOf } from "../../summaries/request_counts.ts";
import type { Config } from "../../config/config.ts";
import type { ConsoleDeps } from "../console_deps.ts";
import type { ProjectVisit } from "../guard.tsx";
import type { OverviewView } from "./overview_view.ts";
import { isReachedByStripe } from "../../payments/test_mode.ts";
import { merchantIdOf, unbookedOfProject } from "../../payments/unbooked.ts";
import { isSecretWrong, readUnverified } from "../../payments/unverified.ts";

/** Something that needs a hand, and where. */
interface AttentionItem {
  text: string;
  href: string;
}

/** A model fails too often from this share on, and from so many calls on. */
const failedShare = 0.05;
const callsLeast = 20;

/** Finds what needs a hand: at most one line of each kind. */
export async function attentionOf(
  { deps, subscriptions, dispatcher }: ConsoleDeps,
  { visit, summary, users }: OverviewView,
): Promise<AttentionItem[]> {
  const { project, here } = visit;
  const items: AttentionItem[] = [];
  const add = (text: string, path: string) => items.push({ text, href: here(path) });
  const unbooked = await unbookedOfProject(deps.kv, project);
  if (unbooked.length > 0) {
    const [first] = unbooked;
    add(
      unbooked.length === 1
        ? `A payment of ${first?.user ?? "an unknown user"} is not booked.`
        : `${unbooked.length} payments are not booked.`,
      "/activity#unbooked",
    );
  }
  const unverified = await readUnverified(deps.kv, merchantIdOf(project));
  if (unverified && isSecretWrong(unverified, deps.clock.now())) {
    add("The signing secret of Stripe’s webhook is wrong.", "/payments#unverified");
  }
  for (const text of unpaidReasons(deps.config, visit)) add(text, "/payments");
  const failing = (await subscriptions.list(project.id, null)).filter(
    ({ id, isActive, consecutiveFailures }) =>
      isActive && (consecutiveFailures > 0 || dispatcher.stateOf(id).openUntil !== null),
  );
  if (failing.length > 0) {
    const [first] = failing;
    add(
      failing.length === 1 ? "A webhook is failing." : `${failing.length} webhooks are failing.`,
      failing.length === 1 ? `/webhooks/${first?.id}` : "/webhooks",
    );
  }
  for (const { model, calls, failed } of summary.models) {
    if (calls < callsLeast || failed / calls < failedShare) continue;
    const percent = Math.round(errorRateOf({ calls, failed }));
    const query = new URLSearchParams({ model, outcome: "failed" });
    add(`${percent} % of the calls of ${model} failed.`, `/requests?${query}`);
  }
  const losing = summary.models.filter(({ margin }) => margin < 0n).map(({ model }) => model);
  if (losing.length > 0) add(`Negative margin: ${losing.slice(0, 3).join(", ")}.`, "/pricing");
  const [unpriced] = summary.unpriced;
  if (unpriced) add(`${unpriced.reason} was called and has no price.`, "/pricing");
  if (users && users.runningLow > 0) {
    const many = users.runningLow === 1 ? "1 user is" : `${users.runningLow} users are`;
    add(`${many} below the low balance.`, "/users?order=low");
  }
  return items;
}

/** Why users cannot pay, or pay nothing real. */
function unpaidReasons(config: Config, { project, isTest }: ProjectVisit): string[] {
  const isUnreached = checkoutKindOf(config, project) === "stripe" && !isReachedByStripe(config);
  return [
    ...(project.status === "active" && topUpWayOf(config, project) === "none"
      ? ["Users cannot pay: no checkout is connected."]
      : []),
    ...(isTest ? ["Stripe is in test mode: payments move no real money."] : []),
    ...(isUnreached ? ["Stripe cannot reach this server, so payments are not booked."] : []),
  ];
}

/** The strip of what needs a hand; nothing where nothing does. */
export function Attention({ items }: { items: readonly AttentionItem[] }) {
  if (items.length === 0) return null;
  return (
    <section class="notice attention" aria-label="Needs attention">
      <ul class="plain-list">
        {items.map(({ text, href }) => (
          <li>
            <Icon name="warning" /> <a href={href}>{text}</a>
          </li>
        ))}
      </ul>
    </section>
  );
}

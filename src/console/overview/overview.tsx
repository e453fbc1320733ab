/** @jsxImportSource @hono/hono/jsx */
import type { Child } from "@hono/hono/jsx";
import type { Handler } from "../../base/handler.ts";
import { type Amount, formatAmount, toAmount } from "../../base/money.ts";
import { readUserStats } from "../../ledger/user_stats.ts";
import { MoneyCell, Stats } from "../../pages/parts.tsx";
import { readSummary, type Summary } from "../../summaries/summary.ts";
import { errorRateOf } from "../../summaries/request_counts.ts";
import { refusalReasons } from "../../base/refusal_reasons.ts";
import { readRanOut } from "../../requests/ran_out.ts";
import { readTopSpenders } from "../../summaries/top_users.ts";
import { Attention, attentionOf } from "./attention.tsx";
import { FirstSteps, stepsOf } from "./first_steps.tsx";
import type { ConsoleGuard } from "../guard.tsx";
import type { ConsoleDeps } from "../console_deps.ts";
import { Endings, ModelTable, UserTables } from "./overview_tables.tsx";
import { RevenueChart } from "../money/money_chart.tsx";
import { Change } from "../change.tsx";
import { OverviewFilters, readOverviewFilter } from "./overview_filter.tsx";
import { respondFiltered } from "./overview_part.tsx";
import type { OverviewView } from "./overview_view.ts";
import { headingOf, periodBefore, readPeriod } from "../shown_period.ts";

/** What a project earned, what it cost and what needs a hand, in a period. */
export function overviewPage(guard: ConsoleGuard, services: ConsoleDeps): Handler {
  const { deps } = services;
  const { kv, clock } = deps;
  return guard.project(async (visit) => {
    const { project, incoming, page } = visit;
    const now = clock.now();
    const period = readPeriod(incoming.query, now);
    const filter = readOverviewFilter(visit);
    const filtered = await respondFiltered(services, { visit, period, filter });
    if (filtered) return filtered;
    const [summary, before, users, topSpenders, keys] = await Promise.all([
      readSummary(kv, project.id, period),
      readSummary(kv, project.id, periodBefore(period)),
      readUserStats(deps, project),
      readTopSpenders(kv, project.id, period),
      services.admin.keys(project.id),
    ]);
    const { code } = refusalReasons.insufficient_funds;
    const wasRefused = summary.refusals.some(({ reason }) => reason === code);
    const ranOut = wasRefused ? await readRanOut(kv, project.id, period) : [];
    const view = { visit, period, summary, before, users, topSpenders, keys, ranOut };
    const steps = await stepsOf(services, visit, summary);
    const attention = await attentionOf(services, view);
    return page(
      "Overview",
      <>
        <Attention items={attention} />
        {steps === null ? null : <FirstSteps steps={steps} />}
        <MoneyFigures {...view} />
        <RevenueDefinition />
        <Revenue {...view} />
        <UseFigures {...view} />
        <ModelTable {...view} />
        <UserTables {...view} />
        <Endings {...view} />
      </>,
      {
        section: "",
        actions: <OverviewFilters {...view} filter={filter} />,
        note: headingOf(period),
      },
    );
  });
}

const numberOf = (amount: Amount) => Number(formatAmount(amount));
const count = (value: number) => value.toLocaleString("en-US");
const shortPercent = (value: number) => value.toLocaleString("en-US", { maximumFractionDigits: 1 });

function MoneyFigures({ visit, period, summary: { totals }, before, users }: OverviewView) {
  const { project: { currency }, here } = visit;
  const money = (amount: Amount) => <MoneyCell amount={amount} currency={currency} />;
  const change = (now: Amount, then: Amount) => (
    <Change now={numberOf(now)} before={numberOf(then)} />
  );
  const { revenue, upstreamCost, margin, deposits, givenBack, trials } = totals;
  const isKnown = upstreamCost > 0n;
  const share = isKnown
    ? `${Math.round((numberOf(margin) / numberOf(toAmount(margin + upstreamCost))) * 100)} %`
    : "needs the upstream cost";
  const owed = users && {
    label: "Outstanding balance",
    value: (
      <a href={here("/users?order=balance")}>
        <MoneyCell amount={users.owed} currency={currency} balance />
      </a>
    ),
    note: users.users === 1 ? "what 1 user has left" : `what ${count(users.users)} users have left`,
  };
  return (
    <Stats
      figures={[
        {
          label: "Revenue",
          value: money(revenue),
          note: change(revenue, before.totals.revenue),
        },
        {
          label: "Upstream cost",
          value: isKnown ? money(upstreamCost) : "–",
          note: isKnown ? change(upstreamCost, before.totals.upstreamCost) : "not known",
        },
        { label: "Margin", value: isKnown ? money(margin) : "–", note: share },
        {
          label: "Deposits",
          value: <a href={here(`/activity?kind=deposit&${period.times}`)}>{money(deposits)}</a>,
          note: change(deposits, before.totals.deposits),
        },
        ...(givenBack > 0n
          ? [{ label: "Given back", value: money(givenBack), note: "refunds of use" }]
          : []),
        ...(trials > 0n ? [{ label: "Gifts", value: money(trials), note: "trial credit" }] : []),
        ...(owed ? [owed] : []),
        {
          label: "Not collected",
          value: money(totals.shortfall),
          note: "charges beyond the balance",
        },
      ]}
    />
  );
}

/** What the figures of money mean; the guide to the console says more. */
function RevenueDefinition() {
  return (
    <p class="muted">
      Revenue is what responses and charges for use took from balances, less what was given back for
      them. Trial credit, forfeited balances, transfers and corrections are no revenue. Margin is
      the revenue of responses whose upstream cost is known, less that cost.
    </p>
  );
}

function Revenue({ visit, period, summary, before }: OverviewView) {
  const { here } = visit;
  const pointsOf = ({ hours }: Summary) =>
    hours.map(({ start, totals }) => ({ start, amount: totals.revenue }));
  return (
    <RevenueChart
      {...{ visit, period }}
      total={summary.totals.revenue}
      amounts={pointsOf(summary)}
      before={pointsOf(before)}
      zoom={(times) => here(`?${times}`)}
    />
  );
}

function UseFigures({ visit: { here }, period, summary, before, users }: OverviewView) {
  const { totals, newUsers, paywall } = summary;
  const shown = (value: Child, path: string) => <a href={here(path)}>{value}</a>;
  const requests = (outcome: string) => `/requests?outcome=${outcome}&${period.times}`;
  const active = users && period.days !== null ? users.active[period.days] : null;
  return (
    <Stats
      figures={[
        {
          label: "Requests",
          value: shown(count(totals.requests), `/requests?${period.times}`),
          note: <Change now={totals.requests} before={before.totals.requests} />,
        },
        {
          label: "Calls",
          value: count(totals.calls),
          note: "requests that were sent to a model",
        },
        {
          label: "Failed",
          value: shown(count(totals.failed), requests("failed")),
          note: `${shortPercent(errorRateOf(totals))} % of calls`,
        },
        {
          label: "Refused",
          value: shown(count(totals.refused), requests("refused")),
          note: <Change now={totals.refused} before={before.totals.refused} />,
        },
        ...(active === null ? [] : [{
          label: "Active users",
          value: shown(count(active), "/users?order=recent"),
          note: `of ${count(users?.users ?? 0)}`,
        }]),
        {
          label: "New users",
          value: count(newUsers),
          note: <Change now={newUsers} before={before.newUsers} />,
        },
        {
          label: "Paywall conversion",
          value: paywall.saw > 0 ? `${Math.round((paywall.paid / paywall.saw) * 100)} %` : "–",
          note: `${count(paywall.paid)} of ${count(paywall.saw)} paid within an hour`,
        },
      ]}
    />
  );
}

/** @jsxImportSource @hono/hono/jsx */
import type { Child } from "@hono/hono/jsx";
import type { Handler } from "../base/handler.ts";
import { type Amount, formatAmount, toAmount } from "../base/money.ts";
import { readUserStats, type UserStats } from "../ledger/user_stats.ts";
import { FormField } from "../pages/form_parts.tsx";
import { BarChart } from "../pages/chart.tsx";
import { MoneyCell, Stats, Tabs } from "../pages/parts.tsx";
import { readSummary, type Summary } from "../summaries/summary.ts";
import { readTopSpenders, type TopSpender } from "../summaries/top_users.ts";
import { Attention, attentionOf } from "./attention.tsx";
import { FirstSteps, stepsOf } from "./first_steps.tsx";
import type { ConsoleGuard, ProjectVisit } from "./guard.tsx";
import type { ConsoleDeps } from "./console_deps.ts";
import { Endings, ModelTable, UserTables } from "./overview_tables.tsx";
import { type Period, periodBefore, readPeriod, usualPeriods } from "./period.ts";
import { chargedAmount, timeSteps } from "./timeline.ts";

/** What the overview shows. */
export interface OverviewView {
  visit: ProjectVisit;
  period: Period;
  summary: Summary;
  /** The period of the same length before. */
  before: Summary;
  /** Null where it is not known. */
  users: UserStats | null;
  /** Of the period, the highest spending first. */
  topSpenders: readonly TopSpender[];
}

/** What a project earned, what it cost and what needs a hand, in a period. */
export function overviewPage(guard: ConsoleGuard, services: ConsoleDeps): Handler {
  const { deps } = services;
  const { kv, clock } = deps;
  return guard.project(async (visit) => {
    const { project, incoming, page } = visit;
    const now = clock.now();
    const period = readPeriod(incoming.query, now);
    const [summary, before, users, topSpenders] = await Promise.all([
      readSummary(kv, project.id, period),
      readSummary(kv, project.id, periodBefore(period)),
      readUserStats(deps, project),
      readTopSpenders(kv, project.id, period),
    ]);
    const view = { visit, period, summary, before, users, topSpenders };
    const steps = await stepsOf(services, visit, summary);
    const attention = await attentionOf(services, view);
    return page(
      "Overview",
      <>
        <Attention items={attention} />
        {steps === null ? null : <FirstSteps steps={steps} />}
        <MoneyFigures {...view} />
        <RevenueChart {...view} />
        <UseFigures {...view} />
        <ModelTable {...view} />
        <UserTables {...view} />
        <Endings {...view} />
      </>,
      { section: "", actions: <Periods {...view} />, note: `${period.title}, UTC` },
    );
  });
}

function Periods({ visit: { here, incoming }, period }: OverviewView) {
  const tabs = usualPeriods.map(({ days, title }) => ({
    title,
    href: here(`?days=${days}`),
    shown: period.days === days,
  }));
  return (
    <>
      <Tabs label="Time" tabs={tabs} />
      <details class="range" open={period.days === null}>
        <summary>Other dates</summary>
        <form method="get" action={here("")} class="actions end">
          {(["from", "to"] as const).map((name) => (
            <FormField
              name={name}
              label={name === "from" ? "From" : "To"}
              type="date"
              value={incoming.query(name)?.slice(0, 10) ?? ""}
            />
          ))}
          <button type="submit">Show</button>
        </form>
      </details>
    </>
  );
}

/** How a value differs from that of the period before, in percent. */
function Change({ now, before }: { now: number; before: number }) {
  if (before === 0) return <>no figure before</>;
  const percent = Math.round(((now - before) / Math.abs(before)) * 100);
  const sign = percent > 0 ? "▲ " : percent < 0 ? "▼ " : "";
  return <>{`${sign}${Math.abs(percent).toLocaleString("en-US")} % vs. before`}</>;
}

const numberOf = (amount: Amount) => Number(formatAmount(amount));
const count = (value: number) => value.toLocaleString("en-US");

function MoneyFigures({ visit, summary: { totals }, before, users }: OverviewView) {
  const { project: { currency }, here } = visit;
  const money = (amount: Amount) => <MoneyCell amount={amount} currency={currency} />;
  const change = (now: Amount, then: Amount) => (
    <Change now={numberOf(now)} before={numberOf(then)} />
  );
  const revenue = chargedAmount(totals);
  const { upstreamCost, margin, deposits } = totals;
  const share = revenue > 0n && upstreamCost > 0n
    ? `${Math.round((numberOf(margin) / numberOf(toAmount(margin + upstreamCost))) * 100)} % of it`
    : "where the cost is known";
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
          note: change(revenue, chargedAmount(before.totals)),
        },
        {
          label: "Upstream cost",
          value: money(upstreamCost),
          note: change(upstreamCost, before.totals.upstreamCost),
        },
        { label: "Margin", value: money(margin), note: share },
        {
          label: "Deposits",
          value: <a href={here("/activity?kind=deposit")}>{money(deposits)}</a>,
          note: change(deposits, before.totals.deposits),
        },
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

function RevenueChart({ visit, period, summary, before }: OverviewView) {
  const { project: { currency }, here } = visit;
  const steps = timeSteps(summary.hours, period);
  const length = steps.length * period.stepMs;
  const earlier = timeSteps(before.hours, {
    from: period.from - length,
    to: period.from,
    stepMs: period.stepMs,
  });
  const price = new Intl.NumberFormat("en-US", {
    style: "currency",
    currency: currency.toUpperCase(),
    notation: "compact",
    maximumSignificantDigits: 3,
  });
  const amount = formatAmount(chargedAmount(summary.totals));
  const zoom = (start: number): { href?: string } =>
    period.stepMs < 2 * 60 * 60 * 1000
      ? {}
      : { href: here(`?from=${stamp(start)}&to=${stamp(start + period.stepMs)}`) };
  return (
    <BarChart
      id="charged"
      title="Revenue"
      says={`${amount} ${currency} were charged in the ${period.title}.`}
      series={["Revenue"]}
      wide
      before={earlier.some(({ charged }) => charged > 0n)
        ? { name: "The period before", values: earlier.map(({ charged }) => numberOf(charged)) }
        : undefined}
      bars={steps.map(({ start, charged }) => ({
        ...namesOf(start, period),
        values: [numberOf(charged)],
        figures: [<MoneyCell amount={charged} currency={currency} />],
        ...zoom(start),
      }))}
      axis={(value) => price.format(value)}
    />
  );
}

const stamp = (at: number) => new Date(at).toISOString().slice(0, 16);

/** Below the bars is the hour for up to two days, and the month and day for longer periods. */
function namesOf(start: number, { stepMs, from, to }: Period): { label: string; tick: string } {
  const dayMs = 24 * 60 * 60 * 1000;
  const [date = "", time = ""] = new Date(start).toISOString().slice(0, 16).split("T");
  const label = stepMs < dayMs ? `${date} ${time}` : date;
  return { label, tick: to - from > 2 * dayMs ? date.slice(5) : time };
}

function UseFigures({ visit: { here }, period, summary, before, users }: OverviewView) {
  const { totals, newUsers, paywall } = summary;
  const ended = totals.requests + totals.failed;
  const rate = ended > 0 ? (totals.failed / ended) * 100 : 0;
  const shown = (value: Child, path: string) => <a href={here(path)}>{value}</a>;
  const query = `${period.query.startsWith("from") ? `&${period.query}` : ""}`;
  const active = users && period.days !== null ? users.active[period.days] : null;
  return (
    <Stats
      figures={[
        {
          label: "Requests",
          value: shown(count(totals.requests), `/requests?outcome=completed${query}`),
          note: <Change now={totals.requests} before={before.totals.requests} />,
        },
        {
          label: "Failed",
          value: shown(count(totals.failed), `/requests?outcome=failed${query}`),
          note: `${rate.toLocaleString("en-US", { maximumFractionDigits: 1 })} % of those sent`,
        },
        {
          label: "Refused",
          value: shown(count(totals.refused), `/requests?outcome=refused${query}`),
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

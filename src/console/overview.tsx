/** @jsxImportSource @hono/hono/jsx */
import { inputTokensOf } from "../base/token_classes.ts";
import type { Handler } from "../base/handler.ts";
import { type Amount, formatAmount } from "../base/money.ts";
import { monthOf } from "../base/period.ts";
import { readSummary, type Summary } from "../summaries/summary.ts";
import { readTopUsers, type TopUser } from "../summaries/top_users.ts";
import { BarChart, Share } from "../pages/chart.tsx";
import type { ConsoleGuard, ProjectVisit } from "./guard.tsx";
import { MoneyCell, Stats, Table, Tabs } from "../pages/parts.tsx";
import type { ConsoleDeps } from "./console_deps.ts";
import { unbookedOfProject, UnbookedPayments } from "./unbooked.tsx";
import { addressOf } from "./user.tsx";
import {
  chargedAmount,
  type Range,
  ranges,
  rangeStart,
  type TimeStep,
  timeSteps,
} from "./timeline.ts";

const usersShown = 20;

/** What a project charged and used in a recent period, by its hourly sums. */
export function overviewPage(guard: ConsoleGuard, { deps: { kv, clock } }: ConsoleDeps): Handler {
  return guard.project(async (visit) => {
    const { project, incoming, page } = visit;
    const wanted = incoming.query("days");
    const range = ranges.find(({ days }) => String(days) === wanted) ?? ranges[0];
    const now = clock.now();
    const [from, to] = [rangeStart(range, now), now + 1];
    const summary = await readSummary(kv, project.id, { from, to });
    const month = monthOf(now);
    const unbooked = await unbookedOfProject(kv, project);
    const users = await readTopUsers(kv, project.id, month);
    const steps = timeSteps(summary.hours, { from, to, stepMs: range.stepMs });
    const view = { visit, range, summary, steps };
    return page(
      "Overview",
      <>
        <UnbookedPayments payments={unbooked} />
        <Ranges {...view} />
        <Figures {...view} />
        <Charts {...view} />
        <Models {...view} />
        <Users visit={visit} month={month} users={users.slice(0, usersShown)} />
        <Refusals {...view} />
      </>,
      { section: "" },
    );
  });
}

interface OverviewView {
  visit: ProjectVisit;
  range: Range;
  summary: Summary;
  steps: TimeStep[];
}

const count = (value: number) => value.toLocaleString("en-US");

function Ranges({ visit: { here }, range }: OverviewView) {
  const tabs = ranges.map(({ days, title }) => ({
    title,
    href: here(`?days=${days}`),
    shown: days === range.days,
  }));
  return <Tabs label="Time" tabs={tabs} />;
}

function Figures({ visit: { project: { currency } }, summary: { totals } }: OverviewView) {
  const money = (amount: Amount) => <MoneyCell amount={amount} currency={currency} />;
  return (
    <Stats
      figures={[
        {
          label: "Charged",
          value: money(chargedAmount(totals)),
          note: "for responses and charges",
        },
        { label: "Deposits", value: money(totals.deposits) },
        { label: "Refunds", value: money(totals.refunds) },
        { label: "Requests", value: count(totals.requests), note: "charged" },
        { label: "Refused", value: count(totals.refused), note: `${count(totals.failed)} failed` },
        {
          label: "Input tokens",
          value: count(inputTokensOf(totals)),
          note: `${count(totals.cachedInput)} cached`,
        },
        {
          label: "Output tokens",
          value: count(totals.output),
          note: `${count(totals.reasoning)} reasoning`,
        },
        {
          label: "Not collected",
          value: money(totals.shortfall),
          note: "charges beyond the balance",
        },
      ]}
    />
  );
}

function Charts(
  { visit: { project: { currency } }, range, summary: { totals }, steps }: OverviewView,
) {
  const compact = new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 });
  const price = new Intl.NumberFormat("en-US", {
    style: "currency",
    currency: currency.toUpperCase(),
    notation: "compact",
    maximumSignificantDigits: 3,
  });
  const axis = (value: number) => compact.format(value);
  const time = range.title;
  const barsOf = (read: (step: TimeStep) => readonly number[]) =>
    steps.map((step) => {
      const values = read(step);
      return { ...namesOf(step.start, range), values, figures: values.map(count) };
    });
  const input = inputTokensOf(totals);
  return (
    <div class="charts">
      <BarChart
        id="charged"
        title="Charged"
        says={`${formatAmount(chargedAmount(totals))} ${currency} were charged in ${time}.`}
        series={["Charged"]}
        bars={steps.map(({ start, charged }) => ({
          ...namesOf(start, range),
          values: [Number(formatAmount(charged))],
          figures: [<MoneyCell amount={charged} currency={currency} />],
        }))}
        axis={(value) => price.format(value)}
      />
      <BarChart
        id="requests"
        title="Requests"
        says={`${count(totals.requests)} requests were served in ${time}, ${
          count(totals.failed)
        } failed and ${count(totals.refused)} were refused.`}
        series={["Answered", "Failed", "Refused"]}
        bars={barsOf(({ requests, failed, refused }) => [requests, failed, refused])}
        axis={axis}
      />
      <BarChart
        id="tokens"
        title="Tokens"
        says={`${count(input)} input tokens and ${count(totals.output)} output tokens in ${time}.`}
        series={["In", "Out"]}
        bars={barsOf((step) => [step.input, step.output])}
        axis={axis}
      />
    </div>
  );
}

/** Below the bars is the hour for one day, and the month and day for longer periods. */
function namesOf(start: number, { days, stepMs }: Range): { label: string; tick: string } {
  const [date = "", time = ""] = new Date(start).toISOString().slice(0, 16).split("T");
  const hours = stepMs < 24 * 60 * 60 * 1000;
  return { label: hours ? `${date} ${time}` : date, tick: days > 1 ? date.slice(5) : time };
}

function Models({ visit: { project: { currency } }, summary: { models } }: OverviewView) {
  const most = models[0]?.cost ?? 0n;
  return (
    <>
      <h2>By model</h2>
      <Table
        caption="By cost"
        columns={[
          "Model",
          { title: "Requests", number: true },
          { title: "Input tokens", number: true },
          { title: "Output tokens", number: true },
          { title: "Cost", number: true },
          "Share",
        ]}
        rows={models.map((totals) => [
          totals.model,
          count(totals.requests),
          count(inputTokensOf(totals)),
          count(totals.output),
          <MoneyCell amount={totals.cost} currency={currency} />,
          <Share part={shareOf(totals.cost, most)} />,
        ])}
        empty="No responses in this period."
      />
    </>
  );
}

function Users({ visit: { project: { currency }, here }, month, users }: {
  visit: ProjectVisit;
  month: string;
  users: TopUser[];
}) {
  const most = users[0]?.spent ?? 0n;
  return (
    <>
      <h2>By user</h2>
      <Table
        caption={`Top spenders in ${month}, UTC`}
        columns={[
          "User",
          { title: "Requests", number: true },
          { title: "Tokens", number: true },
          { title: "Spent", number: true },
          "Share",
        ]}
        rows={users.map(({ user, requests, tokens, spent }) => [
          <a href={addressOf({ here }, user)}>
            <bdi>{user}</bdi>
          </a>,
          count(requests),
          count(tokens),
          <MoneyCell amount={spent} currency={currency} />,
          <Share part={shareOf(spent, most)} />,
        ])}
        empty="No spending in this month."
      />
    </>
  );
}

const shareOf = (part: bigint, whole: bigint) =>
  whole === 0n ? 0 : Number((part * 1000n) / whole) / 1000;

function Refusals({ summary: { refusals, failures, unpriced } }: OverviewView) {
  const columns = ["Reason", { title: "Count", number: true }] as const;
  return (
    <>
      <h2>Refused and failed</h2>
      <Table
        caption="Refused, by reason"
        columns={columns}
        rows={refusals.map(({ reason, count: times }) => [<code>{reason}</code>, count(times)])}
        empty="Nothing was refused in this period."
      />
      <Table
        caption="Failed, by code"
        columns={columns}
        rows={failures.map(({ reason, count: times }) => [<code>{reason}</code>, count(times)])}
        empty="Nothing failed in this period."
      />
      {unpriced.length === 0 ? null : (
        <Table
          caption="Requests for models without a price, which got 404"
          columns={["Model", { title: "Count", number: true }]}
          rows={unpriced.map(({ reason, count: times }) => [<code>{reason}</code>, count(times)])}
          empty=""
        />
      )}
    </>
  );
}

/** @jsxImportSource @hono/hono/jsx */
import { inputTokensOf, outputTokensOf } from "../../base/token_classes.ts";
import type { Child } from "@hono/hono/jsx";
import { type Amount, toAmount } from "../../base/money.ts";
import { Share } from "../../pages/chart.tsx";
import { Card, type Column, EmptyState, MoneyCell, Table, TimeCell } from "../../pages/parts.tsx";
import { errorRateOf } from "../../summaries/request_counts.ts";
import type { ReasonCount, Summary } from "../../summaries/summary.ts";
import type { OverviewView } from "./overview_view.ts";
import { UserLink } from "../users/user_link.tsx";

const listed = 8;
const count = (value: number) => value.toLocaleString("en-US");

/** Cost, margin, errors and times of each model, and what was charged besides. */
export function ModelTable({ visit, period, summary: { totals, models } }: OverviewView) {
  const { project: { currency }, here } = visit;
  const { revenue: whole } = totals;
  const other = models.reduce<bigint>((left, { revenue }) => left - revenue, whole);
  const rows = models.map((model) => {
    const query = new URLSearchParams({ model: model.model });
    const link = <a href={here(`?${period.query}&${query}`)}>{model.model}</a>;
    return modelRow({ link, model, whole, currency });
  });
  const others = [
    <a href={here(`/activity?kind=charge&${period.times}`)}>Other charges</a>,
    ...Array<string>(7).fill("–"),
    <MoneyCell amount={toAmount(other)} currency={currency} />,
    <Share part={shareOf(other, whole)} />,
  ];
  return (
    <Card title="Models" note="Highest revenue first">
      <Table
        caption={`Models of the ${period.title}, UTC`}
        columns={[
          "Model",
          { title: "Requests", number: true },
          { title: "Calls", number: true },
          { title: "Failed", number: true },
          { title: "First token", number: true },
          { title: "Tokens in / out", number: true },
          { title: "Upstream cost", number: true },
          { title: "Margin", number: true },
          { title: "Revenue", number: true, lead: true },
          "Share of revenue",
        ]}
        rows={other !== 0n && models.length > 0 ? [...rows, others] : rows}
        empty={
          <EmptyState icon="requests" title="No requests in this period">
            <p>Models appear here with their cost, margin, errors and times.</p>
          </EmptyState>
        }
      />
    </Card>
  );
}

function modelRow({ link, model, whole, currency }: {
  link: Child;
  model: Summary["models"][number];
  /** The revenue of the project. */
  whole: Amount;
  currency: string;
}): Child[] {
  const { requests, calls, revenue, upstreamCost, margin, firstTokenMs } = model;
  const money = (amount: Amount) => <MoneyCell amount={amount} currency={currency} />;
  return [
    link,
    count(requests),
    count(calls),
    calls > 0 ? `${errorRateOf(model).toFixed(1)} %` : "–",
    firstTokenMs
      ? (
        <span title={`95 %: ${timeText(firstTokenMs.most)}`}>
          {timeText(firstTokenMs.half)}
        </span>
      )
      : "–",
    `${count(inputTokensOf(model))} / ${count(outputTokensOf(model))}`,
    upstreamCost > 0n ? money(upstreamCost) : "–",
    upstreamCost > 0n ? <span class={margin < 0n ? "bad" : ""}>{money(margin)}</span> : "–",
    money(revenue),
    <Share part={shareOf(revenue, whole)} />,
  ];
}

/** The upper bound of the class that a time is in. */
function timeText(ms: number): string {
  if (ms === Infinity) return "> 30 s";
  return ms < 1000 ? `< ${ms} ms` : `< ${ms / 1000} s`;
}

const shareOf = (part: bigint, whole: bigint) =>
  whole === 0n ? 0 : Number((part * 1000n) / whole) / 1000;

/** Who has run out, who is about to, and who spends most. */
export function UserTables(
  { visit, period, users, summary, topSpenders, ranOut }: OverviewView,
) {
  const { project: { currency }, here } = visit;
  const { cost, charges } = summary.totals;
  const link = (user: string) => <UserLink visit={visit} user={user} />;
  const refused = new URLSearchParams({ outcome: "refused", reason: "insufficient_funds" });
  return (
    <div class="cards">
      <Card
        title="Ran out of credit"
        note={<a href={here(`/requests?${refused}&${period.times}`)}>All</a>}
      >
        <Table
          caption="Refused for lack of money, latest first"
          columns={[
            "User",
            { title: "Requests", number: true },
            { title: "Last", lead: true },
          ]}
          rows={ranOut.slice(0, listed).map(({ user, requests, lastAt }) => [
            link(user),
            count(requests),
            <TimeCell at={lastAt} />,
          ])}
          empty="No user was refused for lack of money in this period."
        />
      </Card>
      {users === null
        ? null
        : (
          <Card title="Lowest balances" note={<a href={here("/users?order=low")}>All</a>}>
            <Table
              caption="Of users who were active in 30 days"
              columns={["User", { title: "Balance", number: true, lead: true }]}
              rows={users.first.low.slice(0, listed).map(({ user, balance }) => [
                link(user),
                <MoneyCell amount={balance} currency={currency} balance />,
              ])}
              empty="No user was active in 30 days."
            />
          </Card>
        )}
      <Card title="Top spenders" note={<a href={here("/users?order=spent")}>All</a>}>
        <Table
          caption={`Spent in the ${period.title}, UTC`}
          columns={["User", { title: "Spent", number: true, lead: true }, "Share of all"]}
          rows={topSpenders.slice(0, listed).map(({ user, spent, atMost }) => [
            link(user),
            <>
              {atMost === spent ? null : "at least "}
              <MoneyCell amount={spent} currency={currency} />
            </>,
            <Share part={shareOf(spent, cost + charges)} />,
          ])}
          empty="No spending in this period."
        />
      </Card>
    </div>
  );
}

/** Why requests were refused or failed. */
export function Endings(
  { visit: { here }, period, summary: { refusals, failures, unpriced, refusedCharges } }:
    OverviewView,
) {
  const columns: Column[] = ["Reason", { title: "Requests", number: true, lead: true }];
  const rows = (counts: readonly ReasonCount[], outcome: string) =>
    counts.map(({ reason, count: times }) => [
      <a href={here(`/requests?${new URLSearchParams({ outcome, reason })}&${period.times}`)}>
        <code>{reason}</code>
      </a>,
      count(times),
    ]);
  return (
    <div class="cards">
      <Card title="Refused">
        <Table
          caption="By reason"
          columns={columns}
          rows={rows(refusals, "refused")}
          empty="Nothing was refused in this period."
        />
      </Card>
      <Card title="Failed">
        <Table
          caption="By code"
          columns={columns}
          rows={rows(failures, "failed")}
          empty="Nothing failed in this period."
        />
      </Card>
      {refusedCharges.length === 0
        ? null
        : (
          <Card title="Refused charges" note="They are no requests">
            <Table
              caption="Manual charges, by reason"
              columns={["Reason", { title: "Charges", number: true, lead: true }]}
              rows={refusedCharges.map((
                { reason, count: times },
              ) => [<code>{reason}</code>, count(times)])}
              empty=""
            />
          </Card>
        )}
      {unpriced.length === 0
        ? null
        : (
          <Card title="Models without a price" note={<a href={here("/pricing")}>Set a price</a>}>
            <Table
              caption="Requests for them got 404"
              columns={["Model", { title: "Requests", number: true, lead: true }]}
              rows={unpriced.map((
                { reason, count: times },
              ) => [<code>{reason}</code>, count(times)])}
              empty=""
            />
          </Card>
        )}
    </div>
  );
}

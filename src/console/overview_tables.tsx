/** @jsxImportSource @hono/hono/jsx */
import { inputTokensOf, outputTokensOf } from "../base/token_classes.ts";
import type { Amount } from "../base/money.ts";
import { Share } from "../pages/chart.tsx";
import { Card, type Column, EmptyState, MoneyCell, Table } from "../pages/parts.tsx";
import type { ReasonCount } from "../summaries/summary.ts";
import { chargedAmount } from "./timeline.ts";
import { headingOf } from "./period.ts";
import type { OverviewView } from "./overview.tsx";
import { UserLink } from "./user_link.tsx";

const listed = 8;
const count = (value: number) => value.toLocaleString("en-US");

/** Cost, margin, errors and times of each model. */
export function ModelTable({ visit, summary: { models, calls } }: OverviewView) {
  const { project: { currency }, here } = visit;
  const money = (amount: Amount) => <MoneyCell amount={amount} currency={currency} />;
  const most = models[0]?.cost ?? 0n;
  return (
    <Card title="Models" note="By what was charged">
      <Table
        caption="Models of the period, the one with the highest revenue first"
        columns={[
          "Model",
          { title: "Requests", number: true },
          { title: "Failed", number: true },
          { title: "First token", number: true },
          { title: "Tokens in / out", number: true },
          { title: "Upstream cost", number: true },
          { title: "Margin", number: true },
          { title: "Revenue", number: true, lead: true },
          "Share",
        ]}
        rows={models.map((totals) => {
          const call = calls.get(totals.model);
          const query = new URLSearchParams({ model: totals.model });
          return [
            <a href={here(`/requests?${query}`)}>{totals.model}</a>,
            count(totals.requests),
            call && call.calls > 0 ? `${((call.failed / call.calls) * 100).toFixed(1)} %` : "0.0 %",
            call?.firstTokenMs
              ? (
                <span title={`95 %: ${timeText(call.firstTokenMs.most)}`}>
                  {timeText(call.firstTokenMs.half)}
                </span>
              )
              : "–",
            `${count(inputTokensOf(totals))} / ${count(outputTokensOf(totals))}`,
            totals.upstreamCost > 0n ? money(totals.upstreamCost) : "–",
            totals.upstreamCost > 0n
              ? <span class={totals.margin < 0n ? "bad" : ""}>{money(totals.margin)}</span>
              : "–",
            money(totals.cost),
            <Share part={shareOf(totals.cost, most)} />,
          ];
        })}
        empty={
          <EmptyState icon="requests" title="No responses in this period">
            <p>Models appear here with their cost, margin, errors and times.</p>
          </EmptyState>
        }
      />
    </Card>
  );
}

/** The upper bound of the class that a time is in. */
function timeText(ms: number): string {
  if (ms === Infinity) return "> 30 s";
  return ms < 1000 ? `< ${ms} ms` : `< ${ms / 1000} s`;
}

const shareOf = (part: bigint, whole: bigint) =>
  whole === 0n ? 0 : Number((part * 1000n) / whole) / 1000;

/** Who is about to run out, and who spends most. */
export function UserTables({ visit, period, users, summary, topSpenders }: OverviewView) {
  const { project: { currency }, here } = visit;
  const revenue = chargedAmount(summary.totals);
  const link = (user: string) => <UserLink visit={visit} user={user} />;
  return (
    <div class="cards">
      {users === null ? null : (
        <Card
          title="About to run out"
          note={<a href={here("/users?order=low")}>All</a>}
        >
          <Table
            caption="Lowest balance first, of those active in 30 days"
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
          caption={headingOf(period)}
          columns={["User", { title: "Spent", number: true, lead: true }, "Share of revenue"]}
          rows={topSpenders.slice(0, listed).map(({ user, spent }) => [
            link(user),
            <MoneyCell amount={spent} currency={currency} />,
            <Share part={shareOf(spent, revenue)} />,
          ])}
          empty="No spending in this period."
        />
      </Card>
    </div>
  );
}

/** Why requests were refused or failed. */
export function Endings(
  { visit: { here }, summary: { refusals, failures, unpriced } }: OverviewView,
) {
  const columns: Column[] = ["Reason", { title: "Requests", number: true, lead: true }];
  const rows = (counts: readonly ReasonCount[], outcome: string) =>
    counts.map(({ reason, count: times }) => [
      <a href={here(`/requests?${new URLSearchParams({ outcome, reason })}`)}>
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

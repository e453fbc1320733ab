/** @jsxImportSource @hono/hono/jsx */
import { type Amount, formatAmount } from "../../base/money.ts";
import { checkUserId } from "../../base/user_id.ts";
import { MoneyCell, Stats } from "../../pages/parts.tsx";
import { seeOther } from "../../pages/response.tsx";
import { type PartSummary, readPart, type SummaryPart } from "../../summaries/part.ts";
import type { ConsoleDeps } from "../console_deps.ts";
import type { ProjectVisit } from "../guard.tsx";
import { RevenueChart } from "../money/money_chart.tsx";
import { Change } from "../change.tsx";
import { nameOfKey } from "../developers/key_name.ts";
import { type OverviewFilter, OverviewFilters } from "./overview_filter.tsx";
import { headingOf, type Period, periodBefore } from "../shown_period.ts";
import { addressOf } from "../users/user_link.tsx";

/**
 * Responds with the overview of one model or key, or leads on to the page of a user; null where
 * nothing is chosen. Throws 400 for an invalid user id.
 */
export async function respondFiltered(
  { deps, admin }: ConsoleDeps,
  { visit, period, filter }: { visit: ProjectVisit; period: Period; filter: OverviewFilter },
): Promise<Response | null> {
  const { project, page, here, incoming } = visit;
  if (filter.user !== "") {
    const user = checkUserId(filter.user, "user");
    return seeOther(`${addressOf(visit, user)}&${period.query}`, incoming.requestId);
  }
  if (filter.model === "" && filter.key === "") return null;
  const part: SummaryPart = filter.model === "" ? { key: filter.key } : { model: filter.model };
  const [summary, before, keys] = await Promise.all([
    readPart(deps.kv, project.id, period, part),
    readPart(deps.kv, project.id, periodBefore(period), part),
    admin.keys(project.id),
  ]);
  const name = "model" in part
    ? `the model ${part.model}`
    : `the key ${nameOfKey(keys.find(({ id }) => id === part.key))}`;
  const query = new URLSearchParams(part);
  const pointsOf = ({ hours }: PartSummary) =>
    hours.map(({ start, totals: { revenue, cost } }) => ({ start, amount: revenue ?? cost }));
  return page(
    "Overview",
    <>
      <PartFigures {...{ visit, summary, before, part, period }} />
      <RevenueChart
        {...{ visit, period }}
        title={chargedTitle(summary)}
        total={summary.totals.revenue ?? summary.totals.cost}
        amounts={pointsOf(summary)}
        before={pointsOf(before)}
        zoom={(times) => here(`?${times}&${query}`)}
      />
    </>,
    {
      section: "",
      actions: <OverviewFilters {...{ visit, period, keys, filter }} />,
      note: (
        <>
          {headingOf(period)} · only <bdi>{name}</bdi>
        </>
      ),
    },
  );
}

const numberOf = (amount: Amount) => Number(formatAmount(amount));
const count = (value: number) => value.toLocaleString("en-US");
const percent = (of: number, all: number) =>
  all === 0
    ? "0 %"
    : `${((of / all) * 100).toLocaleString("en-US", { maximumFractionDigits: 1 })} %`;

/** A refund is known by its model, and not by its key. */
function chargedTitle({ totals: { revenue } }: PartSummary): string {
  return revenue === null ? "Charged, before refunds" : "Revenue";
}

interface PartView {
  visit: ProjectVisit;
  summary: PartSummary;
  before: PartSummary;
  part: SummaryPart;
  period: Period;
}

function PartFigures(view: PartView) {
  const { visit: { project: { currency } }, summary: { totals }, before } = view;
  const money = (amount: Amount) => <MoneyCell amount={amount} currency={currency} />;
  const { cost, revenue, upstreamCost, margin, inputTokens, outputTokens } = totals;
  const earned = revenue ?? cost;
  const earlier = before.totals.revenue ?? before.totals.cost;
  const isKnown = upstreamCost > 0n;
  return (
    <>
      <Stats
        figures={[
          {
            label: chargedTitle(view.summary),
            value: money(earned),
            note: <Change now={numberOf(earned)} before={numberOf(earlier)} />,
          },
          { label: "Upstream cost", value: isKnown ? money(upstreamCost) : "–" },
          { label: "Margin", value: isKnown ? money(margin) : "–" },
          { label: "Tokens in / out", value: `${count(inputTokens)} / ${count(outputTokens)}` },
        ]}
      />
      <PartRequests {...view} />
    </>
  );
}

function PartRequests({ visit: { here }, summary: { totals }, before, part, period }: PartView) {
  const { requests, calls, failed, refused, latencyMs } = totals;
  const list = (outcome: string) => {
    const query = new URLSearchParams({ ...part, ...(outcome === "" ? {} : { outcome }) });
    return here(`/requests?${query}&${period.times}`);
  };
  return (
    <Stats
      figures={[
        {
          label: "Requests",
          value: <a href={list("")}>{count(requests)}</a>,
          note: <Change now={requests} before={before.totals.requests} />,
        },
        {
          label: "Calls",
          value: count(calls),
          note: "requests that were sent to a model",
        },
        {
          label: "Failed",
          value: <a href={list("failed")}>{count(failed)}</a>,
          note: `${percent(failed, calls)} of calls`,
        },
        {
          label: "Refused",
          value: <a href={list("refused")}>{count(refused)}</a>,
          note: `${percent(refused, requests)} of requests`,
        },
        {
          label: "Average latency",
          value: latencyMs === null ? "–" : `${count(latencyMs)} ms`,
          note: "until the end of the response",
        },
      ]}
    />
  );
}

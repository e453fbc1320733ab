/** @jsxImportSource @hono/hono/jsx */
import { type Amount, formatAmount, toAmount } from "../../base/money.ts";
import { formatShort } from "../../base/money_text.ts";
import { BarChart } from "../../pages/chart.tsx";
import { MoneyCell } from "../../pages/parts.tsx";
import type { ProjectVisit } from "../guard.tsx";
import type { Period } from "../shown_period.ts";
import { type AmountAt, amountSteps } from "../timeline.ts";
import { timesQuery } from "../times.tsx";

const hourMs = 60 * 60 * 1000;
const numberOf = (amount: Amount) => Number(formatAmount(amount));
const stamp = (at: number) => new Date(at).toISOString().slice(0, 16);

/** Money over a period, and in the period of the same length before. */
export function MoneyChart({ visit, period, title, says, amounts, before = [], zoom }: {
  visit: ProjectVisit;
  period: Period;
  title: string;
  /** A sentence that states what the chart shows, with its main figures. */
  says: string;
  amounts: readonly AmountAt[];
  before?: readonly AmountAt[];
  /** Returns where a click on a bar leads, by the query of its time. */
  zoom: (query: string) => string;
}) {
  const { project: { currency } } = visit;
  const steps = amountSteps(amounts, period);
  const length = steps.length * period.stepMs;
  const earlier = amountSteps(before, {
    from: period.from - length,
    to: period.from,
    stepMs: period.stepMs,
  });
  const linkOf = (start: number): { href?: string } =>
    period.stepMs < 2 * hourMs
      ? {}
      : { href: zoom(timesQuery({ from: start, to: start + period.stepMs })) };
  return (
    <BarChart
      id="charged"
      title={title}
      says={says}
      series={[title]}
      wide
      before={earlier.some(({ amount }) => amount > 0n)
        ? { name: "Previous period", values: earlier.map(({ amount }) => numberOf(amount)) }
        : undefined}
      bars={steps.map(({ start, amount }) => ({
        ...namesOf(start, period),
        values: [numberOf(amount)],
        figures: [<MoneyCell amount={amount} currency={currency} />],
        ...linkOf(start),
      }))}
      axis={(value) => axisText(value, currency)}
    />
  );
}

/** What users were charged over a period: `total` in all. */
export function RevenueChart({ total, title = "Revenue", ...chart }: {
  title?: string;
  visit: ProjectVisit;
  period: Period;
  total: Amount;
  amounts: readonly AmountAt[];
  before: readonly AmountAt[];
  zoom: (query: string) => string;
}) {
  const { visit: { project: { currency } }, period } = chart;
  const says = `${formatAmount(total)} ${currency} were charged in the ${period.title}.`;
  return <MoneyChart {...chart} title={title} says={says} />;
}

/** An amount as short as an axis needs it: `$0`, `$0.50`, `$0.0060`, `$1.2K`. */
function axisText(value: number, currency: string): string {
  if (value !== 0 && value < 1_000) {
    const amount = toAmount(BigInt(Math.round(value * 1e9)));
    return formatShort(amount, currency, { rounding: "halfEven" });
  }
  const style = { style: "currency", currency, notation: "compact" } as const;
  return new Intl.NumberFormat("en-US", { ...style, maximumSignificantDigits: 3 }).format(value);
}

const dayMs = 24 * hourMs;
const dayName = new Intl.DateTimeFormat("en-US", {
  month: "short",
  day: "numeric",
  timeZone: "UTC",
});

/** Below the bars is the hour for up to two days, and each day once for longer periods. */
function namesOf(start: number, { stepMs, from, to }: Period): { label: string; tick: string } {
  const [date = "", time = ""] = stamp(start).split("T");
  const label = stepMs < dayMs ? `${date} ${time}` : date;
  if (to - from <= 2 * dayMs) return { label, tick: time };
  return { label, tick: time === "00:00" ? dayName.format(start) : "" };
}

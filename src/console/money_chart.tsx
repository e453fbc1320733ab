/** @jsxImportSource @hono/hono/jsx */
import { type Amount, formatAmount } from "../base/money.ts";
import { BarChart } from "../pages/chart.tsx";
import { MoneyCell } from "../pages/parts.tsx";
import type { ProjectVisit } from "./guard.tsx";
import type { Period } from "./period.ts";
import { type AmountAt, amountSteps } from "./timeline.ts";

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
  const price = new Intl.NumberFormat("en-US", {
    style: "currency",
    currency: currency.toUpperCase(),
    notation: "compact",
    maximumSignificantDigits: 3,
  });
  const linkOf = (start: number): { href?: string } =>
    period.stepMs < 2 * hourMs
      ? {}
      : { href: zoom(`from=${stamp(start)}&to=${stamp(start + period.stepMs)}`) };
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
      axis={(value) => price.format(value)}
    />
  );
}

/** Below the bars is the hour for up to two days, and the month and day for longer periods. */
function namesOf(start: number, { stepMs, from, to }: Period): { label: string; tick: string } {
  const dayMs = 24 * hourMs;
  const [date = "", time = ""] = stamp(start).split("T");
  const label = stepMs < dayMs ? `${date} ${time}` : date;
  return { label, tick: to - from > 2 * dayMs ? date.slice(5) : time };
}

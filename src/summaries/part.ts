import { type Amount, toAmount } from "../base/money.ts";
import { inputTokensOf, outputTokensOf } from "../base/token_classes.ts";
import type { Kv } from "../store/kv.ts";
import { decodeSum, type Sum } from "../store/sums.ts";
import { canceledOfKeyPosition, startOfHour } from "./hourly_counters.ts";
import { countsIn, type RequestCounts } from "./request_counts.ts";
import { addAll, type CallTimes, summaryRows, timesOf, totalsOfModel } from "./summary.ts";

/** The model or the API key whose use is added up. */
export type SummaryPart = { model: string } | { key: string };

/** The requests of one model or key. Amounts are in 1e-9 units. */
interface PartTotals extends RequestCounts, CallTimes {
  inputTokens: number;
  outputTokens: number;
  /** The sum of the charges. */
  cost: Amount;
  /** Of a model, the charges less what was given back; null of a key, where that is not known. */
  revenue: Amount | null;
  upstreamCost: Amount;
  /** The revenue, or a key's charges, where the upstream cost is known, less that cost. */
  margin: Amount;
}

/** The requests of one model or key over a time: in total and by hour. */
export interface PartSummary {
  totals: PartTotals;
  /** Only hours with some use, in order. `start` is in ms since 1970. */
  hours: { start: number; totals: PartTotals }[];
}

/**
 * Adds up what was done with a model or a key in the hours from `from` until before `to`, in ms.
 * What a key did is counted after its requests: a process that dies may lose its last second.
 */
export async function readPart(
  kv: Kv,
  projectId: string,
  { from, to }: { from: number; to: number },
  part: SummaryPart,
): Promise<PartSummary> {
  const fields = "model" in part
    ? [`model:${part.model}`, `calls:${part.model}`, `back:${part.model}`]
    : [`key:${part.key}`];
  const whole: Sum = new Map();
  const hours = new Map<number, Sum>();
  for await (const { key, value } of summaryRows(kv, projectId, startOfHour(from), to)) {
    if (!value) continue;
    const row = decodeSum(value);
    const found = new Map([...row].filter(([field]) => fields.includes(field)));
    if (found.size === 0) continue;
    const start = Number(key[2]);
    let hour = hours.get(start);
    if (!hour) hours.set(start, hour = new Map());
    addAll(hour, found);
    addAll(whole, found);
  }
  const read = (sum: Sum) =>
    "model" in part ? partOfModel(sum, part.model) : partOfKey(sum, part.key);
  return {
    totals: read(whole),
    hours: [...hours].map(([start, sum]) => ({ start, totals: read(sum) })),
  };
}

function partOfModel(sum: Sum, model: string): PartTotals {
  const { cost, revenue, upstreamCost, margin, ...totals } = totalsOfModel(sum, model);
  const { requests, calls, failed, canceled, refused, repeated } = totals;
  return {
    ...{ requests, calls, failed, canceled, refused, repeated },
    inputTokens: inputTokensOf(totals),
    outputTokens: outputTokensOf(totals),
    ...{ cost, revenue, upstreamCost, margin },
    ...{ latencyMs: totals.latencyMs, firstTokenMs: totals.firstTokenMs },
  };
}

/** The values are in the order of `countKeyHourly`; a key's calls have no first token. */
function partOfKey(sum: Sum, key: string): PartTotals {
  const values = sum.get(`key:${key}`) ?? [];
  const [, , , , input = 0n, output = 0n, cost = 0n, upstreamCost = 0n, costed = 0n] = values;
  return {
    ...countsIn(values, canceledOfKeyPosition),
    inputTokens: Number(input),
    outputTokens: Number(output),
    cost: toAmount(cost),
    revenue: null,
    upstreamCost: toAmount(upstreamCost),
    margin: toAmount(costed - upstreamCost),
    latencyMs: timesOf(values.slice(0, 4)).latencyMs,
    firstTokenMs: null,
  };
}

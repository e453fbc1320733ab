import { type Amount, toAmount } from "../base/money.ts";
import { inputTokensOf, outputTokensOf } from "../base/token_classes.ts";
import type { Kv } from "../store/kv.ts";
import { decodeSum, type Sum } from "../store/sums.ts";
import { startOfHour } from "./hourly_counters.ts";
import { addAll, callsOf, type CallTotals, summaryRows, totalsOf } from "./summary.ts";

/** The model or the API key whose use is added up. */
export type SummaryPart = { model: string } | { key: string };

/** The requests of one model or key. Amounts are in 1e-9 units. */
interface PartTotals {
  /** All requests, including failed and refused ones. */
  requests: number;
  failed: number;
  refused: number;
  inputTokens: number;
  outputTokens: number;
  /** The sum of the charges. */
  cost: Amount;
  upstreamCost: Amount;
  /** The charges where the upstream cost is known, less that cost. */
  margin: Amount;
  /** The average of those that neither failed nor were refused, in ms; null for none. */
  latencyMs: number | null;
  /** Of models only. */
  firstTokenMs: CallTotals["firstTokenMs"];
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
    ? [`model:${part.model}`, `calls:${part.model}`]
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
  const read = "model" in part ? totalsOfModel(part.model) : totalsOfKey(part.key);
  return {
    totals: read(whole),
    hours: [...hours].map(([start, sum]) => ({ start, totals: read(sum) })),
  };
}

const totalsOfModel = (model: string) => (sum: Sum): PartTotals => {
  const totals = totalsOf(sum);
  const calls = callsOf(sum).get(model);
  return {
    requests: calls?.calls ?? totals.requests,
    failed: calls?.failed ?? 0,
    refused: calls?.refused ?? 0,
    inputTokens: inputTokensOf(totals),
    outputTokens: outputTokensOf(totals),
    cost: totals.cost,
    upstreamCost: totals.upstreamCost,
    margin: totals.margin,
    latencyMs: calls?.latencyMs ?? null,
    firstTokenMs: calls?.firstTokenMs ?? null,
  };
};

/** The values are in the order of `countKeyHourly`. */
const totalsOfKey = (key: string) => (sum: Sum): PartTotals => {
  const [requests = 0n, failed = 0n, refused = 0n, ms = 0n, input = 0n, output = 0n, ...money] =
    sum.get(`key:${key}`) ?? [];
  const [cost = 0n, upstreamCost = 0n, costed = 0n] = money;
  const served = Number(requests - failed - refused);
  return {
    requests: Number(requests),
    failed: Number(failed),
    refused: Number(refused),
    inputTokens: Number(input),
    outputTokens: Number(output),
    cost: toAmount(cost),
    upstreamCost: toAmount(upstreamCost),
    margin: toAmount(costed - upstreamCost),
    latencyMs: served > 0 ? Math.round(Number(ms) / served) : null,
    firstTokenMs: null,
  };
};

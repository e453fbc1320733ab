import { movementsApart } from "../base/entry_reasons.ts";
import { type Amount, toAmount } from "../base/money.ts";
import { tokenClasses, type TokenCounts, tokenCounts } from "../base/token_classes.ts";
import { sumKey, sumsPrefix } from "../store/keys.ts";
import type { Kv, Row } from "../store/kv.ts";
import { added, decodeSum, type Sum } from "../store/sums.ts";
import { countsIn, type RequestCounts, withLost } from "./request_counts.ts";
import {
  canceledCallsPosition,
  canceledOfKeyPosition,
  costedPosition,
  costPosition,
  movedGroup,
  otherCharges,
  shortfallPosition,
  startOfHour,
  timeClassesMs,
  upstreamCostPosition,
} from "./hourly_counters.ts";

/** The use of a project by its users. Tokens are counts; fields from `cost` on are amounts. */
export interface SummaryTotals extends RequestCounts, TokenCounts {
  /** The charges of responses, including those that ended with their process. */
  cost: Amount;
  /** What users were charged for use, less what was given back: `cost + charges - givenBack`. */
  revenue: Amount;
  /** Refunds of responses and charges. */
  givenBack: Amount;
  /** The cost of responses by their providers' price lists, where that is known. */
  upstreamCost: Amount;
  /** The revenue of the responses whose upstream cost is known, less that cost. */
  margin: Amount;
  /** The amounts due that could not be collected. */
  shortfall: Amount;
  /** Money that users paid. */
  deposits: Amount;
  /** Manual charges for use. */
  charges: Amount;
  /** Other manual charges, less their refunds: corrections, transfers and forfeited balances. */
  otherCharges: Amount;
  /** Payments that went back to payers or their banks, less those that came back again. */
  takenBack: Amount;
  trials: Amount;
  /** Other movements, by reason and direction; never negative. */
  movements: Readonly<Record<string, Amount>>;
}

/** A project's sums over a time: in total, by hour, by model and by reason. */
export interface Summary {
  totals: SummaryTotals;
  /** Only hours in which something happened, in order. `start` is in ms since 1970. */
  hours: { start: number; totals: SummaryTotals }[];
  /**
   * Every model that was requested, by cost, highest first. Beyond 24 models of an hour, the rest
   * is `other`.
   */
  models: (SummaryTotals & CallTimes & { model: string })[];
  /** Why requests were refused. */
  refusals: ReasonCount[];
  /** With which codes calls failed. */
  failures: ReasonCount[];
  /** Why manual charges were refused: they are no requests. */
  refusedCharges: ReasonCount[];
  /** Requests for models without a price, by the model's name. */
  unpriced: ReasonCount[];
  /** Attempts of targets that routes lead to, the most first. */
  targets: TargetTotals[];
  /** Users with their first entry. */
  newUsers: number;
  /** Users who saw the paywall, at most once an hour each, and those who paid within an hour. */
  paywall: { saw: number; paid: number };
}

/** How long the calls of a model took. */
export interface CallTimes {
  /** The average of those that neither failed nor were refused, in ms; null for none. */
  latencyMs: number | null;
  /** Times to the first token: at most so long for half of them, and for 95 %, in ms. */
  firstTokenMs: { half: number; most: number } | null;
}

/** The attempts of a target: a model of an upstream. */
export interface TargetTotals {
  upstream: string;
  model: string;
  attempts: number;
  /** Attempts that got an answer, also where it broke off later. */
  answers: number;
  /** The average time of those to the first event, or to the end of a whole response, in ms. */
  firstTokenMs: number;
  /** The charges of the target's responses. */
  cost: Amount;
  /** The known cost of the target's attempts by the provider's price list. */
  upstreamCost: Amount;
}

/** How often a reason occurred; the most frequent first. */
export interface ReasonCount {
  reason: string;
  count: number;
}

const pageRows = 500;

/**
 * Adds up the stored sums of the hours from `from` until before `to`, in ms. The result equals the
 * sum of the entries, at the cost of one row for each hour. Counted refusals may be 15 s late.
 */
export async function readSummary(
  kv: Kv,
  projectId: string,
  { from, to }: { from: number; to: number },
): Promise<Summary> {
  const whole: Sum = new Map();
  const hours = new Map<number, Sum>();
  for await (const { key, value } of summaryRows(kv, projectId, startOfHour(from), to)) {
    if (!value) continue;
    const start = Number(key[2]);
    let hour = hours.get(start);
    if (!hour) hours.set(start, hour = new Map());
    const row = decodeSum(value);
    addAll(hour, row);
    addAll(whole, row);
  }
  return {
    totals: totalsOf(whole),
    hours: [...hours].map(([start, sum]) => ({ start, totals: totalsOf(sum) })),
    models: modelsOf(whole),
    refusals: countedOf(whole, "refused:"),
    failures: failuresOf(whole),
    refusedCharges: countedOf(whole, "refused_charge:"),
    unpriced: countedOf(whole, "unpriced:"),
    targets: targetsOf(whole),
    newUsers: Number(whole.get("new_user")?.[0] ?? 0n),
    paywall: {
      saw: Number(whole.get("paywall")?.[0] ?? 0n),
      paid: Number(whole.get("paywall")?.[1] ?? 0n),
    },
  };
}

/** Returns how long the requests took that a model's `calls:` values count. */
export function timesOf(values: readonly bigint[]): CallTimes {
  const [requests = 0, failed = 0, refused = 0, ms = 0, answered = 0, , ...rest] = values.map(
    Number,
  );
  const served = requests - failed - refused;
  const classes = rest.slice(0, timeClassesMs.length + 1);
  return {
    latencyMs: served > 0 ? Math.round(ms / served) : null,
    firstTokenMs: answered > 0
      ? { half: quantile(classes, answered / 2), most: quantile(classes, answered * 0.95) }
      : null,
  };
}

/** Returns the upper bound of the class in which the `rank`th time is. */
function quantile(classes: readonly number[], rank: number): number {
  let seen = 0;
  for (const [at, count] of classes.entries()) {
    seen += count;
    if (seen >= rank) return timeClassesMs[at] ?? Infinity;
  }
  return Infinity;
}

/** Reads the rows of some hours, in order of time. */
export async function* summaryRows(
  kv: Kv,
  projectId: string,
  from: number,
  to: number,
): AsyncGenerator<Row> {
  const prefix = sumsPrefix(projectId);
  const end = sumKey(projectId, to);
  for (let start = sumKey(projectId, from);;) {
    const rows = await kv.list({ prefix, start, end, limit: pageRows });
    yield* rows;
    const last = rows.at(-1);
    if (!last || rows.length < pageRows) return;
    start = [...last.key, ""];
  }
}

/** Adds the fields of a row to a sum. */
export function addAll(sum: Sum, row: Sum): void {
  for (const [field, values] of row) {
    const before = sum.get(field);
    sum.set(field, before ? added(before, values) : values);
  }
}

function modelsOf(sum: Sum): Summary["models"] {
  const named = [...sum.keys()].filter((field) => /^(model|calls|back):/.test(field));
  const names = new Set(named.map((field) => field.slice(field.indexOf(":") + 1)));
  const models = [...names].map((model) => ({ model, ...totalsOfModel(sum, model) }));
  return models.sort((one, other) =>
    one.cost === other.cost ? other.requests - one.requests : one.cost < other.cost ? 1 : -1
  );
}

/** Returns what a sum has of one model. */
export function totalsOfModel(sum: Sum, model: string): SummaryTotals & CallTimes {
  const field = `model:${model}`;
  const calls = sum.get(`calls:${model}`) ?? [];
  return {
    ...totalsOf(new Map([field, `back:${model}`].map((name) => [name, sum.get(name) ?? []]))),
    ...countsIn(calls, canceledCallsPosition),
    ...timesOf(calls),
  };
}

const targetGroup = "target:";

function targetsOf(sum: Sum): TargetTotals[] {
  const fields = [...sum].filter(([field]) => field.startsWith(targetGroup));
  const targets = fields.map(([field, [attempts = 0n, answers = 0n, ms = 0n, ...money]]) => {
    const [upstream = "", ...model] = field.slice(targetGroup.length).split(" ");
    return {
      upstream,
      model: model.join(" "),
      attempts: Number(attempts),
      answers: Number(answers),
      firstTokenMs: answers > 0n ? Math.round(Number(ms) / Number(answers)) : 0,
      cost: toAmount(money[0] ?? 0n),
      upstreamCost: toAmount(money[1] ?? 0n),
    };
  });
  return targets.sort((one, other) => other.attempts - one.attempts);
}

function countedOf(sum: Sum, group: string): ReasonCount[] {
  const counted = [...sum].filter(([field]) => field.startsWith(group)).map(([field, [count]]) => ({
    reason: field.slice(group.length),
    count: Number(count ?? 0n),
  }));
  return byCount(counted);
}

function byCount(counts: ReasonCount[]): ReasonCount[] {
  return counts.sort((one, other) => other.count - one.count);
}

/**
 * How many calls their process did not end, as it had died: their entries are of the kind
 * `expired`. A process that lives tells that it has lost a call's hold.
 */
function lostCalls(sum: Sum): number {
  const expired = sum.get("expired")?.[0] ?? 0n;
  return Math.max(0, Number(expired - (sum.get("failed:hold_lost")?.[0] ?? 0n)));
}

function failuresOf(sum: Sum): ReasonCount[] {
  const lost = lostCalls(sum);
  const failures = countedOf(sum, "failed:");
  return lost === 0 ? failures : byCount([...failures, { reason: "hold_expired", count: lost }]);
}

/** Returns the tokens in a model's values. */
function tokensIn(values: readonly bigint[]): TokenCounts {
  const counts: Partial<TokenCounts> = {};
  for (const { name, position } of tokenClasses) counts[name] = Number(values[position] ?? 0n);
  return tokenCounts(counts);
}

/** Adds up what a sum has of all models and kinds. */
export function totalsOf(sum: Sum): SummaryTotals {
  const answers = sumOf(sum, "model:");
  const upstreamCost = answers[upstreamCostPosition] ?? 0n;
  const kind = (name: string, place: number) => sum.get(name)?.[place] ?? 0n;
  const cost = (answers[costPosition] ?? 0n) + kind("expired", 1);
  const back = sumOf(sum, "back:");
  const givenBack = (back[1] ?? 0n) + kind("back", 1);
  return {
    ...withLost(countsIn(sumOf(sum, "key:"), canceledOfKeyPosition), lostCalls(sum)),
    ...tokensIn(answers),
    cost: toAmount(cost),
    revenue: toAmount(cost + kind("charge", 1) - givenBack),
    givenBack: toAmount(givenBack),
    upstreamCost: toAmount(upstreamCost),
    margin: toAmount((answers[costedPosition] ?? 0n) - upstreamCost - (back[2] ?? 0n)),
    shortfall: toAmount(
      (answers[shortfallPosition] ?? 0n) +
        ["expired", "refund", "charge", "deposit"].reduce((n, k) => n + kind(k, 2), 0n),
    ),
    ...movedIn(sum, kind("deposit", 1)),
    charges: toAmount(kind("charge", 1)),
    otherCharges: toAmount(kind(otherCharges, 1)),
    trials: toAmount(kind("trial", 1)),
  };
}

/** Returns what moved for reasons that kinds do not tell, apart from payments. */
function movedIn(
  sum: Sum,
  deposited: bigint,
): Pick<SummaryTotals, "deposits" | "takenBack" | "movements"> {
  const moved = (name: string) => sum.get(`${movedGroup}${name}`)?.[1] ?? 0n;
  const others = movementsApart.filter(({ direction }) => direction === "credit")
    .reduce((all, { name }) => all + moved(name), 0n);
  return {
    deposits: toAmount(deposited - others),
    takenBack: toAmount(
      moved("reversal_out") + moved("dispute") - moved("reversal_in") - moved("dispute_won"),
    ),
    movements: Object.fromEntries(movementsApart.map(({ name }) => [name, toAmount(moved(name))])),
  };
}

/** Adds up the fields of one group. */
function sumOf(sum: Sum, group: string): readonly bigint[] {
  let total: readonly bigint[] = [];
  for (const [field, values] of sum) {
    if (field.startsWith(group)) total = total.length > 0 ? added(total, values) : values;
  }
  return total;
}

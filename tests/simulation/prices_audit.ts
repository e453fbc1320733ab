import { fromBytes } from "../../src/base/json.ts";
import { fromDecimal, unit } from "../../src/base/money.ts";
import type { Hold } from "../../src/ledger/account.ts";
import type { Authorization } from "../../src/ledger/authorization.ts";
import type { Project } from "../../src/projects/schema.ts";
import type { Write } from "../../src/store/kv.ts";
import { modelName } from "../support/model_formats.ts";

/** Per million tokens, and per response with output; in 1e-9 units. */
interface Price {
  input: bigint;
  output: bigint;
  /** The price of output beside a longer prompt. */
  longOutput: bigint;
  /** Input tokens above which that applies. */
  longFrom: number;
  /** The flex tier's share of token prices, in parts of 1e9. */
  flex: bigint;
  request: bigint;
  search: bigint;
  /** 100 % and the markup, in 1e-9 of a percent. */
  percent: bigint;
  minimum: bigint;
  fee: bigint;
}

/** What a call used. */
interface Used {
  input: number;
  output: number;
  searches: number;
  tier: string;
}

const million = 1_000_000n;

/**
 * Tracks what projects charge, and keeps the price that applied to each hold: whatever changes
 * during a call, that is what it costs.
 */
export class PricesAudit {
  /** By project; two while a write lands that changes it and may also place holds. */
  readonly #inForce = new Map<string, Price[]>();
  readonly #promised = new Map<string, readonly Price[]>();
  /** In a wallet: the user of the hold. */
  readonly #connections = new Map<string, string>();
  readonly #dearest: Price = {
    input: 0n,
    output: 0n,
    longOutput: 0n,
    longFrom: Infinity,
    flex: unit,
    request: 0n,
    search: 0n,
    percent: 0n,
    minimum: 0n,
    fee: 0n,
  };

  /** Called with each write that has landed, before its holds. */
  landed({ sets }: Write): void {
    for (const [id, prices] of this.#inForce) this.#inForce.set(id, prices.slice(-1));
    for (const { key, value } of sets) {
      if (key[0] === "project") this.#change(fromBytes(value));
      if (key[0] !== "authorization") continue;
      const { connectionId } = fromBytes<Authorization>(value);
      this.#connections.set(connectionId, String(key[1]));
    }
  }

  /** Returns the project of a hold on an account of this owner's. */
  projectOf({ connectionId }: Hold, owner: string): string {
    return connectionId === null ? owner : this.#connections.get(connectionId) ?? "";
  }

  /** Called with each new hold. */
  promise(projectId: string, holdId: string): void {
    this.#promised.set(holdId, this.#inForce.get(projectId) ?? []);
  }

  /** Whether a call may cost this; the fee is for output, `mayCostFee` where that is unknown. */
  isDue(holdId: string, due: bigint, used: Used & { mayCostFee: boolean }): boolean {
    const prices = this.#promised.get(holdId) ?? [];
    return prices.some((price) => {
      if (due === costOf(price, used, true)) return used.output > 0 || used.mayCostFee;
      return due === costOf(price, used, false) && used.output === 0;
    });
  }

  /** Returns the most that such a call ever cost in any project. */
  mostFor(used: Used): bigint {
    return costOf(this.#dearest, used, true);
  }

  #change({ id, pricing }: Project): void {
    const model = pricing.models[modelName];
    if (!model) return;
    const price: Price = {
      input: fromDecimal(model.input),
      output: fromDecimal(model.output),
      longOutput: fromDecimal(model.tiers?.[0]?.output ?? model.output),
      longFrom: model.tiers?.[0]?.above ?? Infinity,
      flex: fromDecimal(model.serviceTiers?.flex?.factor ?? "1"),
      request: fromDecimal(model.request ?? "0"),
      search: fromDecimal(model.toolCalls?.web_search ?? "0"),
      percent: 100n * unit + fromDecimal(model.markupPercent ?? "0"),
      minimum: fromDecimal(model.minimum ?? "0"),
      fee: fromDecimal(pricing.requestFee),
    };
    this.#inForce.set(id, [...this.#inForce.get(id) ?? [], price]);
    const output = price.longOutput > price.output ? price.longOutput : price.output;
    const most = { ...price, output };
    for (const part of highestParts) {
      if (most[part] > this.#dearest[part]) this.#dearest[part] = most[part];
    }
  }
}

const highestParts = ["input", "output", "request", "search", "percent", "minimum", "fee"] as const;

/** Multiplied first, divided once, rounded up once. */
function costOf(price: Price, { input, output, searches, tier }: Used, produced: boolean): bigint {
  const outputRate = input > price.longFrom ? price.longOutput : price.output;
  const tokens = (BigInt(input) * price.input + BigInt(output) * outputRate) *
    (tier === "flex" ? price.flex : unit);
  const calls = (produced ? price.request : 0n) + BigInt(searches) * price.search;
  const divisor = million * unit * 100n * unit;
  const sum = (tokens + calls * million * unit) * price.percent;
  const cost = (sum + divisor - 1n) / divisor;
  if (!produced) return cost;
  return cost + price.fee < price.minimum ? price.minimum : cost + price.fee;
}

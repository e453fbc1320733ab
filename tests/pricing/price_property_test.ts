import assert from "node:assert/strict";
import fc from "fast-check";
import { type Amount, formatAmount, toAmount } from "../../src/base/money.ts";
import {
  inputTokensOf,
  outputTokensOf,
  storeTokens,
  type TokenClass,
  tokenClassRows,
  tokenCounts,
} from "../../src/base/token_classes.ts";
import { createCatalogue } from "../../src/pricing/catalogue.ts";
import {
  affordableInput,
  affordableOutput,
  costBound,
  costOfUse,
  type PricedCall,
  type Used,
} from "../../src/pricing/price.ts";
import { recordPrice } from "../../src/pricing/price_record.ts";
import { usedUnits } from "../../src/pricing/units.ts";
import { createPrices, type ModelTerms } from "../../src/pricing/terms.ts";
import { createProjectSchema, type Project } from "../../src/projects/schema.ts";
import type { ModelPrice } from "../../src/projects/price_schema.ts";
import { recomputeCost } from "../../src/verify/recompute_cost.ts";
import { anyModelPrice } from "../support/price_lists.ts";
import { always } from "../support/property.ts";

const prices = createPrices(createCatalogue(), null);
const at = fc.integer({ min: Date.UTC(2026, 0, 1), max: Date.UTC(2027, 0, 1) });
const fees = fc.record({
  requestFee: fc.constantFrom("0", "0.001", "0.000000001"),
  markupPercent: fc.constantFrom("0", "20", "12.345"),
});

function termsOf(price: ModelPrice, fees: object, at: number): ModelTerms {
  const pricing = { ...fees, models: { m: price } };
  const project = createProjectSchema.parse({ name: "Test", pricing });
  return prices.terms(project as unknown as Project, "m", at) ?? assert.fail();
}

const tokens = fc.oneof(fc.nat(1_000), fc.nat(500_000));
const counts = fc.record(
  Object.fromEntries(tokenClassRows.map(({ name }) => [name, tokens])) as Record<
    TokenClass,
    fc.Arbitrary<number>
  >,
  { requiredKeys: ["output"] },
).map((some) => {
  const whole = tokenCounts(some);
  return { ...whole, reasoning: Math.min(whole.reasoning, whole.output) };
});
const used: fc.Arbitrary<Used> = fc.record({
  counts,
  toolCalls: fc.dictionary(fc.constantFrom("web_search", "source", "unpriced"), fc.nat(20)),
  searchContext: fc.constantFrom("low", "medium", "high", null),
  producedOutput: fc.constant(true),
  serviceTier: fc.constantFrom(null, "flex", "priority", "default"),
  statedCost: fc.constant(null),
});

Deno.test("prices: any response by any price list costs what an independent path computes", () =>
  always(
    3_000,
    fc.property(
      anyModelPrice,
      fees,
      used,
      at,
      fc.option(fc.bigInt({ min: 1n, max: 10n ** 15n }), { nil: null }),
      fc.boolean(),
      (price, fees, use, at, statedCost, producedOutput) => {
        const terms = termsOf(price, fees, at);
        const whole = { ...use, statedCost, producedOutput };
        const cost = costOfUse(terms.price, whole);
        const possible = recomputeCost({
          model: "m",
          requestId: "req",
          source: "provider",
          ...storeTokens(use.counts),
          toolCalls: use.toolCalls,
          price: recordPrice(terms.price, whole),
        });
        const shown = possible.map(formatAmount).join(" or ");
        if (!producedOutput && outputTokensOf(use.counts) > 0) return;
        assert.ok(possible.includes(cost), `${formatAmount(cost)}, but ${shown}`);
      },
    ),
  ));

/** A call that can cause every class and tier. */
function callOf(terms: ModelTerms, toolCalls: number): PricedCall {
  return {
    price: { ...terms.price, statedPercent: null },
    serviceTiers: [...terms.price.table.serviceTiers.keys()],
    causes: ["media", "hourCache", "tools", "audioOutput", "imageOutput"],
    toolCalls,
    searchContext: null,
  };
}

Deno.test("prices: what is held for a call covers whatever it becomes", () =>
  always(
    2_000,
    fc.property(anyModelPrice, fees, used, at, (price, fees, use, at) => {
      const call = callOf(
        termsOf(price, fees, at),
        Object.values(use.toolCalls).reduce((sum, n) => sum + n, 0),
      );
      const [input, output] = [inputTokensOf(use.counts), outputTokensOf(use.counts)];
      assert.ok(costBound(call, { input, output }) >= costOfUse(call.price, use));
    }),
  ));

const images = fc.record({
  count: fc.nat(10),
  size: fc.constantFrom(null, "512x512", "1024x1024", "1x1"),
  quality: fc.constantFrom(null, "hd", "low", "other"),
});
const seconds = fc.double({ min: 0.001, max: 100_000, noNaN: true });
const asked = fc.record({ images, characters: fc.nat(100_000), audioSeconds: seconds }, {
  requiredKeys: [],
});

Deno.test("prices: units cost what an independent path computes, and no more than was held", () =>
  always(
    2_000,
    fc.property(
      ...[anyModelPrice, fees, used, at, asked, fc.option(images, { nil: undefined })] as const,
      (price, fees, use, at, asked, made) => {
        const terms = termsOf(price, fees, at);
        const { units: unitPrices } = terms.price.table.standard.base;
        const reported = made ? { images: made } : {};
        const units = usedUnits(asked, reported, unitPrices);
        const whole = { ...use, units };
        const cost = costOfUse({ ...terms.price, statedPercent: null }, whole);
        const possible = recomputeCost({
          model: "m",
          requestId: "req",
          source: "provider",
          ...storeTokens(use.counts),
          ...units,
          toolCalls: use.toolCalls,
          price: recordPrice(terms.price, whole),
        });
        assert.ok(possible.includes(cost), `${formatAmount(cost)}, but ${possible}`);
        const toolCalls = Object.values(use.toolCalls).reduce((sum, n) => sum + n, 0);
        const call = { ...callOf(terms, toolCalls), units: asked };
        const [input, output] = [inputTokensOf(use.counts), outputTokensOf(use.counts)];
        assert.ok(costBound(call, { input, output }) >= cost);
      },
    ),
  ));

const spendable = fc.bigInt({ min: 0n, max: 10n ** 12n }).map(toAmount);
const choices = fc.integer({ min: 1, max: 8 });

Deno.test("prices: the most output that can be paid is paid, and one token more is not", () =>
  always(
    2_000,
    fc.property(anyModelPrice, fees, at, tokens, spendable, choices, (price, fees, at, ...rest) => {
      const call = callOf(termsOf(price, fees, at), 2);
      const [input, spendable, choices] = rest;
      const most = affordableOutput(call, { spendable, input, choices });
      if (!Number.isSafeInteger(most)) return;
      const holdFor = (output: number): Amount =>
        costBound(call, { input, output: output * choices });
      if (most >= 0) assert.ok(holdFor(most) <= spendable);
      assert.ok(holdFor(Math.max(0, most + 1)) > spendable);
    }),
  ));

Deno.test("prices: the most input beside an output leaves money for it, and one token more does not", () =>
  always(
    2_000,
    fc.property(anyModelPrice, fees, at, spendable, choices, (price, fees, at, ...rest) => {
      const call = callOf(termsOf(price, fees, at), 0);
      const [spendable, choices] = rest;
      const output = 100;
      const most = affordableInput(call, { spendable, output, choices });
      if (!Number.isSafeInteger(most)) return;
      const left = (input: number) => affordableOutput(call, { spendable, input, choices });
      if (most >= 0) assert.ok(left(most) >= output);
      assert.ok(left(most + 1) < output);
    }),
  ));

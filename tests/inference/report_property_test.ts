import assert from "node:assert/strict";
import fc from "fast-check";
import { parseAmount } from "../../src/base/money.ts";
import { inputTokensOf, outputTokensOf, tokenClasses } from "../../src/base/token_classes.ts";
import { UsageMeter } from "../../src/inference/meter/usage_meter.ts";
import { statedForCost } from "../../src/pricing/price.ts";
import { costOfUse, type Price, tokenRate, useOfTokens } from "../../src/pricing/price.ts";
import { compilePrices } from "../../src/pricing/price_level.ts";
import { boundsOf, usageBounds } from "../../src/pricing/usage_bounds.ts";
import { readUsage } from "../../src/pricing/usage.ts";
import { usedUnits } from "../../src/pricing/units.ts";
import type { ListPrice } from "../../src/projects/price_schema.ts";
import { createHandClock } from "../support/clock.ts";
import { always } from "../support/property.ts";
import { dialects, type Part, partNames, type Parts, parts } from "../support/usage_dialects.ts";

const clock = createHandClock();
const perMillion = fc.nat(200_000).map((value) => (value / 1_000).toFixed(3));

/** A price of any kind: each class may be dearer or cheaper than any other. */
const prices: fc.Arbitrary<Price> = fc.record({
  fields: fc.record(
    Object.fromEntries(tokenClasses.map(({ price }) => [price, perMillion])),
    { requiredKeys: ["input", "output"] },
  ),
  tier: fc.option(fc.record({ above: fc.nat(400_000), factor: fc.integer({ min: 1, max: 3 }) })),
  requestFee: fc.nat(1_000),
}).map(({ fields, tier, requestFee }) => {
  const dearer = (factor: number) =>
    Object.fromEntries(
      Object.entries(fields).map(([name, price]) => [name, (Number(price) * factor).toFixed(3)]),
    );
  // A longer prompt is never cheaper.
  const tiers = tier ? [{ above: tier.above, ...dearer(tier.factor) }] : [];
  return {
    table: compilePrices({ ...fields, tiers } as unknown as ListPrice).always,
    requestFee: parseAmount((requestFee / 1_000).toFixed(3)) ?? 0n,
    minimum: 0n,
    percent: 100_000_000_000n,
    statedPercent: null,
  } as Price;
});

const calls = fc.record({
  prompt: fc.nat(300_000),
  output: fc.nat(100_000),
  contextWindow: fc.constantFrom(0, 0, 128_000, 1_048_576),
  readsMoreByTools: fc.boolean(),
  file: fc.option(fc.record({ input: fc.nat(500_000), output: fc.nat(500_000) }), {
    nil: undefined,
  }),
}).map(({ file, ...call }) => ({ ...call, ...(file ? { file } : {}) }));

interface Case {
  price: Price;
  call: Parameters<typeof usageBounds>[0];
  reports: readonly unknown[];
  text?: string;
  /** Text after the last report. */
  after?: string;
}

/** What a response with these reports is charged. */
async function charge({ price, call, reports, text = "", after = "" }: Case) {
  const meter = new UsageMeter({
    choices: 1,
    bounds: usageBounds(call),
    heldOutput: call.output,
    rateOf: (name, counts) => tokenRate(price, name, counts),
    countInput: () => Promise.resolve(7),
    clock,
  });
  meter.addText(text);
  for (const report of reports) meter.addUsage(JSON.parse(JSON.stringify(report)));
  meter.addText(after);
  const usage = await meter.usage();
  return { usage, cost: costOfUse(price, { ...useOfTokens(usage), producedOutput: true }) };
}

/** Each part larger by this much. */
const increase = fc.oneof(
  fc.nat(3),
  fc.nat(100_000),
  fc.nat(3_000_000),
  fc.constantFrom(1e9, 1e10),
);
const increases = fc.record(
  Object.fromEntries(Object.keys(partNames).map((name) => [name, increase])) as Record<
    Part,
    fc.Arbitrary<number>
  >,
);

for (const [name, { has, write }] of Object.entries(dialects)) {
  const only = (all: Parts) => {
    const said = { ...all };
    for (const part of Object.keys(partNames) as Part[]) if (!has.includes(part)) said[part] = 0;
    return said;
  };
  Deno.test(`reports: the charge never falls when any part of one rises: ${name}`, () =>
    always(
      400,
      fc.asyncProperty(
        prices,
        calls,
        parts,
        increases,
        fc.subarray(has, { minLength: 1 }),
        fc.boolean(),
        async (price, call, all, more, rising, isStream) => {
          const low = only(all);
          const high = { ...low };
          for (const part of rising) high[part] += more[part];
          // A stream tells of its beginning first, and counts what was written so far.
          const first = { ...low, text: 1, thought: 0, speech: 0, picture: 0 };
          const told = (said: Parts) => isStream ? [write(first), write(said)] : [write(said)];
          const text = isStream ? "Hello there" : "";
          const less = await charge({ price, call, reports: told(low), text });
          const most = await charge({ price, call, reports: told(high), text });
          assert.ok(most.cost >= less.cost, `${most.cost} < ${less.cost}`);
        },
      ),
    ));
}

Deno.test("reports: of any report, as much is charged as was reported, or the bound", () =>
  always(
    1_000,
    fc.asyncProperty(prices, calls, parts, increases, async (price, call, all, more) => {
      for (const { has, write } of Object.values(dialects)) {
        const said = { ...all };
        for (const part of Object.keys(partNames) as Part[]) {
          said[part] = has.includes(part) ? said[part] + more[part] : 0;
        }
        const report = readUsage(write(said));
        assert.ok(report);
        const most = boundsOf(report, usageBounds(call));
        const { usage } = await charge({ price, call, reports: [write(said)] });
        const [input, output] = [inputTokensOf(report.counts), outputTokensOf(report.counts)];
        assert.equal(inputTokensOf(usage), Math.min(input, most.input));
        assert.equal(outputTokensOf(usage), Math.min(output, most.output));
        const isWithin = input <= most.input && output <= most.output;
        assert.equal(usage.source, isWithin ? "provider" : "estimated");
        if (isWithin) assert.deepEqual({ ...usage, source: 0 }, { ...report.counts, source: 0 });
        assert.ok(usage.reasoning <= usage.output);
        for (const { name } of tokenClasses) {
          assert.ok(usage[name] >= 0 && usage[name] <= report.counts[name], name);
        }
      }
    }),
  ));

Deno.test("reports: a number of any size counts, and the charge never falls as it grows", () =>
  always(
    500,
    fc.asyncProperty(
      prices,
      calls,
      fc.array(fc.oneof(fc.nat(), fc.maxSafeNat(), fc.double({ min: 1, noNaN: true })), {
        minLength: 2,
        maxLength: 6,
      }),
      fc.constantFrom("prompt_tokens", "completion_tokens"),
      async (price, call, numbers, field) => {
        let before = 0n;
        for (const count of numbers.map((one) => Math.max(1, one)).sort((a, b) => a - b)) {
          const report = { prompt_tokens: 5, completion_tokens: 5, [field]: count };
          const { cost } = await charge({ price, call, reports: [report] });
          assert.ok(cost >= before, `${cost} < ${before} at ${count}`);
          before = cost;
        }
      },
    ),
  ));

Deno.test("reports: with text after one, the larger of both is charged", async () => {
  const price = {
    table: compilePrices({ input: "1", output: "2", audioOutput: "20" } as ListPrice).always,
    requestFee: 0n,
    minimum: 0n,
    percent: 100_000_000_000n,
    statedPercent: null,
  } as Price;
  const call = { prompt: 100, output: 1_000 };
  for (const speech of [0, 5]) {
    let before = 0n;
    for (let count = 5; count < 60; count++) {
      const details = { completion_tokens_details: { audio_tokens: speech } };
      const report = { prompt_tokens: 5, completion_tokens: count, ...details };
      const after = " word".repeat(30);
      const { cost, usage } = await charge({ price, call, reports: [report], after });
      assert.equal(outputTokensOf(usage), Math.max(count, 30));
      assert.equal(usage.audioOutput, speech, "what was reported is not thrown away");
      assert.ok(cost >= before, `${cost} < ${before} at ${count}`);
      before = cost;
    }
  }
});

Deno.test("reports: a provider's seconds are charged up to what is possible, and never fall", () =>
  always(
    500,
    fc.property(
      fc.double({ min: 0.1, max: 1e5, noNaN: true }),
      fc.double({ min: 0, max: 1e5, noNaN: true }),
      fc.array(fc.double({ min: 0.001, max: 1e9, noNaN: true }), { minLength: 2, maxLength: 6 }),
      (audioSeconds, more, said) => {
        const asked = { audioSeconds, audioSecondsMost: audioSeconds + more };
        let before = 0;
        for (const seconds of said.sort((a, b) => a - b)) {
          const used = usedUnits(asked, { audioSeconds: seconds }, null).audioSeconds ?? 0;
          assert.equal(used, Math.ceil(Math.min(seconds, asked.audioSecondsMost)));
          assert.ok(used >= before);
          before = used;
        }
      },
    ),
  ));

Deno.test("reports: the stated cost that makes a charge is not above it", () =>
  always(
    500,
    fc.property(fc.bigInt(1n, 10n ** 18n), fc.bigInt(0n, 10n ** 12n), (cost, markup) => {
      const statedPercent = 100_000_000_000n + markup;
      const stated = statedForCost(statedPercent, cost as Price["requestFee"]);
      assert.ok(stated * statedPercent <= cost * 1_000n * 100_000_000_000n);
    }),
  ));

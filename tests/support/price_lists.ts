import fc from "fast-check";
import { formatAmount, unit } from "../../src/base/money.ts";
import { tokenClassRows } from "../../src/base/token_classes.ts";
import { type ModelPrice, modelPriceSchema } from "../../src/projects/price_schema.ts";

/** Up to 1,000 currency units, with nine decimals, often none. */
const decimal = (most: bigint) =>
  fc.oneof(
    fc.bigInt({ min: 0n, max: most }),
    fc.bigInt({ min: 0n, max: most / unit }).map((n) => n * unit),
  ).map(formatAmount);
const perMillion = decimal(1_000n * unit);
const small = decimal(unit);
const factor = fc.integer({ min: 1, max: 50_000 }).map((n) => formatAmount(BigInt(n) * 100_000n));

const optionalPrices = Object.fromEntries(tokenClassRows.map(({ price }) => [price, perMillion]));
const toolCalls = fc.dictionary(fc.constantFrom("web_search", "file_search", "source"), small, {
  maxKeys: 3,
});
const replacement = {
  ...optionalPrices,
  request: small,
  toolCalls,
};
const partly = (fields: Record<string, fc.Arbitrary<unknown>>) =>
  fc.record(fields, { requiredKeys: [] });

const tiers = fc.uniqueArray(
  fc.record({ above: fc.integer({ min: 1, max: 400_000 }), ...replacement }, {
    requiredKeys: ["above"],
  }),
  { maxLength: 3, selector: ({ above }) => above },
).map((list) => list.sort((one, other) => one.above - other.above));

const time = fc.integer({ min: 0, max: 24 * 60 - 1 }).map((minutes) =>
  `${String(Math.floor(minutes / 60)).padStart(2, "0")}:${String(minutes % 60).padStart(2, "0")}`
);
const days = fc.subarray(["mon", "tue", "wed", "thu", "fri", "sat", "sun"], { minLength: 1 });
const timeWindow = fc.record({
  from: time,
  to: time,
  days,
  timeZone: fc.constantFrom("UTC", "Asia/Shanghai", "America/New_York"),
  factor,
  tiers,
  ...replacement,
}, { requiredKeys: ["from", "to"] }).filter(({ from, to }) => from !== to);

const imageNames = ["*", "hd", "low", "512x512", "1024x1024", "hd 512x512", "low 1024x1024"];

/** Any price of a model that the schema accepts. */
export const anyModelPrice: fc.Arbitrary<ModelPrice> = fc.tuple(
  fc.record({ input: perMillion, output: perMillion }),
  partly({
    ...optionalPrices,
    request: small,
    requestBySearchContext: fc.record({ low: small, medium: small, high: small }),
    toolCalls,
    images: fc.dictionary(fc.constantFrom(...imageNames), small),
    characters: perMillion,
    audioMinutes: small,
    tiers,
    serviceTiers: fc.dictionary(
      fc.constantFrom("flex", "priority", "fast"),
      partly({ factor, tiers, ...replacement }),
      { maxKeys: 3 },
    ),
    timeWindows: fc.array(timeWindow, { maxLength: 3 }),
    minimum: small,
    markupPercent: decimal(300n * unit),
    priceFrom: fc.constantFrom("list", "provider"),
  }),
).map(([required, more]) => modelPriceSchema.parse({ ...more, ...required }));

import assert from "node:assert/strict";
import fc from "fast-check";
import { toAmount, unit } from "../../src/base/money.ts";
import { acceptsAmount, fromStripeUnits, toStripeUnits } from "../../src/payments/stripe.ts";
import type { Project } from "../../src/projects/schema.ts";
import { always, headerValue, jsonText } from "../support/property.ts";
import { createWorld } from "../support/world.ts";

// Stripe's minor units of each currency and its minimum charge, with the special cases of
// https://docs.stripe.com/currencies.
const zeroDecimal = "bif clp djf gnf jpy kmf krw mga pyg rwf vnd vuv xaf xof xpf".split(" ");
const threeDecimal = "bhd jod kwd omr tnd".split(" ");
const special = ["isk", "ugx"];

const currencies = Intl.supportedValuesOf("currency").map((code) => code.toLowerCase());
const currency = fc.oneof(
  fc.constantFrom(...currencies),
  fc.constantFrom(...zeroDecimal, ...threeDecimal, ...special),
);

function stripeOf(currency: string): { perOne: bigint; step: bigint } {
  if (zeroDecimal.includes(currency)) return { perOne: 1n, step: 1n };
  if (threeDecimal.includes(currency)) return { perOne: 1000n, step: 10n };
  return { perOne: 100n, step: special.includes(currency) ? 100n : 1n };
}

const amount = fc.oneof(
  fc.bigInt({ min: 0n, max: 10n ** 21n - 1n }),
  fc.tuple(fc.bigInt({ min: 0n, max: 10n ** 9n }), fc.integer({ min: 5, max: 9 }))
    .map(([value, zeros]) => value * 10n ** BigInt(zeros)),
).map(toAmount);

Deno.test("stripe: an amount is sent to Stripe exactly, or not at all if it is too fine", () =>
  always(
    2_000,
    fc.property(amount, currency, (amount, currency) => {
      const { perOne, step } = stripeOf(currency);
      const units = toStripeUnits(amount, currency);
      const isPayable = (amount * perOne) % (unit * step) === 0n;
      assert.equal(units !== null, isPayable);
      if (units === null) return;
      assert.ok(Number.isSafeInteger(units) && units >= 0);
      assert.equal(BigInt(units) * unit, amount * perOne);
      assert.equal(fromStripeUnits(units, currency), amount, "and comes back as itself");
    }),
  ));

Deno.test("stripe: any number of Stripe's units is an exact amount", () =>
  always(
    1_000,
    fc.property(fc.nat(Number.MAX_SAFE_INTEGER), currency, (units, currency) => {
      const { perOne } = stripeOf(currency);
      assert.equal(fromStripeUnits(units, currency) * perOne, BigInt(units) * unit);
    }),
  ));

Deno.test("stripe: two payments are worth their sum", () =>
  always(
    500,
    fc.property(fc.nat(), fc.nat(), currency, (one, other, currency) => {
      const apart = fromStripeUnits(one, currency) + fromStripeUnits(other, currency);
      assert.equal(apart, fromStripeUnits(one + other, currency));
    }),
  ));

Deno.test("stripe: a project accepts the amounts it offers, and those from its minimum to its maximum", () =>
  always(
    500,
    fc.property(fc.nat(100), fc.nat(100), fc.nat(100), fc.nat(100), (min, max, offered, asked) => {
      const project = {
        topUp: { amounts: [`${offered}`], min: `${min}`, max: `${max}` },
      } as Project;
      const expected = asked > 0 && ((asked >= min && asked <= max) || asked === offered);
      assert.equal(acceptsAmount(project, toAmount(BigInt(asked) * unit)), expected);
    }),
  ));

Deno.test("stripe: anything posted without Stripe's signature is a 400, and records nothing", async () => {
  const stripe = { secretKey: "sk_test_of_the_owner", webhookSecret: "whsec_of_the_owner" };
  using world = await createWorld({ project: { stripe } });
  const signature = fc.oneof(
    headerValue,
    fc.tuple(fc.nat(), fc.stringMatching(/^[0-9a-f]{64}$/)).map(([t, v1]) => `t=${t},v1=${v1}`),
    fc.constantFrom("", "t=", "v1=", "t=,v1=", "t=x,v1=y", ",", "=", "t=1767225600,v1="),
  );
  await always(
    120,
    fc.asyncProperty(jsonText, signature, async (raw, signature) => {
      const { status, body } = await world.json(`/v1/stripe/${world.projectId}`, {
        raw,
        key: null,
        headers: {
          "stripe-signature": signature,
          "content-length": `${new TextEncoder().encode(raw).length}`,
        },
      });
      assert.equal(status, 400, JSON.stringify(body));
      assert.equal(body.error.code, "invalid_signature");
    }),
  );
  assert.equal((await world.balance("ada")).balance, "0");
});

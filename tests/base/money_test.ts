import assert from "node:assert/strict";
import {
  type Amount,
  divideRoundingUp,
  formatAmount,
  formatForPeople,
  fromDecimal,
  least,
  parseAmount,
  toAmount,
  typedDecimal,
} from "../../src/base/money.ts";
import { mulberry32 } from "../support/random.ts";
import { createWorld } from "../support/world.ts";
import { storeAsText } from "../support/books.ts";

const units = (value: bigint) => toAmount(value);

const amounts: [text: string, units: bigint, formatted: string][] = [
  ["0", 0n, "0"],
  ["0.0", 0n, "0"],
  ["000000000001", 1_000_000_000n, "1"],
  ["1", 1_000_000_000n, "1"],
  ["1.50", 1_500_000_000n, "1.5"],
  ["0.000000001", 1n, "0.000000001"],
  ["0.1", 100_000_000n, "0.1"],
  ["0.3", 300_000_000n, "0.3"],
  ["12.345", 12_345_000_000n, "12.345"],
  ["999999999999.999999999", 999_999_999_999_999_999_999n, "999999999999.999999999"],
  // One more than a double can represent.
  ["9007199.254740993", 9_007_199_254_740_993n, "9007199.254740993"],
];

Deno.test("money: a decimal string is parsed exactly, and written without trailing zeros", () => {
  for (const [text, expected, formatted] of amounts) {
    assert.equal(parseAmount(text), expected, text);
    assert.equal(formatAmount(expected), formatted, text);
  }
});

const hostileTexts = [
  "",
  " ",
  "1 ",
  " 1",
  "1\n",
  "\t1",
  "+1",
  "-1",
  "-0",
  "--1",
  "1.",
  ".5",
  ".",
  "1..2",
  "1.2.3",
  "1,5",
  "1 000",
  "1_000",
  "1e3",
  "1E3",
  "1e-3",
  "0x10",
  "0b1",
  "1n",
  "$1",
  "1 usd",
  "NaN",
  "Infinity",
  "null",
  "1234567890123",
  "0000000000001",
  "1.0000000000",
  "0.0000000001",
  "١",
  "１",
  "²",
  "1\u0000",
  "1\u00a0",
  "9".repeat(100_000),
];

const hostileValues: unknown[] = [
  ...hostileTexts,
  null,
  5,
  0.1,
  -1,
  10n,
  true,
  [],
  ["5"],
  {},
  { amount: "5" },
  undefined,
];

Deno.test("money: anything but a plain decimal string is not an amount", () => {
  for (const value of hostileValues) {
    assert.equal(parseAmount(value), null, JSON.stringify(String(value).slice(0, 40)));
  }
});

Deno.test("money: no endpoint accepts a hostile amount or zero, and nothing changes", async () => {
  using world = await createWorld();
  await world.deposit("ada", "5");
  const before = await storeAsText(world);
  const rawNumbers = ["5", "0.1", "1e400", "12345678901234567890", "-1", "true", "null", '["5"]'];
  const literals = [...hostileTexts, "0", "0.0", "0.000000000"]
    .map((text) => JSON.stringify(text))
    .concat(rawNumbers);
  for (const path of ["/v1/user/balance/deposit", "/v1/user/charge"]) {
    for (const literal of literals) {
      const { status, body } = await world.json(path, {
        raw: `{"user":"ada","amount":${literal}}`,
      });
      const label = `${path} ${literal.slice(0, 40)}`;
      assert.equal(status, 400, label);
      assert.equal(body.error.type, "invalid_request_error", label);
      assert.equal(body.error.param, "amount", label);
      assert.match(body.error.message, /amount/, label);
    }
    const { status, body } = await world.json(path, { body: { user: "ada" } });
    assert.equal(status, 400);
    assert.equal(body.error.param, "amount");
  }
  assert.equal(await storeAsText(world), before);
});

Deno.test("money: what is written is parsed back as the same amount", () => {
  const random = mulberry32(42);
  for (let round = 0; round < 2000; round++) {
    const digits = 1 + Math.floor(random() * 20);
    const text = Array.from({ length: digits }, () => Math.floor(random() * 10)).join("");
    const amount = units(BigInt(text));
    assert.equal(parseAmount(formatAmount(amount)), amount);
    assert.equal(fromDecimal(formatAmount(amount)), amount);
    assert.equal(fromDecimal(formatAmount(-amount)), -amount);
  }
});

Deno.test("money: a sign is written and parsed back, and zero has none", () => {
  const signed: [bigint, string][] = [
    [-1n, "-0.000000001"],
    [-500_000_000n, "-0.5"],
    [-1_500_000_000n, "-1.5"],
    [0n, "0"],
    [10n ** 30n, "1000000000000000000000"],
  ];
  for (const [amount, text] of signed) {
    assert.equal(formatAmount(amount), text);
    assert.equal(fromDecimal(text), amount);
  }
});

Deno.test("money: the only division rounds up, and only fractions", () => {
  const divisions: [dividend: bigint, divisor: bigint, quotient: bigint][] = [
    [0n, 1_000_000n, 0n],
    [1n, 1_000_000n, 1n],
    [999_999n, 1_000_000n, 1n],
    [1_000_000n, 1_000_000n, 1n],
    [1_000_001n, 1_000_000n, 2n],
    [10n ** 30n + 1n, 10n ** 15n, 10n ** 15n + 1n],
    [7n, 1n, 7n],
  ];
  for (const [dividend, divisor, quotient] of divisions) {
    assert.equal(divideRoundingUp(dividend, divisor), quotient, `${dividend} / ${divisor}`);
  }
});

Deno.test("money: a response's charge is rounded up once, over all its tokens", async () => {
  using world = await createWorld({
    // 10 tokens in and 5 out: 10 * 0.033 and 5 * 0.101 of a billionth of a unit, together 0.835.
    project: {
      pricing: {
        models: {
          "test-model": { input: "0.000033", output: "0.000101", maxOutputTokens: 100 },
        },
      },
    },
  });
  await world.deposit("ada", "1");
  const { body } = await world.json("/v1/chat/completions", {
    body: { model: "test-model", user: "ada", messages: [{ role: "user", content: "Hi" }] },
  });
  assert.equal(body.usage.cost_exact, "0.000000001");
  assert.equal((await world.balance("ada")).balance, "0.999999999");
});

Deno.test("money: people see their currency's number of digits, cut and never rounded up", () => {
  const shown: [amount: string, currency: string, text: string][] = [
    ["12.345", "usd", "$12.34"],
    ["12.349999999", "usd", "$12.34"],
    ["0.009999999", "usd", "$0.00"],
    ["0", "usd", "$0.00"],
    ["1234567.891", "usd", "$1,234,567.89"],
    ["999999999999.999999999", "usd", "$999,999,999,999.99"],
    ["12.9", "jpy", "¥12"],
    ["1.2349", "kwd", "KWD\u00a01.234"],
    ["3.999", "eur", "€3.99"],
  ];
  for (const [amount, currency, text] of shown) {
    assert.equal(formatForPeople(fromDecimal(amount), currency), text);
  }
});

Deno.test("money: the smaller of two amounts is found, also when they are equal", () => {
  const one: Amount = units(1n);
  const two: Amount = units(2n);
  assert.equal(least(one, two), one);
  assert.equal(least(two, one), one);
  assert.equal(least(two, two), two);
});

const typedByPeople: [string, string][] = [
  ["2,5", "2.5"],
  [" 2.50 ", "2.50"],
  ["1,000", "1,000"],
  ["1,000.50", "1.000.50"],
  ["0,1234", "0.1234"],
];

for (const [text, expected] of typedByPeople) {
  Deno.test(`money: '${text}' as people type it is read as '${expected}'`, () => {
    assert.equal(typedDecimal(text), expected);
  });
}

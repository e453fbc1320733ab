import assert from "node:assert/strict";
import fc from "fast-check";
import {
  type Amount,
  divideRoundingUp,
  formatAmount,
  formatForPeople,
  fromDecimal,
  parseAmount,
  toAmount,
  unit,
} from "../../src/base/money.ts";
import { checkBooks } from "../support/books.ts";
import { always, anyText, jsonText } from "../support/property.ts";
import { createWorld } from "../support/world.ts";

const largest = 10n ** 21n - 1n;
/** Every amount that a caller can write. */
const amount = fc.bigInt({ min: 0n, max: largest }).map(toAmount);
/** Sums of amounts, and differences. */
const signed = fc.bigInt({ min: -(10n ** 40n), max: 10n ** 40n });

const digits = (min: number, max: number) =>
  fc.string({ unit: fc.constantFrom(..."0123456789"), minLength: min, maxLength: max });

Deno.test("money: any decimal of 12 and 9 digits is parsed to exactly its value", () =>
  always(
    2_000,
    fc.property(digits(1, 12), fc.option(digits(1, 9), { nil: null }), (whole, fraction) => {
      const text = fraction === null ? whole : `${whole}.${fraction}`;
      // Digit by digit, so that it shares no code with the code under test.
      let expected = 0n;
      for (const digit of whole + (fraction ?? "").padEnd(9, "0")) {
        expected = expected * 10n + BigInt("0123456789".indexOf(digit));
      }
      assert.equal(parseAmount(text), expected);
    }),
  ));

Deno.test("money: any amount is written in one way, and parsed back to itself", () =>
  always(
    2_000,
    fc.property(amount, (value) => {
      const text = formatAmount(value);
      assert.match(text, /^(0|[1-9]\d*)(\.\d{0,8}[1-9])?$/);
      assert.equal(parseAmount(text), value);
    }),
  ));

Deno.test("money: any sum, of any size and sign, is written exactly", () =>
  always(
    2_000,
    fc.property(signed, (value) => {
      const text = formatAmount(value);
      assert.match(text, /^-?(0|[1-9]\d*)(\.\d{0,8}[1-9])?$/);
      assert.equal(fromDecimal(text), value);
      assert.ok(value !== 0n || text === "0", "zero has no sign");
    }),
  ));

/** An amount with one character added, removed or replaced. */
const nearly = fc.tuple(amount, fc.nat(22), fc.nat(1), fc.constantFrom("", ..."0.-+eE, _n\n٣"))
  .map(([value, at, dropped, put]) => {
    const text = formatAmount(value);
    const where = at % (text.length + 1);
    return text.slice(0, where) + put + text.slice(where + dropped);
  });

Deno.test("money: a text is an amount only with 1 to 12 digits, and 1 to 9 after a point", () =>
  always(
    3_000,
    fc.property(
      fc.oneof(
        anyText,
        fc.string({ unit: fc.constantFrom(..."0123456789.-+eE, _n\n٣"), maxLength: 24 }),
        nearly,
        fc.double().map(String),
        signed.map(formatAmount),
      ),
      (text) => {
        const [whole = "", fraction, more] = text.split(".");
        const plain = (part: string, max: number) =>
          part.length >= 1 && part.length <= max &&
          [...part].every((digit) => "0123456789".includes(digit));
        const isAmount = plain(whole, 12) && (fraction === undefined || plain(fraction, 9)) &&
          more === undefined;
        assert.equal(parseAmount(text) !== null, isAmount);
      },
    ),
  ));

Deno.test("money: only a string is an amount", () =>
  always(
    1_000,
    fc.property(fc.oneof(fc.anything(), jsonText.map((text) => JSON.parse(text))), (value) => {
      fc.pre(typeof value !== "string");
      assert.equal(parseAmount(value), null);
    }),
  ));

Deno.test("money: the sum of texts is the text of the sum, in any order", () =>
  always(
    500,
    fc.property(fc.array(amount, { maxLength: 50 }), (amounts) => {
      const sumOf = (list: readonly Amount[]) =>
        list.reduce((sum, each) => sum + (parseAmount(formatAmount(each)) ?? -1n), 0n);
      const sum = amounts.reduce((total, each) => total + each, 0n);
      assert.equal(fromDecimal(formatAmount(sumOf(amounts))), sum);
      assert.equal(sumOf([...amounts].reverse()), sum);
    }),
  ));

Deno.test("money: the only division returns the least whole number that is enough", () =>
  always(
    1_000,
    fc.property(
      fc.bigInt({ min: 0n, max: 10n ** 40n }),
      fc.bigInt({ min: 1n, max: 10n ** 20n }),
      (dividend, divisor) => {
        const quotient = divideRoundingUp(dividend, divisor);
        assert.ok(quotient * divisor >= dividend);
        assert.ok((quotient - 1n) * divisor < dividend);
      },
    ),
  ));

const currencies = Intl.supportedValuesOf("currency").map((code) => code.toLowerCase());

Deno.test("money: people see the digits that their currency has, and never more money than they have", () =>
  always(
    1_000,
    fc.property(amount, fc.constantFrom(...currencies), (value, currency) => {
      const format = new Intl.NumberFormat("en-US", {
        style: "currency",
        currency: currency.toUpperCase(),
      });
      const { maximumFractionDigits: shown = 0 } = format.resolvedOptions();
      const step = unit / 10n ** BigInt(shown);
      const text = formatForPeople(value, currency).replace(/[^\d.]/g, "").replace(/^\.+/, "");
      assert.equal(fromDecimal(text), value - value % step);
    }),
  ));

Deno.test("money: deposits and charges of any amounts leave the exact difference", async () => {
  const user = "ada";
  const small = fc.bigInt({ min: 1n, max: 10n ** 12n });
  const moves = fc.array(fc.tuple(fc.boolean(), fc.oneof(small, amount)), { maxLength: 12 });
  await always(
    20,
    fc.asyncProperty(moves, async (moves) => {
      using world = await createWorld();
      let expected = 0n;
      for (const [isDeposit, value] of moves) {
        if (value === 0n) continue;
        const path = isDeposit ? "/v1/user/balance/deposit" : "/v1/user/charge";
        const body = { user, amount: formatAmount(value) };
        const answer = await world.json(path, { body });
        assert.equal(answer.body.success, isDeposit || value <= expected);
        if (answer.body.success) expected += isDeposit ? value : -value;
        assert.equal(answer.body.balance, formatAmount(expected));
      }
      assert.equal((await world.balance(user)).balance, formatAmount(expected));
      await checkBooks(world, user);
    }),
  );
});

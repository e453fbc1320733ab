import assert from "node:assert/strict";
import { fromDecimal } from "../../src/base/money.ts";
import { formatExact, formatShort } from "../../src/base/money_text.ts";

Deno.test("money: is shown short, as precisely as people need it", () => {
  const cases: [amount: string, currency: string, shown: string][] = [
    ["0", "usd", "$0.00"],
    ["12.345", "usd", "$12.34"],
    ["12.355", "usd", "$12.36"],
    ["0.4712", "usd", "$0.47"],
    ["0.05", "usd", "$0.05"],
    ["0.0125", "usd", "$0.0125"],
    ["0.0098", "usd", "$0.0098"],
    ["0.004", "usd", "$0.0040"],
    ["0.00125", "usd", "$0.0012"],
    ["0.00004", "usd", "<$0.0001"],
    ["-0.0042", "usd", "-$0.0042"],
    ["-3.068939", "usd", "-$3.07"],
    ["1234567.891", "eur", "€1,234,567.89"],
    ["500", "jpy", "¥500"],
    ["4.5", "jpy", "¥4.50"],
    ["0.001", "jpy", "<¥0.01"],
  ];
  for (const [amount, currency, shown] of cases) {
    const text = formatShort(fromDecimal(amount), currency, { rounding: "halfEven" });
    assert.equal(text, shown, amount);
  }
});

Deno.test("money: what someone has is cut, never rounded up", () => {
  const shown = (amount: string) => formatShort(fromDecimal(amount), "usd", { rounding: "trunc" });
  assert.equal(shown("4.999999"), "$4.99");
  assert.equal(shown("0.00999"), "$0.0099");
});

Deno.test("money: is exact where it is decided on", () => {
  assert.equal(formatExact(fromDecimal("12.345678"), "usd"), "$12.345678");
  assert.equal(formatExact(fromDecimal("5"), "usd"), "$5.00");
  assert.equal(formatExact(fromDecimal("0.000000001"), "eur"), "€0.000000001");
});

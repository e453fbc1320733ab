import assert from "node:assert/strict";
import { boundPassed, parseJson } from "../../src/base/json.ts";

/** The least time of several runs of each, in milliseconds. They run in turn. */
function leastMs(...works: (() => void)[]): number[] {
  const least = works.map(() => Infinity);
  for (let run = 0; run < 7; run++) {
    for (const [at, work] of works.entries()) {
      const startedAt = performance.now();
      work();
      least[at] = Math.min(least[at] ?? Infinity, performance.now() - startedAt);
    }
  }
  return least;
}

/** A text as a decoder makes it: one that was put together from parts is read more slowly. */
const decoded = (text: string) => new TextDecoder().decode(new TextEncoder().encode(text));
const list = (item: string) =>
  decoded(`{"model":"m","x":[${Array(199_000).fill(item).join(",")}]}`);
const bodies = {
  "integers of 17 digits": list("12345678901234567"),
  "fractions of 17 digits": list("0.12345678901234567"),
  "exponents": list("1e5"),
  "strings of digits": list('"12345678901234567890"'),
  "objects": list('{"a":0.12345678901234567}'),
};
for (const [what, text] of Object.entries(bodies)) {
  Deno.test(`json: 199,000 ${what} are checked and parsed in a few times what JSON.parse takes`, () => {
    const [plain = 0, own = Infinity] = leastMs(() => JSON.parse(text), () => {
      boundPassed(text, { depthMax: 500, valuesMax: 1_000_000 });
      parseJson(text);
    });
    // Three times in a quiet run; a reviver took 70 times.
    assert.ok(own < 15 * plain, `${own} ms, JSON.parse ${plain} ms`);
  });
}

import fc from "fast-check";
import { parse } from "csv-parse/sync";
import assert from "node:assert/strict";
import { csvLine, csvText } from "../../src/base/csv.ts";
import { assertGrowth } from "../support/growth.ts";
import { always } from "../support/property.ts";

const signs = ["=", "+", "-", "@", "＝", "＋", "－", "＠", "﹢", "﹣", "−"];
/** What a spreadsheet may trim in front of a formula. */
const skipped = [
  " ",
  "\t",
  "\r",
  "\n",
  "\v",
  "\u00a0",
  "\u3000",
  "\ufeff",
  "\u200b",
  "\u00ad",
  "\0",
];
const others = ["'", ",", ";", '"', "1", ".", "a", "é"];
const awkward = fc.string({
  unit: fc.constantFrom(...signs, ...skipped, ...others),
  maxLength: 8,
});
const runs = new RegExp(String.raw`^[\s\p{C}"]*[${signs.join("").replace("-", "\\-")}]`, "v");

Deno.test("csv: any text is read back as it was written, and none runs as a formula", async () => {
  await always(
    2_000,
    fc.property(fc.array(awkward, { minLength: 1, maxLength: 4 }), (texts) => {
      const [cells = []] = parse(csvLine(texts), { relax_quotes: false, skip_empty_lines: false });
      assert.deepEqual(cells.map(csvText), texts);
      for (const cell of cells) {
        assert.ok(!/^[=+@\t\r-]/.test(cell) || /^-?[\d.]+$/.test(cell), cell);
        assert.ok(!runs.test(cell) || /^-?[\d.]+$/.test(cell), cell);
      }
    }),
  );
});

for (const [name, separator] of [["semicolons", ";"], ["tabs", "\t"]] as const) {
  Deno.test(`csv: a spreadsheet that splits at ${name} runs nothing either`, async () => {
    await always(
      2_000,
      fc.property(fc.array(awkward, { minLength: 1, maxLength: 4 }), (texts) => {
        // With quotes respected or not, a cell starts at the start of a line or after a separator.
        for (const cell of csvLine(texts).split(new RegExp(`[${separator}\r\n]`))) {
          assert.ok(!runs.test(cell) || /^-?[\d.]+$/.test(cell), JSON.stringify([texts, cell]));
        }
      }),
    );
  });
}

Deno.test("csv: an amount stays a number, and a formula becomes a text", () => {
  assert.equal(csvLine(["ada", "-0.5", null]), "ada,-0.5,\r\n");
  assert.equal(csvLine(["ada;=1+1", "＝1", "\u00a0-a"]), "ada;'=1+1,'＝1,'\u00a0-a\r\n");
});

Deno.test("csv: a long text takes time in proportion to its length", async () => {
  for (const unit of [" ", "\n", ";", "'", "\t\n", "; "]) {
    await assertGrowth((times) => {
      const text = unit.repeat(times);
      return () => csvText(csvLine(["x", text]));
    }, { size: 50_000, what: JSON.stringify(unit) });
  }
});

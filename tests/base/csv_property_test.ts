import fc from "fast-check";
import { parse } from "csv-parse/sync";
import assert from "node:assert/strict";
import { csvLine, csvText } from "../../src/base/csv.ts";
import { always } from "../support/property.ts";

const awkward = fc.string({
  unit: fc.constantFrom("'", "=", "+", "-", "@", "\t", "\r", "\n", ",", '"', "1", ".", "a", "é"),
  maxLength: 8,
});

Deno.test("csv: any text is read back as it was written, and none runs as a formula", async () => {
  await always(
    2_000,
    fc.property(fc.array(awkward, { minLength: 1, maxLength: 4 }), (texts) => {
      const [cells = []] = parse(csvLine(texts), { relax_quotes: false, skip_empty_lines: false });
      assert.deepEqual(cells.map(csvText), texts);
      for (const cell of cells) {
        assert.ok(!/^[=+@\t\r-]/.test(cell) || /^-?[\d.]+$/.test(cell), cell);
      }
    }),
  );
});

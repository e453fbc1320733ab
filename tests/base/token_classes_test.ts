import assert from "node:assert/strict";
import { tokenClasses, type TokenClassRow } from "../../src/base/token_classes.ts";

Deno.test("token classes: names, fields, labels and positions are unique, and none is reserved", () => {
  const rows: readonly TokenClassRow[] = tokenClasses;
  for (const column of ["name", "field", "metric", "label", "position"] as const) {
    assert.equal(new Set(rows.map((row) => row[column])).size, rows.length, column);
  }
  for (const { position } of rows) {
    assert.ok(![0, 6, 7, 16, 17].includes(position), String(position));
  }
});

Deno.test("token classes: fallback prices and enclosing classes are in the table", () => {
  const rows: readonly TokenClassRow[] = tokenClasses;
  const prices = new Set(rows.map(({ price }) => price));
  const names = new Set(rows.map(({ name }) => name));
  for (const { priceElse, within, price } of rows) {
    if (priceElse) assert.ok(prices.has(priceElse) && price, priceElse);
    if (within) assert.ok(names.has(within) && price, within);
  }
});

Deno.test("token classes: stored positions never change", () => {
  const stored = Object.fromEntries(tokenClasses.map(({ name, position }) => [name, position]));
  const first = { uncachedInput: 1, cachedInput: 2, cacheWrite: 3, output: 4, reasoning: 5 };
  const later = { cacheWriteHour: 8, audioInput: 9, imageInput: 10, audioOutput: 11 };
  const last = { imageOutput: 12, cachedAudioInput: 13, cachedImageInput: 14, citation: 15 };
  assert.deepEqual(stored, { ...first, ...later, ...last });
});

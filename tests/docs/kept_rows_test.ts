import assert from "node:assert/strict";
import { keptKinds } from "../../src/base/kept_kinds.ts";
import * as keys from "../../src/store/keys.ts";
import { expiringKinds } from "../../src/sweeps.ts";
import { familiesOf } from "../support/key_families.ts";

const guide = await Deno.readTextFile(new URL("../../guides/operations.md", import.meta.url));
const [, section = ""] = guide.split("## What is removed, and how fast\n");
const [text = ""] = section.split(/\n## /);
const isRow = (line: string) => line.startsWith("|");
const table = text.split("\n").filter(isRow).slice(2)
  .map((line) => line.split("|").slice(1, -1).map((cell) => cell.trim()));
const namesIn = (words: string) => [...words.matchAll(/`([a-z_]+)`/g)].map(([, name = ""]) => name);
const inTable = new Set(table.flatMap(([rows = ""]) => namesIn(rows)));

/** The paragraph that names what stays. */
const staying = namesIn(
  text.split("\n\n").find((part) => part.startsWith("One row, or one")) ?? "",
);

Deno.test("kept rows: the guide says of every kind when it ends, or that it stays", () => {
  const families = familiesOf(keys);
  const named = new Set([...inTable, ...staying]);
  for (const family of families) assert.ok(named.has(family), `${family} is missing`);
  for (const name of staying) assert.ok(families.has(name), `${name} is no kind of rows`);
  const twice = staying.filter((name) => inTable.has(name) && name !== "top_users");
  assert.deepEqual(twice, []);
});

Deno.test("kept rows: what the removal removes is in the table, with what finds it", () => {
  for (const kind of keptKinds) assert.ok(inTable.has(kind), kind);
  for (const { prefix: [name] } of expiringKinds) {
    const rows = table.filter(([rows = ""]) => namesIn(rows).includes(String(name)));
    assert.ok(rows.some(([, , found]) => found === "`expiry`"), `${name} is found by 'expiry'`);
    assert.ok(keptKinds.some((kind) => kind === name), `${name} is counted`);
  }
  for (const cells of table) {
    assert.equal(cells.length, 4);
    for (const cell of cells) assert.notEqual(cell, "", cells[0]);
  }
});

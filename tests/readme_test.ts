import assert from "node:assert/strict";
import { eventsTable } from "../scripts/events_table.ts";

const cellsOf = (table: string) =>
  table.split("\n").filter((line) => !/^\|[\s|-]+$/.test(line))
    .map((line) => line.split("|").map((cell) => cell.trim()));

Deno.test("readme: its table of events is the one of the schemas", async () => {
  const text = await Deno.readTextFile(new URL("../README.md", import.meta.url));
  const [, table = ""] = /<!-- events -->\n\n?([^]*?)\n\n?<!-- \/events -->/.exec(text) ?? [];
  assert.deepEqual(cellsOf(table), cellsOf(eventsTable()));
});

Deno.test("readme: its links to files lead to files", async () => {
  const text = await Deno.readTextFile(new URL("../README.md", import.meta.url));
  const links = [...text.matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map(([, link = ""]) => link);
  assert.ok(links.length > 0);
  for (const link of links) await Deno.stat(new URL(`../${link}`, import.meta.url));
});

import assert from "node:assert/strict";
import { eventsTable } from "../../scripts/events_table.ts";
import { createProgram } from "../../scripts/farebox.ts";

const cellsOf = (table: string) =>
  table.split("\n").filter((line) => !/^\|[\s|-]+$/.test(line))
    .map((line) => line.split("|").map((cell) => cell.trim()));

Deno.test("guides: the table of events is generated from the schemas", async () => {
  const text = await Deno.readTextFile(new URL("../../guides/events.md", import.meta.url));
  const [, table = ""] = /<!-- events -->\n\n?([^]*?)\n\n?<!-- \/events -->/.exec(text) ?? [];
  assert.deepEqual(cellsOf(table), cellsOf(eventsTable()));
});

Deno.test("readme: its links to files work", async () => {
  const text = await Deno.readTextFile(new URL("../../README.md", import.meta.url));
  const links = [...text.matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map(([, link = ""]) => link);
  assert.ok(links.length > 0);
  for (const link of links) await Deno.stat(new URL(`../../${link}`, import.meta.url));
});

Deno.test("readme: its links into guides lead to existing headings", async () => {
  const text = await Deno.readTextFile(new URL("../../README.md", import.meta.url));
  const links = [...text.matchAll(/\]\((guides\/[^)#]+)#([^)]+)\)/g)];
  assert.ok(links.length >= 2, "a stream and a balance");
  for (const [, file, place] of links) {
    const guide = await Deno.readTextFile(new URL(`../../${file}`, import.meta.url));
    const places = [...guide.matchAll(/^#+ (.+)$/gm)].map(([, title = ""]) => placeOf(title));
    assert.ok(place !== undefined && places.includes(place), `${file}#${place}`);
  }
});

/** The anchor of a heading, as GitHub builds it. */
const placeOf = (title: string) => title.toLowerCase().replace(/[^\w -]/g, "").replaceAll(" ", "-");

Deno.test("readme: has about a thousand words", async () => {
  const text = await Deno.readTextFile(new URL("../../README.md", import.meta.url));
  assert.ok(text.split(/\s+/).length < 1_300);
});

Deno.test("guides: the operator's commands exist, with their options", async () => {
  const text = await Deno.readTextFile(new URL("../../guides/cli.md", import.meta.url));
  const lines = [...text.matchAll(/^deno task farebox (.+)$/gm)].map(([, line = ""]) => line);
  assert.ok(lines.length > 5);
  for (const line of lines) {
    const words = line.split(" < ")[0]?.match(/"[^"]*"|\S+/g) ?? [];
    let command = createProgram();
    const names = words.filter((word) => !word.startsWith("-"));
    for (const name of names) {
      const below = command.commands.find((known) => known.name() === name);
      if (!below) break;
      command = below;
    }
    assert.equal(command.commands.length, 0, `${line} names no command`);
    const known = [...command.options, ...createProgram().options].map(({ long }) => long);
    for (const option of words.filter((word) => word.startsWith("--"))) {
      assert.ok(known.includes(option), `${line}: ${option}`);
    }
  }
});

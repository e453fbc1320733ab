import assert from "node:assert/strict";
import { guideContents } from "../../src/guides/contents.ts";
import * as keys from "../../src/store/keys.ts";
import { familiesOf } from "../support/key_families.ts";

const guide = await Deno.readTextFile(new URL("../../guides/privacy.md", import.meta.url));
const fileOf = (path: string) => Deno.readTextFile(new URL(`../../${path}`, import.meta.url));

/** The rows of the table under a heading, without its head. */
function tableUnder(heading: string): string[][] {
  const [, section = ""] = guide.split(`## ${heading}\n`);
  const lines = section.split(/\n#+ /)[0]?.split("\n").filter((line) => line.startsWith("|")) ?? [];
  return lines.slice(2).map((line) => line.split("|").slice(1, -1).map((cell) => cell.trim()));
}

const stored = tableUnder("Everything that is stored");

Deno.test("privacy: the guide names every kind of rows that the database can have, and no other", () => {
  const named = stored.flatMap(([, rows = ""]) =>
    [...rows.matchAll(/`([a-z_]+)`/g)].map(([, name = ""]) => name)
  );
  assert.deepEqual(named.toSorted(), [...familiesOf(keys)].toSorted());
});

Deno.test("privacy: of each it says what is of a person, and how long", () => {
  assert.ok(stored.length > 20);
  for (const [what, ...cells] of stored) {
    assert.equal(cells.length, 4, what);
    for (const cell of cells) assert.notEqual(cell, "", what);
  }
});

Deno.test("privacy: every setting and variable that the guide names exists", async () => {
  const sources = await Promise.all(
    ["src/projects/schema.ts", "src/projects/response_cache_schema.ts", ".env.example"].map(fileOf),
  );
  const text = sources.join("\n");
  const names = ["keepResponses", "requestLogDays", "billingEvents", "maxAgeSeconds"];
  for (const name of [...names, "WEBHOOK_RETENTION_DAYS", "SECRETS_KEY"]) {
    assert.ok(guide.includes(name), name);
    assert.ok(text.includes(name), name);
  }
});

Deno.test("privacy: no page claims any more that no text is stored", async () => {
  const guides = guideContents.flatMap(({ guides }) => guides).map((name) => `guides/${name}.md`);
  for (const path of ["README.md", "ARCHITECTURE.md", "SECURITY.md", ...guides]) {
    const text = (await fileOf(path)).replace(/\s+/g, " ");
    assert.doesNotMatch(text, /stores no text|no text is stored|prompts are not stored/i, path);
  }
  assert.match(await fileOf("README.md"), /\(guides\/privacy\.md\)/);
});

Deno.test("security: SECURITY.md says how to report, and its links lead to files", async () => {
  const text = await fileOf("SECURITY.md");
  for (const title of ["Report a hole", "Supported versions", "What is promised", "out of scope"]) {
    assert.ok(text.includes(title), title);
  }
  assert.match(text, /private security advisory/);
  assert.doesNotMatch(text, /@[a-z]/, "no address is invented");
  const links = [...text.matchAll(/\]\(([^)#]+)(?:#([^)]+))?\)/g)];
  assert.ok(links.length > 5);
  for (const [, link = "", section] of links) {
    const titles = [...(await fileOf(link)).matchAll(/^#+ (.+)$/gm)].map(([, title = ""]) =>
      title.toLowerCase().replace(/[^\w -]/g, "").replaceAll(" ", "-")
    );
    if (section !== undefined) assert.ok(titles.includes(section), `${link}#${section}`);
  }
});

Deno.test("readme: the two commands that run it and its tests stand near its top, and exist", async () => {
  const [, run = ""] = (await fileOf("README.md")).split("## Run it");
  const [section = ""] = run.split("\n## ");
  const blocks = [...section.matchAll(/```sh\n([^]*?)```/g)].map(([, code = ""]) => code.trim());
  assert.deepEqual(blocks, ["deno task dev", "deno task test"]);
  const { tasks } = JSON.parse(await fileOf("deno.json"));
  for (const [, task = ""] of (await fileOf("README.md")).matchAll(/deno task ([a-z-]+)/g)) {
    assert.ok(tasks[task], task);
  }
});

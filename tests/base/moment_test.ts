import assert from "node:assert/strict";
import { isRange, parseMoment } from "../../src/base/moment.ts";
import { signedIn } from "../support/console.ts";
import { adminKey, createWorld } from "../support/world.ts";

const moments: [string, number | null][] = [
  ["2026-02-28", Date.UTC(2026, 1, 28)],
  ["2024-02-29", Date.UTC(2024, 1, 29)],
  ["2026-11-21T08:00:00Z", Date.UTC(2026, 10, 21, 8)],
  ["2026-11-21T08:00:00.5+02:00", Date.UTC(2026, 10, 21, 6, 0, 0, 500)],
  ["2026-11-21T08:00Z", Date.UTC(2026, 10, 21, 8)],
  ["1960-01-01", Date.UTC(1960, 0, 1)],
  ["2026-02-30", null],
  ["2026-02-29", null],
  ["2026-04-31T00:00:00Z", null],
  ["2026-13-01", null],
  ["2026-01-01T25:00:00Z", null],
  ["2026-01-01T00:00:00+25:00", null],
  ["2026-01-01T00:00:00", null],
  ["21 November 2026", null],
  ["1767225600000", null],
  ["", null],
];
for (const [text, at] of moments) {
  Deno.test(`moments: '${text}' is ${at}`, () => assert.equal(parseMoment(text), at));
}

Deno.test("moments: a range is not turned round, and may be open", () => {
  assert.equal(isRange({ from: 1, to: 2 }), true);
  assert.equal(isRange({ from: 1 }), true);
  assert.equal(isRange({ to: null }), true);
  assert.equal(isRange({ from: 2, to: 2 }), false);
  assert.equal(isRange({ from: 3, to: 2 }), false);
});

const wrong = [
  ["from=2026-02-30", "from"],
  ["to=2026-02-30T00:00:00Z", "to"],
  ["from=2026-11-20&to=2026-11-19", ""],
  ["from=2026-11-20&to=2026-11-20", ""],
];
const lists = ["summary?", "requests?", "export?what=entries&"];
for (const list of lists) {
  for (const [query, param] of wrong) {
    Deno.test(`ranges: ${list}${query} is 400 that says it`, async () => {
      using world = await createWorld();
      const path = `/v1/admin/projects/${world.projectId}/${list}${query}`;
      const { status, body } = await world.json(path, { method: "GET", key: adminKey });
      assert.equal(status, 400, JSON.stringify(body));
      assert.match(body.error.message, param === "" ? /before|later/ : new RegExp(String(param)));
    });
  }
}

Deno.test("ranges: pages of the console say it too", async () => {
  using world = await createWorld();
  const owner = await signedIn(world);
  for (const page of ["", "requests", "activity", "activity.csv"]) {
    for (const query of ["from=2026-02-30", "to=2026-02-30", "from=2026-11-20&to=2026-11-18"]) {
      const { status, html } = await owner.get(`${page}?${query}`);
      assert.equal(status, 400, `${page}?${query}`);
      assert.match(html, /must be (a date|before)/);
    }
    assert.equal((await owner.get(`${page}?from=2026-11-20&to=2026-11-20`)).status, 200);
  }
});

import assert from "node:assert/strict";
import { apiDoc } from "../../src/api_doc.ts";
import { createDocument } from "../../src/docs/document.ts";
import { changesBetween, unnamedIn } from "../../scripts/api/changes.ts";
import { type ApiFacts, factsOf } from "../../scripts/api/facts.ts";

const today = factsOf(createDocument(apiDoc, { baseUrl: "https://farebox.test" }));

const without = (part: string): ApiFacts =>
  new Map([...today].filter(([place]) => !place.includes(part)));

const cases: [what: string, before: ApiFacts, changes: string[]][] = [
  ["nothing", today, []],
  ["an endpoint", without("POST /v1/user/refund"), ["new /v1/user/refund"]],
  ["a field of a body", without("deposit body.amount"), ["new amount"]],
  ["a parameter", without("GET /v1/user/balance query:user"), ["new user"]],
  ["an error's code", without("=insufficient_scope"), ["new insufficient_scope"]],
  ["a header", without("header:X-Service-Balance"), ["new X-Service-Balance"]],
  ["an event", without("EVENT balance.deposit.created"), ["new balance.deposit.created"]],
  ["an object with its fields", without("200.usage"), ["new usage"]],
];
for (const [what, before, changes] of cases) {
  Deno.test(`api changes: ${what} that is new is one change, and that is gone is one`, () => {
    const told = (all: ReturnType<typeof changesBetween>) =>
      all.map(({ name, what }) => `${what} ${name}`);
    assert.deepEqual(told(changesBetween(before, today)), changes);
    const gone = changes.map((change) => change.replace(/^new/, "gone"));
    assert.deepEqual(told(changesBetween(today, before)), gone);
  });
}

Deno.test("api changes: a field that became a number is one change in all its places", () => {
  const before = new Map(
    [...today].map(([place, types]) => [place, /\.usage\.cost$/.test(place) ? "string" : types]),
  );
  const [change, ...others] = changesBetween(before, today);
  assert.deepEqual(others, []);
  assert.deepEqual([change?.name, change?.what], ["cost", "of another type"]);
  assert.ok((change?.places.length ?? 0) > 1);
});

Deno.test("api changes: a line of the changelog names the change in code, as a word of its own", () => {
  const changes = changesBetween(without("=insufficient_scope"), today);
  const isNamed = (text: string) => unnamedIn(text, changes).length === 0;
  assert.ok(isNamed("- New: 403 `insufficient_scope`."));
  assert.ok(isNamed("- New: `error.code: insufficient_scope`."));
  for (const text of ["", "insufficient_scope", "`insufficient_scopes`", "`scope`"]) {
    assert.ok(!isNamed(text), text);
  }
});

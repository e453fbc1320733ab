import assert from "node:assert/strict";
import { hiddenFields, signedIn, textOf } from "../support/console.ts";
import { adminKey, createWorld } from "../support/world.ts";

const path = "/console/catalogue";

function fileOf(prices: Record<string, unknown>): File {
  const text = JSON.stringify({ date: "2026-11-25", prices: { openai: prices } });
  return new File([text], "prices.json", { type: "application/json" });
}

Deno.test("console: an operator sees what a refresh of the list prices changes, and applies it", async () => {
  using world = await createWorld();
  const operator = await signedIn(world, adminKey);
  assert.match((await operator.get("/console/projects")).html, /href="[^"]*\/console\/catalogue"/);
  const file = fileOf({
    "gpt-4o": { input: "2", output: "10", cachedInput: "0.5" },
    "gpt-9-nova": { input: "1", output: "4" },
  });
  const preview = await operator.upload(path, { file });
  assert.equal(preview.status, 200, preview.html);
  assert.match(
    textOf(preview.html),
    /gpt-4o openai \$2\.50 → \$2\.00 \$10\.00 .*cachedInput.*gpt-9-nova new openai \$1\.00 \$4\.00/,
  );
  assert.match(textOf(preview.html), /Change 2 prices/);
  const before = await operator.get(path);
  assert.doesNotMatch(textOf(before.html), /gpt-9-nova/, "nothing has changed yet");

  const fields = hiddenFields(preview.html, path);
  const done = await operator.upload(path, fields);
  assert.equal(done.status, 303, done.html);
  const after = textOf((await operator.get(done.location ?? "")).html);
  assert.match(
    after,
    /The list prices are refreshed.*Last refresh Prices of 2026-11-25.*gpt-9-nova/,
  );
  assert.equal((await operator.upload(path, fields)).status, 303, "after a double click");
  const trail = textOf((await operator.get("/console/audit")).html);
  assert.match(trail, /refreshed the list prices to those of 2026-11-25: 2 prices changed/);
});

Deno.test("console: a refresh is not applied where the prices have changed since it was shown", async () => {
  using world = await createWorld();
  const operator = await signedIn(world, adminKey);
  const mine = fileOf({ "gpt-9-nova": { input: "1", output: "4" } });
  const fields = hiddenFields((await operator.upload(path, { file: mine })).html, path);
  const theirs = fileOf({ "gpt-9-nova": { input: "2", output: "5" } });
  const other = hiddenFields((await operator.upload(path, { file: theirs })).html, path);
  assert.equal((await operator.upload(path, other)).status, 303);
  using second = await createWorld({ shareWith: world, seed: 2 });
  const elsewhere = await signedIn(second, adminKey);
  const seen = await elsewhere.upload(path, { file: mine });
  assert.match(textOf(seen.html), /\$2\.00 → \$1\.00/, "another process compares with it at once");
  const late = await operator.upload(path, fields);
  assert.equal(late.status, 400);
  assert.match(textOf(late.html), /has changed since you opened.*\$2\.00 → \$1\.00/);
});

Deno.test("console: a file without prices is refused with a reason, and an owner sees no such page", async () => {
  using world = await createWorld();
  const operator = await signedIn(world, adminKey);
  const bad: [file: string | File, why: RegExp][] = [
    [new File([], ""), /Choose a price file\./],
    [new File(["prices: none"], "prices.json"), /The file is not JSON\./],
    [new File([new Uint8Array([0xff, 0xfe])], "prices.json"), /The file is not JSON\./],
    [new File(["{}"], "prices.json"), /date/],
    [fileOf({ "gpt-4o": { input: "-1", output: "1" } }), /input/],
    [
      new File(['{"date":"9999-12-31","prices":{}}'], "prices.json"),
      /'date' is 9999-12-31, which is in the future\./,
    ],
    ["null", /./],
  ];
  for (const [file, why] of bad) {
    const shown = await operator.upload(path, { file });
    assert.equal(shown.status, 400);
    assert.match(textOf(shown.html), why);
  }
  const same = await operator.upload(path, { file: fileOf({}) });
  assert.match(textOf(same.html), /Every price is as before\./);
  const owner = await signedIn(world);
  assert.equal((await owner.get(path)).status, 404);
  assert.equal((await owner.upload(path, { file: fileOf({}) })).status, 404);
});

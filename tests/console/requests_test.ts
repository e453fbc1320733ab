import assert from "node:assert/strict";
import { chatBody, chatPath } from "../support/books.ts";
import { signedIn, textOf } from "../support/console.ts";
import { subscribe } from "../support/webhooks.ts";
import { createWorld } from "../support/world.ts";

const dayMs = 24 * 60 * 60 * 1000;

Deno.test("console: requests are listed with why they failed, filtered, and opened", async () => {
  using world = await createWorld();
  await world.json(chatPath, { body: chatBody("poor") });
  await world.deposit("ada", "5");
  await world.json(chatPath, { body: chatBody("ada") });
  const owner = await signedIn(world);
  const all = await owner.get("requests");
  assert.match(
    textOf(all.html),
    /Completed ada test-model .*Refused insufficient_funds poor/,
  );
  const refused = textOf((await owner.get("requests?outcome=refused")).html);
  assert.match(refused, /insufficient_funds poor/);
  assert.doesNotMatch(refused, /Completed 200/);
  assert.match(textOf((await owner.get("requests?user=nobody")).html), /No request matches/);
  const csv = await owner.get("requests.csv?user=ada");
  assert.match(
    csv.headers.get("content-disposition") ?? "",
    /attachment; filename="requests\.csv"/,
  );
  assert.equal(csv.html.trimEnd().split("\r\n").length, 3);
  assert.equal((await owner.get("requests?status=lost")).status, 400);
});

Deno.test("console: a request shows why it ended, what it cost, its entry and its events", async () => {
  using world = await createWorld();
  await subscribe(world);
  await world.json(chatPath, { body: chatBody("poor") });
  await world.deposit("ada", "5");
  await world.clock.advance(5 * 60 * 1000);
  await world.json(chatPath, { body: chatBody("ada") });
  await world.clock.advance(1_000);
  const owner = await signedIn(world);
  const openFirst = async (query: string) => {
    const { html } = await owner.get(`requests?${query}`);
    const [, place] = /href="[^"]*requests\/(one\?place=[^"]*)"/.exec(html) ?? [];
    return await owner.get(`requests/${place}`);
  };
  const charged = await openFirst("outcome=completed");
  const [activity] = await world.activities("ada");
  assert.match(charged.html, new RegExp(`users/one\\?user=ada#${activity?.id}`));
  assert.match(textOf(charged.html), /Status 200.*User ada Model test-model.*Charged \$0\.\d+/);
  const types = [...charged.html.matchAll(/deliveries\/dly_\w+".*?<code>([\w.]+)<\/code>/gs)];
  assert.deepEqual(
    types.map(([, type]) => type).sort(),
    ["proxy.request.completed", "proxy.request.started", "usage.charge.created"],
  );

  const refused = textOf((await openFirst("outcome=refused")).html);
  assert.match(
    refused,
    /insufficient_funds The balance was too small\..*none: nothing was charged/,
  );
  assert.match(refused, /request\.blocked/);
  assert.doesNotMatch(refused, /proxy\.request\.completed/);
  for (const place of ["", "x", "rql_00000000000000000000000000.0", "rql_0.1.2"]) {
    assert.equal((await owner.get(`requests/one?place=${place}`)).status, 404, place);
  }
});

Deno.test("console: the activity of all users is filtered by kind and day, and downloaded", async () => {
  using world = await createWorld();
  await world.deposit("ada", "5");
  await world.json("/v1/user/charge", { body: { user: "ada", amount: "1.5" } });
  await world.clock.advance(dayMs);
  await world.deposit("bob", "7");
  const owner = await signedIn(world);
  const all = textOf((await owner.get("activity")).html);
  assert.match(
    all,
    /Deposit bob \$7\.00 \$7\.00 .*Charge ada -\$1\.50 \$3\.50 .*Deposit ada \$5\.00/,
  );
  const charges = textOf((await owner.get("activity?kind=charge")).html);
  assert.match(charges, /Charge ada/);
  assert.doesNotMatch(charges, /Deposit bob/);
  const first = textOf((await owner.get("activity?to=2026-01-01")).html);
  assert.doesNotMatch(first, /Deposit bob/);
  assert.match(first, /Deposit ada/);
  const csv = (await owner.get("activity.csv?from=2026-01-02")).html;
  assert.match(
    csv,
    /^id,createdAt,kind,user,[^\r]*\r\nact_\w+,2026-01-02T[^,]*,deposit,bob,7,7,usd,7,,payment,key,key_\w+\r\ntotal,1 rows,,,,7,usd\r\n$/,
  );
  for (const bad of ["kind=lost", "from=soon", "cursor=x"]) {
    assert.equal((await owner.get(`activity?${bad}`)).status, 400, bad);
  }
});

Deno.test("console: the overview has margin, what is owed, active and new users, and the conversion", async () => {
  const models = { "gpt-4o-mini": { input: "1", output: "2" } };
  using world = await createWorld({
    env: { UPSTREAM_URL: "https://api.openai.com/v1", UPSTREAM_API_KEY: "key-of-openai" },
    project: { pricing: { models } },
  });
  await world.json(chatPath, { body: chatBody("ada", { model: "gpt-4o-mini" }) });
  await world.deposit("ada", "5");
  await world.json(chatPath, { body: chatBody("ada", { model: "gpt-4o-mini" }) });
  await world.json(chatPath, { body: chatBody("bob", { model: "gpt-4o-mini" }) });
  const owner = await signedIn(world);
  await world.app.flush();
  const text = textOf((await owner.get("")).html);
  assert.match(text, /Margin <?\$0\.\d+ 78 %/);
  assert.match(text, /Outstanding balance \$4\.99 what 1 user has left/);
  assert.match(text, /Active users 1 of 1/);
  assert.match(text, /New users 1 /);
  assert.match(text, /Paywall conversion 50 % 1 of 2 paid within an hour/);
});

Deno.test("console: the overview compares with the period before, and shows any dates", async () => {
  using world = await createWorld();
  await world.deposit("ada", "50");
  await world.json("/v1/user/charge", { body: { user: "ada", amount: "2" } });
  await world.clock.advance(dayMs);
  await world.json("/v1/user/charge", { body: { user: "ada", amount: "3" } });
  const owner = await signedIn(world);
  assert.match(textOf((await owner.get("")).html), /Revenue \$3\.00 ▲ 50 % vs\. previous/);
  const both = textOf((await owner.get("?from=2026-01-01&to=2026-01-02")).html);
  assert.match(both, /Revenue \$5\.00 no earlier data/);
  assert.match(both, /2026-01-01 to 2026-01-03, UTC/);
  assert.match(textOf((await owner.get("?to=2026-01-02")).html), /2025-12-03 to 2026-01-03, UTC/);
  assert.equal((await owner.get("?from=2026-01-05&to=2026-01-02")).status, 400);
  assert.equal((await owner.get("?from=soon")).status, 400);
});

Deno.test("console: a figure of the overview leads to the list of its own time", async () => {
  using world = await createWorld();
  await world.deposit("ada", "50");
  await world.json(chatPath, { body: chatBody("ada") });
  await world.clock.advance(10 * dayMs);
  await world.deposit("bob", "20");
  await world.json(chatPath, { body: chatBody("bob") });
  const owner = await signedIn(world);
  const times = ["days=1", "days=7", "days=30", "from=2026-01-10", "to=2026-01-02"];
  for (const query of [...times, "from=2026-01-11T00:00&to=2026-01-12T06:00"]) {
    const { html } = await owner.get(`?${query}`);
    const isLong = query === "days=30";
    for (const [label, list] of [["Requests", "requests"], ["Deposits", "activity"]] as const) {
      const [, path = "", shown] = html.match(
        new RegExp(`${label}</dt><dd><a href="[^"]*/(${list}[^"]*)">(.*?)</a>`),
      ) ?? [];
      const found = await owner.get(path.replaceAll("&amp;", "&"));
      assert.equal(found.status, 200, `${query}: ${path}`);
      const rows = found.html.match(/<tr>/g)?.length ?? 0;
      assert.equal(rows > 2, isLong, `${query}: ${path}, ${shown}`);
    }
  }
});

Deno.test("console: what needs a hand is named, with where to go", async () => {
  using world = await createWorld({ project: { lowBalance: "1" } });
  await world.deposit("ada", "0.5");
  await world.json(chatPath, { body: chatBody("ada", { model: "dear-model" }) });
  await world.app.flush();
  const owner = await signedIn(world);
  const { html } = await owner.get("");
  const text = textOf(html);
  assert.match(text, /Users cannot pay: no checkout is connected\./);
  assert.match(text, /dear-model was called and has no price\./);
  assert.match(text, /1 user is below the low balance\./);
});

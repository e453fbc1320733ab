import assert from "node:assert/strict";
import { chatBody, chatPath } from "../support/books.ts";
import { type Body, createWorld, type World } from "../support/world.ts";

async function page(world: World, query: string) {
  return await world.json(`/v1/user/activities?user=ada&${query}`);
}

Deno.test("activities: newest first, each with every field of the interface", async () => {
  using world = await createWorld();
  const deposit = await world.json("/v1/user/balance/deposit", {
    body: { user: "ada", amount: "2", metadata: { order: "o-1" } },
    headers: { "idempotency-key": "order-1" },
  });
  await world.clock.advance(1000);
  await world.json("/v1/user/charge", { body: { user: "ada", amount: "0.5" } });
  await world.clock.advance(1000);
  await world.json(chatPath, { body: chatBody("ada"), headers: { "x-request-id": "mine" } });
  const { status, body } = await page(world, "");
  assert.equal(status, 200);
  assert.equal(body.nextCursor, null);
  const [usage, charge, first] = body.activities;
  assert.deepEqual([usage.kind, usage.amount, usage.delta, usage.balanceAfter], [
    "usage",
    "0.00002",
    "-0.00002",
    "1.49998",
  ]);
  assert.equal(usage.usage.model, "test-model");
  assert.equal(usage.usage.source, "provider");
  assert.equal(usage.usage.uncachedInputTokens, 10);
  assert.equal(usage.usage.outputTokens, 5);
  assert.deepEqual([charge.kind, charge.amount, charge.delta], ["charge", "0.5", "-0.5"]);
  const { refundedActivityId, actor, ...rest } = first;
  assert.equal(actor.type, "key");
  assert.equal(refundedActivityId, null);
  assert.deepEqual(rest, {
    id: deposit.body.activityId,
    kind: "deposit",
    reason: "payment",
    user: "ada",
    amount: "2",
    delta: "2",
    currency: "usd",
    balanceAfter: "2",
    shortfall: "0",
    createdAt: "2026-01-01T00:00:00.000Z",
    idempotencyKey: "order-1",
    metadata: { order: "o-1" },
    usage: null,
  });
});

Deno.test("activities: pages have no gaps and no repeats while entries arrive", async () => {
  using world = await createWorld();
  for (let n = 1; n <= 25; n++) await world.deposit("ada", `${n}`);
  const seen: string[] = [];
  let cursor: string | null = "";
  for (let n = 100; cursor !== null; n++) {
    const { status, body }: { status: number; body: Body } = await page(
      world,
      `limit=4${cursor && `&cursor=${encodeURIComponent(cursor)}`}`,
    );
    assert.equal(status, 200);
    assert.ok(body.activities.length <= 4 && body.activities.length > 0);
    seen.push(...body.activities.map(({ amount }: Body) => amount));
    cursor = body.nextCursor;
    await world.deposit("ada", `${n}`);
    await world.deposit("bob", "1");
  }
  assert.deepEqual(seen, Array.from({ length: 25 }, (_, index) => `${25 - index}`));
});

Deno.test("activities: a last page that is exactly full has no next one", async () => {
  using world = await createWorld();
  for (let n = 1; n <= 4; n++) await world.deposit("ada", `${n}`);
  const first = await page(world, "limit=2");
  assert.notEqual(first.body.nextCursor, null);
  const second = await page(world, `limit=2&cursor=${first.body.nextCursor}`);
  assert.equal(second.body.activities.length, 2);
  assert.equal(second.body.nextCursor, null);
  assert.deepEqual((await page(world, "limit=4")).body.nextCursor, null);
});

Deno.test("activities: an unknown user has none", async () => {
  using world = await createWorld();
  const { status, body } = await page(world, "");
  assert.equal(status, 200);
  assert.deepEqual(body, { activities: [], nextCursor: null });
});

Deno.test("activities: the limit is a whole number from 1 to 100, and 20 by default", async () => {
  using world = await createWorld();
  for (let n = 1; n <= 101; n++) await world.deposit("ada", `${n}`);
  for (const [query, count] of [["", 20], ["limit=1", 1], ["limit=99", 99], ["limit=100", 100]]) {
    const { status, body } = await page(world, `${query}`);
    assert.equal(status, 200, `${query}`);
    assert.equal(body.activities.length, count, `${query}`);
  }
  const wrong = [
    "0",
    "101",
    "-1",
    "1.5",
    "1e1",
    "abc",
    "",
    "%20",
    "0x10",
    "9".repeat(400),
    "NaN",
    "%00",
  ];
  for (const limit of wrong) {
    const { status, body } = await page(world, `limit=${limit}`);
    assert.equal(status, 400, limit);
    assert.equal(body.error.param, "limit", limit);
  }
});

Deno.test("activities: another user's cursor is 400, and reveals nothing", async () => {
  using world = await createWorld();
  const other = await world.makeProject();
  await world.deposit("ada", "1");
  await world.deposit("bob", "1");
  const foreign = await world.json("/v1/user/balance/deposit", {
    body: { user: "ada", amount: "1" },
    key: other.apiKey,
  });
  const [bobs] = await world.activities("bob");
  const cursors = {
    "another user's": bobs?.id,
    "another project's": foreign.body.activityId,
    "unknown": "act_01ARZ3NDEKTSV4RRFFQ69G5FAV",
    "nonsense": "nonsense",
    "empty": "",
    "a control character": "%00",
    "not UTF-8": "%ff",
    "long": "a".repeat(1000),
    "too long for a key": "a".repeat(4000),
  };
  for (const [label, cursor] of Object.entries(cursors)) {
    const { status, body } = await page(world, `cursor=${cursor}`);
    assert.equal(status, 400, `${label}: ${JSON.stringify(body)}`);
    assert.equal(body.error.param, "cursor", label);
    assert.doesNotMatch(body.error.message, /bob/);
  }
});

Deno.test("activities: CSV has one line each below a header, quoted where needed", async () => {
  using world = await createWorld();
  await world.json("/v1/user/balance/deposit", {
    body: { user: "ada", amount: "2", metadata: { note: 'a "b", c' } },
    headers: { "idempotency-key": "order,1" },
  });
  await world.json("/v1/user/charge", { body: { user: "ada", amount: "0.5" } });
  const response = await world.call("/v1/user/activities?user=ada&limit=1", {
    headers: { accept: "text/csv" },
  });
  assert.equal(response.status, 200);
  assert.match(response.headers.get("content-type") ?? "", /^text\/csv; charset=utf-8$/);
  const cursor = response.headers.get("x-next-cursor");
  assert.ok(cursor);
  const [header, charge, ...rest] = (await response.text()).split("\r\n");
  assert.deepEqual(rest, [""]);
  assert.match(
    header ?? "",
    /^id,createdAt,kind,user,amount,delta,currency,balanceAfter,shortfall/,
  );
  assert.match(
    charge ?? "",
    /^act_\w+,2026-01-01T00:00:00\.000Z,charge,ada,0\.5,-0\.5,usd,1\.5,0,,,charge,key,key_\w+,/,
  );
  const second = await world.call(`/v1/user/activities?user=ada&cursor=${cursor}`, {
    headers: { accept: "text/csv, application/json;q=0.5" },
  });
  const [, deposit] = (await second.text()).split("\r\n");
  assert.ok(deposit?.includes(',"order,1",'), deposit);
  assert.ok(deposit?.endsWith(',"{""note"":""a \\""b\\"", c""}"'), deposit);
  assert.equal(second.headers.get("x-next-cursor"), null);
});

const formulas = ["=1+1", "+1+1", "-1+1", "@SUM(A1)", '=HYPERLINK("http://x","y")', "=1,2", "-A1"];

Deno.test("activities: no cell of the CSV runs as a formula", async () => {
  using world = await createWorld();
  for (const [index, text] of formulas.entries()) {
    const user = text;
    const headers = { "idempotency-key": text.replaceAll(" ", "") };
    const deposit = { user, amount: `${index + 1}` };
    await world.json("/v1/user/balance/deposit", { body: deposit, headers });
    const path = `/v1/user/activities?user=${encodeURIComponent(user)}`;
    const csv = await (await world.call(path, { headers: { accept: "text/csv" } })).text();
    const [, line = ""] = csv.split("\r\n");
    const cells = [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)]
      .map(([, quoted, bare]) => quoted?.replaceAll('""', '"') ?? bare ?? "");
    assert.ok(cells.includes(`'${text}`), line);
    for (const cell of cells) {
      assert.ok(!/^[=+@\t\r-]/.test(cell) || /^-?\d+(\.\d+)?$/.test(cell), `${text}: ${cell}`);
    }
  }
});

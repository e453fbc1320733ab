import assert from "node:assert/strict";
import { requestsPrefix } from "../../src/store/keys.ts";
import { firstIdAt } from "../../src/base/ids.ts";
import { listRequests } from "../../src/requests/list.ts";
import { requestColumns, type StoredRequest } from "../../src/requests/record.ts";
import { chatBody, chatPath } from "../support/books.ts";
import { chatStream } from "../support/chat.ts";
import { completion, usage } from "../support/upstream.ts";
import { adminKey, type Body, createWorld, type World } from "../support/world.ts";

const dayMs = 24 * 60 * 60 * 1000;

async function requests(world: World, query = ""): Promise<Body[]> {
  return (await page(world, query)).requests;
}

async function page(world: World, query = ""): Promise<Body> {
  const path = `/v1/admin/projects/${world.projectId}/requests${query}`;
  const { status, body } = await world.json(path, { key: adminKey });
  assert.equal(status, 200, JSON.stringify(body));
  return body;
}

Deno.test("requests: a charged one has its user, model, key, tokens, cost, times and entry", async () => {
  using world = await createWorld();
  await world.deposit("ada", "5");
  world.upstream.once(() => completion({ usage: usage(900, 150) }));
  const headers = { "x-request-id": "mine-1" };
  await world.json(chatPath, { body: chatBody("ada"), headers });
  const [request, ...more] = await requests(world);
  assert.deepEqual(more, []);
  const [activity] = await world.activities("ada");
  assert.partialDeepStrictEqual(request, {
    requestId: "mine-1",
    outcome: "completed",
    status: 200,
    reason: null,
    endpoint: "chat",
    stream: false,
    user: "ada",
    model: "test-model",
    inputTokens: 900,
    outputTokens: 150,
    cost: activity?.amount,
    attempts: 1,
    activityId: activity?.id,
  });
  assert.match(request?.id, /^req_/);
  assert.match(request?.key, /^key_/);
  assert.ok(request?.latencyMs >= request?.firstTokenMs);
});

Deno.test("requests: refused, failed and malformed ones are listed with their reasons", async () => {
  using world = await createWorld();
  await world.json(chatPath, { body: chatBody("poor") });
  await world.deposit("ada", "5");
  await world.json(chatPath, { body: chatBody("ada", { model: "unknown-model" }) });
  await world.json(chatPath, { body: chatBody("ada", { messages: "none" }) });
  world.upstream.once(() => Response.json({ error: { message: "no" } }, { status: 500 }));
  await world.json(chatPath, { body: chatBody("ada") });
  await world.json(chatPath, { body: chatBody("ada"), key: "sk_wrong" });
  const listed = (await requests(world)).map(({ outcome, status, reason, user, cost }) => [
    outcome,
    status,
    reason,
    user,
    cost,
  ]);
  assert.deepEqual(listed, [
    ["failed", 502, "upstream_error", "ada", "0"],
    ["refused", 400, "invalid_type", null, "0"],
    ["refused", 404, "model_not_found", "ada", "0"],
    ["refused", 200, "insufficient_funds", "poor", "0"],
  ]);
});

Deno.test("requests: a stream is listed once it has ended, with its first token", async () => {
  using world = await createWorld();
  await world.deposit("ada", "5");
  await (await chatStream(world, chatBody("ada"))).text();
  const [request] = await requests(world);
  assert.equal(request?.stream, true);
  assert.equal(typeof request?.firstTokenMs, "number");
  assert.notEqual(request?.cost, "0");
});

Deno.test("requests: are found by each filter, page by page, and as CSV", async () => {
  using world = await createWorld();
  await world.deposit("ada", "5");
  for (let n = 0; n < 7; n++) {
    await world.json(chatPath, { body: chatBody(n % 2 ? "ada" : "poor") });
    await world.clock.advance(60_000);
  }
  const [first] = await requests(world, "?limit=1");
  const cases: [query: string, count: number][] = [
    ["?user=ada", 3],
    ["?user=poor&outcome=refused", 4],
    ["?outcome=completed", 3],
    ["?reason=insufficient_funds", 4],
    ["?status=200", 7],
    ["?status=500", 0],
    ["?model=test-model", 7],
    ["?model=other", 0],
    [`?key=${first?.key}`, 7],
    [`?id=${first?.id}`, 1],
    ["?from=2026-01-01T00:03:00Z", 4],
    ["?to=2026-01-01T00:03:00Z", 3],
  ];
  for (const [query, count] of cases) {
    assert.equal((await requests(world, query)).length, count, query);
  }
  const all: Body[] = [];
  let cursor: string | null = "";
  while (cursor !== null) {
    const query: string = cursor === "" ? "?limit=2" : `?limit=2&cursor=${cursor}`;
    const { requests, nextCursor } = await page(world, query);
    all.push(...requests);
    cursor = nextCursor;
  }
  assert.deepEqual(all, await requests(world));
  const csv = await world.call(`/v1/admin/projects/${world.projectId}/requests`, {
    key: adminKey,
    headers: { accept: "text/csv" },
  });
  const lines = (await csv.text()).trimEnd().split("\r\n");
  assert.equal(lines.length, 8);
  assert.match(lines[0] ?? "", /^id,requestId,createdAt,outcome,status,reason,/);
  for (const bad of ["?outcome=lost", "?limit=0", "?cursor=x", "?user=a&user=b", "?nosuch=1"]) {
    const path = `/v1/admin/projects/${world.projectId}/requests${bad}`;
    assert.equal((await world.json(path, { key: adminKey })).status, 400, bad);
  }
});

Deno.test("requests: are written together and without a write of their own while others are written", async () => {
  using world = await createWorld();
  await world.deposit("ada", "5");
  await Promise.all(
    Array.from({ length: 200 }, () => world.json(chatPath, { body: chatBody("ada") })),
  );
  await world.app.flush();
  const rows = await world.deps.kv.list({ prefix: requestsPrefix(world.projectId), limit: 99 });
  assert.ok(rows.length <= 8, `${rows.length} rows`);
  const counts = (await requests(world, "?limit=1000")).map(({ count }) => count);
  assert.equal(counts.reduce((sum, count) => sum + count, 0), 200);
});

Deno.test("requests: are kept as long as the project says, and erased with their user", async () => {
  using world = await createWorld({ project: { requestLogDays: 2 } });
  await world.deposit("ada", "1");
  await world.json(chatPath, { body: chatBody("ada") });
  await world.json(chatPath, { body: chatBody("bob") });
  await world.app.flush();
  await world.json(`/v1/admin/projects/${world.projectId}/users/ada/forget`, {
    key: adminKey,
    body: { forfeit: true },
  });
  for (let n = 0; n < 3; n++) await world.app.sweep();
  assert.deepEqual(await requests(world, "?user=ada"), []);
  assert.equal((await requests(world)).length, 2, "under a pseudonym");
  await world.clock.advance(3 * dayMs);
  await world.app.sweep();
  assert.deepEqual(await requests(world), []);
});

Deno.test("requests: nothing is recorded where the project keeps none", async () => {
  using world = await createWorld({ project: { requestLogDays: 0 } });
  await world.json(chatPath, { body: chatBody("ada") });
  assert.deepEqual(await requests(world), []);
});

Deno.test("requests: a page is flat in how many there are, and says how far it has looked", async () => {
  using world = await createWorld();
  const { kv, clock } = world.deps;
  const record: StoredRequest = requestColumns.map((name) => name === "user" ? "bob" : 0);
  const value = new TextEncoder().encode(JSON.stringify(Array(64).fill(record)));
  for (let n = 0; n < 250; n++) {
    const key = [...requestsPrefix(world.projectId), firstIdAt("rql", clock.now() - n * 1_000)];
    await kv.atomic({ checks: [], sets: [{ key, value }], deletes: [] });
  }
  const newest = await listRequests(kv, world.projectId, { limit: 50, filter: {} });
  assert.equal(newest.requests.length, 50);
  assert.equal(newest.searchedTo, null);
  const none = await listRequests(kv, world.projectId, { limit: 50, filter: { user: "ada" } });
  assert.deepEqual(none.requests, []);
  assert.equal(none.searchedTo, clock.now() - 159_000);
  const cursor = none.nextCursor ?? assert.fail("it goes on");
  const rest = await listRequests(kv, world.projectId, {
    limit: 50,
    cursor,
    filter: { user: "ada" },
  });
  assert.deepEqual([rest.nextCursor, rest.searchedTo], [null, null]);
});

import assert from "node:assert/strict";
import { version } from "../../src/base/version.ts";
import { createScriptedStore } from "../support/store.ts";
import { storedRows } from "../support/books.ts";
import { createWorld } from "../support/world.ts";

Deno.test("health: the process reports that it is alive, without a key", async () => {
  using world = await createWorld();
  const { status, body } = await world.json("/healthz", { key: null });
  assert.equal(status, 200);
  assert.deepEqual(body, { status: "ok", service: "farebox", version });
});

Deno.test("health: it is ready when what it writes can be read, and leaves only one row behind", async () => {
  using world = await createWorld();
  const before = (await storedRows(world)).length;
  for (let n = 0; n < 3; n++) {
    const { status, body } = await world.json("/readyz", { key: null });
    assert.equal(status, 200);
    assert.deepEqual(body, { status: "ready" });
  }
  assert.equal((await storedRows(world)).length, before);
});

Deno.test("health: without its store it is alive, and not ready", async () => {
  const store = createScriptedStore();
  using world = await createWorld({ wrapKv: store.wrap });
  store.dead = true;
  assert.equal((await world.json("/healthz", { key: null })).status, 200);
  const { status, body, response } = await world.json("/readyz", { key: null });
  assert.equal(status, 503);
  assert.equal(body.error.code, "store_unavailable");
  assert.notEqual(response.headers.get("retry-after"), null);
  assert.doesNotMatch(JSON.stringify(body), /connection refused/, "the cause is for the log");
  store.dead = false;
  assert.equal((await world.json("/readyz", { key: null })).status, 200, "and is again");
});

Deno.test("health: a store that writes but cannot be read is not ready", async () => {
  const store = createScriptedStore();
  using world = await createWorld({ wrapKv: store.wrap });
  store.get = () => Promise.reject(new TypeError("disk I/O error"));
  assert.equal((await world.json("/readyz", { key: null })).status, 503);
});

Deno.test("health: a store that loses writes is not ready", async () => {
  const store = createScriptedStore();
  using world = await createWorld({ wrapKv: store.wrap });
  assert.equal((await world.json("/readyz", { key: null })).status, 200);
  store.atomic = () => Promise.resolve("00000000000000000000");
  assert.equal((await world.json("/readyz", { key: null })).status, 503, "an old row is no proof");
});

Deno.test("health: without its store, money is 503, and the cause is not revealed", async () => {
  const store = createScriptedStore();
  using world = await createWorld({ wrapKv: store.wrap });
  await world.deposit("ada", "1");
  store.dead = true;
  const requests: [path: string, body?: unknown][] = [
    ["/v1/user/balance/deposit", { user: "ada", amount: "1" }],
    ["/v1/user/charge", { user: "ada", amount: "1" }],
    ["/v1/user/balance?user=ada"],
  ];
  for (const [path, body] of requests) {
    const answer = await world.json(path, { body });
    assert.equal(answer.status, 503, `${path}: ${JSON.stringify(answer.body)}`);
    assert.equal(answer.body.error.code, "store_unavailable", path);
    assert.doesNotMatch(JSON.stringify(answer.body), /connection refused/);
  }
  store.dead = false;
  assert.equal((await world.balance("ada")).balance, "1");
});

Deno.test("health: a process that is about to stop is alive and answers, but is not ready", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const before = await world.json("/v1/user/balance?user=ada");
  assert.equal(before.response.headers.get("connection"), null);
  world.app.announceStop();
  const { status, body } = await world.json("/readyz", { key: null });
  assert.deepEqual([status, body.error.code], [503, "server_shutdown"]);
  for (const path of ["/healthz", "/v1/user/balance?user=ada", "/none", "/readyz"]) {
    const { response } = await world.json(path);
    assert.equal(response.headers.get("connection"), "close", path);
  }
  assert.equal(world.app.quietMs(), 0);
  await world.clock.advance(2_000);
  assert.equal(world.app.quietMs(), 2_000, "probes do not count");
});

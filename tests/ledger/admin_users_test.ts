import assert from "node:assert/strict";
import { toAmount } from "../../src/base/money.ts";
import { emptyAccount, encodeAccount } from "../../src/ledger/account.ts";
import { accountKey } from "../../src/store/keys.ts";
import type { Kv } from "../../src/store/kv.ts";
import { chatBody, chatPath, checkBooks, storeAsText } from "../support/books.ts";
import { chunk, fedStream, readEvents, usage, usageChunk } from "../support/upstream.ts";
import { allow, charge, Device, pay, sharedWorld } from "../support/wallets.ts";
import { operate, subscribe } from "../support/webhooks.ts";
import { adminKey, type Body, createWorld, type World } from "../support/world.ts";

const get = (world: World, path: string) => operate(world, `/users${path}`, { method: "GET" });
const idsOf = (body: Body): string[] => body.users.map(({ user }: Body) => user);

/** Ids that a path must carry unchanged, in the order of their UTF-8. */
const strangeUsers = [
  "-",
  "..",
  ".",
  "50%",
  "a/b?c#d",
  "a b+c",
  "ada",
  "e\u0301",
  "ü",
  "日本",
  "😀",
];

Deno.test("users: the list pages through everyone once, in order of their ids", async () => {
  using world = await createWorld();
  for (const user of strangeUsers) await world.deposit(user, "1");
  const seen: string[] = [];
  for (let cursor: string | null = ""; cursor !== null;) {
    const { status, body } = await get(world, `?limit=3${cursor && `&cursor=${cursor}`}`);
    assert.equal(status, 200);
    assert.ok(body.users.length <= 3);
    seen.push(...idsOf(body));
    cursor = body.nextCursor;
  }
  const encoder = new TextEncoder();
  const bytesOf = (user: string) => String.fromCharCode(...encoder.encode(user));
  const sorted = strangeUsers.toSorted((a, b) => (bytesOf(a) < bytesOf(b) ? -1 : 1));
  assert.deepEqual(seen, sorted);
});

Deno.test("users: a user shows the balance, the number of entries and the last one", async () => {
  using world = await createWorld();
  await world.deposit("ada", "5");
  const { body: { activityId } } = await operate(world, "/users/ada/charge", {
    body: { amount: "1.25" },
  });
  const { body } = await get(world, "");
  assert.deepEqual(body, {
    users: [{
      user: "ada",
      balance: "3.75",
      held: "0",
      available: "3.75",
      balanceFormatted: "$3.75",
      currency: "usd",
      entries: 2,
      lastActivityId: activityId,
      authorization: null,
    }],
    nextCursor: null,
  });
  assert.deepEqual((await get(world, "/ada")).body.user, { ...body.users[0], holds: [] });
});

Deno.test("users: a prefix lists those whose ids start with it, and no others", async () => {
  using world = await createWorld();
  for (const user of ["a", "team:1", "team:2", "team:2:x", "team:", "teal", "u"]) {
    await world.deposit(user, "1");
  }
  const first = await get(world, "?prefix=team%3A&limit=2");
  assert.deepEqual(idsOf(first.body), ["team:", "team:1"]);
  const rest = await get(world, `?prefix=team%3A&cursor=${first.body.nextCursor}`);
  assert.deepEqual(idsOf(rest.body), ["team:2", "team:2:x"]);
  assert.equal(rest.body.nextCursor, null);
  assert.deepEqual(idsOf((await get(world, "?prefix=nobody")).body), []);
});

Deno.test("users: a page among 100,000 accounts reads no more rows than it shows", async () => {
  let rowsRead = 0;
  const counted = (kv: Kv): Kv => ({
    ...kv,
    async list(options) {
      const rows = await kv.list(options);
      rowsRead += rows.length;
      return rows;
    },
  });
  using world = await createWorld({ wrapKv: counted });
  const value = encodeAccount({ ...emptyAccount(), balance: toAmount(1n) });
  const count = 100_000;
  for (let from = 0; from < count; from += 500) {
    const sets = Array.from({ length: 500 }, (_, at) => ({
      key: accountKey(world.projectId, `user-${String(from + at).padStart(6, "0")}`),
      value,
    }));
    await world.deps.kv.atomic({ checks: [], sets, deletes: [] });
  }
  for (const path of ["?limit=50", "?limit=50&prefix=user-0735"]) {
    rowsRead = 0;
    const { body } = await get(world, path);
    assert.equal(body.users.length, 50);
    assert.ok(rowsRead <= 51, `${path}: ${rowsRead} rows`);
    const next = await get(world, `${path}&cursor=${body.nextCursor}`);
    assert.notEqual(next.body.users[0].user, body.users[49].user);
    assert.equal(next.body.users[0].user > body.users[49].user, true);
  }
});

Deno.test("users: an id of any characters is reachable by its path", async () => {
  using world = await createWorld();
  for (const user of strangeUsers) {
    const dots = user === "." || user === "..";
    const at = dots ? "-" : encodeURIComponent(user);
    const query = dots ? `?user=${user}` : "";
    const made = await operate(world, `/users/${at}/deposit${query}`, { body: { amount: "2" } });
    assert.equal(made.status, 200, JSON.stringify(made.body));
    assert.equal(made.body.user, user);
    assert.equal((await get(world, `/${at}${query}`)).body.user.user, user);
  }
  assert.equal((await get(world, "")).body.users.length, strangeUsers.length);
});

Deno.test("users: a path that names no user is 400, an unknown user 404", async () => {
  using world = await createWorld();
  for (const path of ["/%ff", "/a%00b", `/${"x".repeat(129)}`, "/%ED%A0%80", "/ada?user=bob"]) {
    const { status, body } = await get(world, path);
    assert.equal(status, 400, path);
    assert.equal(body.error.param, "user");
  }
  for (const path of ["/nobody", "/nobody/activities"]) {
    const { status, body } = await get(world, path);
    assert.equal(status, 404);
    assert.equal(body.error.message, "No such user.");
  }
  for (const query of ["limit=0", "cursor=%25", "cursor=bm9uZQ", "prefix=%00"]) {
    const { status, body } = await get(world, `?${query}`);
    assert.equal(status, 400, query);
    assert.equal(body.error.param, query.split("=")[0]);
  }
});

Deno.test("users: open holds are listed until they end", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const stream = fedStream();
  world.upstream.once(() => stream.response);
  const response = await world.call(chatPath, { body: chatBody("ada", { stream: true }) });
  const { body: { user } } = await get(world, "/ada");
  assert.equal(user.holds.length, 1);
  assert.equal(user.holds[0].amount, user.held);
  // The stream began 2 s after its hold.
  assert.equal(Date.parse(user.holds[0].expiresAt), world.clock.now() + 58_000);
  assert.match(user.holds[0].id, /^req_/);
  stream.send(chunk({ content: "Hi" }, "stop"));
  stream.send(usageChunk(usage(8, 1)));
  stream.send("[DONE]");
  stream.end();
  assert.equal((await readEvents(response)).at(-1), "[DONE]");
  assert.deepEqual((await get(world, "/ada")).body.user.holds, []);
});

Deno.test("users: the operator's deposit, charge and refund are the public ones, in the operator's name", async () => {
  using world = await createWorld();
  await subscribe(world);
  const headers = { "idempotency-key": "op-1" };
  const call = (verb: string, body: Body, more = {}) =>
    world.json(`/v1/admin/projects/${world.projectId}/users/ada/${verb}`, {
      key: adminKey,
      body,
      ...more,
    });
  const made = await call("deposit", { amount: "5", metadata: { why: "goodwill" } }, { headers });
  assert.equal(made.body.balance, "5");
  const again = await call("deposit", { amount: "5", metadata: { why: "goodwill" } }, { headers });
  assert.equal(again.body.activityId, made.body.activityId);
  assert.equal(again.response.headers.get("idempotent-replayed"), "true");
  assert.equal((await call("deposit", { amount: "6" }, { headers })).status, 422);
  // The idempotency key is the project's: its own systems share it.
  const own = await world.json("/v1/user/balance/deposit", {
    body: { user: "ada", amount: "5", metadata: { why: "goodwill" } },
    headers,
  });
  assert.equal(own.body.activityId, made.body.activityId);

  const charged = await call("charge", { user: "ada", amount: "2" });
  assert.equal(charged.body.message, "The charge was taken.");
  const short = await call("charge", { amount: "100" });
  assert.equal(short.status, 200);
  assert.deepEqual([short.body.success, short.body.reason], [false, "insufficient_funds"]);
  const { activityId } = charged.body;
  const refunded = await call("refund", { activityId, amount: "0.5" });
  assert.equal(refunded.body.refundedActivityId, activityId);
  assert.equal((await call("refund", { activityId, amount: "2" })).status, 400);
  await checkBooks(world, "ada");

  const { body: { activities } } = await get(world, "/ada/activities");
  assert.deepEqual(activities, await world.activities("ada"));
  const events = (await world.json("/v1/webhooks/logs?limit=100")).body.logs
    .map(({ event }: Body) => event);
  assert.ok(events.length >= 4);
  for (const { trigger } of events) {
    assert.deepEqual(trigger, { source: "api", actorType: "paywall-owner", actorId: "operator" });
  }
});

Deno.test("users: another user's activity, another name in the body and bad amounts change nothing", async () => {
  using world = await createWorld();
  await world.deposit("ada", "5");
  await world.deposit("bob", "5");
  const [{ id }] = await world.activities("bob") as [Body];
  const before = await storeAsText(world);
  for (
    const [verb, body, status, param] of [
      ["refund", { activityId: id }, 404, null],
      ["refund", { user: "ada", activityId: id }, 404, null],
      ["refund", { user: "bob", activityId: id }, 400, "user"],
      ["deposit", { user: "bob", amount: "1" }, 400, "user"],
      ["charge", { user: 7, amount: "1" }, 400, "user"],
      ["deposit", { amount: 1 }, 400, "amount"],
      ["deposit", { amount: "-1" }, 400, "amount"],
      ["deposit", { amount: "1", extra: 1 }, 400, "extra"],
      ["refund", { activityId: "act_1" }, 400, "activityId"],
    ] as const
  ) {
    const answer = await operate(world, `/users/ada/${verb}`, { body });
    assert.equal(answer.status, status, JSON.stringify(answer.body));
    assert.equal(answer.body.error.param, param);
  }
  assert.equal(await storeAsText(world), before);
});

Deno.test("users: an archived project accepts no deposit and no charge of the operator either", async () => {
  using world = await createWorld();
  await world.deposit("ada", "5");
  await operate(world, "/archive");
  for (const verb of ["deposit", "charge"]) {
    const { status, body } = await operate(world, `/users/ada/${verb}`, { body: { amount: "1" } });
    assert.deepEqual([status, body.error.code], [403, "project_archived"]);
  }
  assert.equal((await get(world, "/ada")).body.user.balance, "5");
});

Deno.test("users: only the operator is admitted, and the log names no user", async () => {
  using world = await createWorld();
  await world.deposit("ada", "5");
  for (const path of ["", "/ada", "/ada/activities"]) {
    const address = `/v1/admin/projects/${world.projectId}/users${path}`;
    assert.equal((await world.json(address)).status, 401);
    assert.equal((await world.json(address, { key: adminKey })).status, 200);
  }
  const other = await world.json("/v1/admin/projects/pw_0/users", { key: adminKey });
  assert.equal(other.status, 404);
  const paths = world.logged.map(({ path }) => path);
  assert.ok(paths.includes(`/v1/admin/projects/${world.projectId}/users/[user]/activities`));
  const named = ["chat/completions", "models", "models/test-model"];
  for (const path of named) await world.json(`/v1/ada.lovelace@example.com/${path}`);
  assert.deepEqual(
    world.logged.slice(-3).map(({ path }) => path),
    named.map((path) => `/v1/[user]/${path}`),
  );
  assert.ok(!JSON.stringify(world.logged).includes("lovelace"));
  assert.ok(!JSON.stringify(world.logged).includes("ada"));
});

Deno.test("users: in a wallet a project sees whom it may charge, and nothing of others' use", async () => {
  using world = await sharedWorld();
  const device = new Device(world);
  await allow(device, { cap: "4" });
  await pay(world, { amount: "10" });
  const other = await world.makeProject({ name: "Other", mode: "shared" });
  await allow(device, { user: "ada-there", key: other.apiKey });
  await charge(world, "1");
  await charge(world, "2", { user: "ada-there", key: other.apiKey });

  const { body } = await get(world, "");
  assert.deepEqual(idsOf(body), ["ada"]);
  const [ada] = body.users;
  assert.deepEqual([ada.balance, ada.entries, ada.lastActivityId], ["7", null, null]);
  assert.deepEqual([ada.authorization.status, ada.authorization.dailyCap], ["active", "4"]);
  const { body: { activities } } = await get(world, "/ada/activities");
  assert.deepEqual(activities.map(({ kind }: Body) => kind), ["charge", "deposit"]);
  const deposit = await operate(world, "/users/ada/deposit", { body: { amount: "1" } });
  assert.deepEqual([deposit.status, deposit.body.error.code], [400, "mode_conflict"]);

  await world.json("/v1/user/disconnect?user=ada", { method: "POST" });
  const { body: { user } } = await get(world, "/ada");
  assert.deepEqual([user.balance, user.authorization.status], ["0", "revoked"]);
  const refused = await operate(world, "/users/ada/charge", { body: { amount: "1" } });
  assert.equal(refused.body.reason, "authorization_required");
});

Deno.test("users: in a wallet a project sees its own holds", async () => {
  using world = await sharedWorld();
  const device = new Device(world);
  const other = await world.makeProject({ name: "Other", mode: "shared" });
  await allow(device);
  await allow(device, { key: other.apiKey });
  await pay(world, { amount: "10" });
  const stream = fedStream();
  world.upstream.once(() => stream.response);
  const response = await world.call(chatPath, { body: chatBody("ada", { stream: true }) });
  const { body: { user } } = await get(world, "/ada");
  assert.deepEqual([user.holds.length, user.holds[0].amount], [1, user.held]);
  const path = `/v1/admin/projects/${other.projectId}/users/ada`;
  const there = (await world.json(path, { key: adminKey })).body.user;
  assert.deepEqual([there.holds, there.held], [[], user.held], "the wallet is one");
  stream.send(usageChunk(usage(8, 1)));
  stream.send("[DONE]");
  stream.end();
  await readEvents(response);
});

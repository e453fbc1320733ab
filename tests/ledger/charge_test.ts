import { fromDecimal } from "../../src/base/money.ts";
import assert from "node:assert/strict";
import { chatBody, chatPath, checkBooks, moneyAsText } from "../support/books.ts";
import { settle } from "../support/clock.ts";
import { chunk, completion, fedStream, usageChunk } from "../support/upstream.ts";
import { createWorld } from "../support/world.ts";
import { sharedWorld } from "../support/wallets.ts";
import { deliver, logs, subscribe } from "../support/webhooks.ts";

const path = "/v1/user/charge";

Deno.test("charge: takes the amount to the last digit, and reports it", async () => {
  using world = await createWorld();
  await world.deposit("ada", "10");
  const { status, body } = await world.json(path, {
    body: { user: "ada", amount: "2.000000001", metadata: { invoice: "i-1" } },
  });
  assert.equal(status, 200);
  const { activityId, message, ...rest } = body;
  assert.match(activityId, /^act_[0-9A-Z]{26}$/);
  assert.equal(typeof message, "string");
  assert.deepEqual(rest, {
    success: true,
    user: "ada",
    amount: "2.000000001",
    currency: "usd",
    balance: "7.999999999",
    held: "0",
    available: "7.999999999",
    balanceFormatted: "$7.99",
  });
  const entries = await checkBooks(world, "ada");
  assert.deepEqual(entries.map(({ kind, delta }) => [kind, delta]), [
    ["deposit", "10"],
    ["charge", "-2.000000001"],
  ]);
});

Deno.test("charge: the whole balance can be taken, and not a billionth more", async () => {
  using world = await createWorld();
  await world.deposit("ada", "5");
  const over = await world.json(path, { body: { user: "ada", amount: "5.000000001" } });
  assert.equal(over.body.success, false);
  const all = await world.json(path, { body: { user: "ada", amount: "5" } });
  assert.equal(all.body.success, true);
  assert.equal(all.body.balance, "0");
  const more = await world.json(path, { body: { user: "ada", amount: "0.000000001" } });
  assert.equal(more.body.success, false);
  await checkBooks(world, "ada");
});

Deno.test("charge: beyond the balance it is a 200 whose message contains the link", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1.5");
  const before = await moneyAsText(world);
  const { status, body } = await world.json(path, { body: { user: "ada", amount: "2" } });
  assert.equal(status, 200);
  const { message, url, ...rest } = body;
  assert.deepEqual(rest, {
    success: false,
    reason: "insufficient_funds",
    balance: "1.5",
    held: "0",
    available: "1.5",
    balanceFormatted: "$1.50",
  });
  assert.match(url, /^https:\/\/farebox\.test\/t\//);
  assert.ok(message.includes(url));
  assert.equal(await moneyAsText(world), before, "a refused charge writes nothing");
});

Deno.test("charge: an unknown user is refused, and gets no account", async () => {
  using world = await createWorld();
  const before = await moneyAsText(world);
  const { status, body } = await world.json(path, { body: { user: "new", amount: "1" } });
  assert.equal(status, 200);
  assert.equal(body.success, false);
  assert.equal(body.balance, "0");
  assert.equal(await moneyAsText(world), before);
});

Deno.test("charge: a refused one is not recorded, so its key succeeds after a top-up", async () => {
  using world = await createWorld();
  const options = {
    body: { user: "ada", amount: "3" },
    headers: { "idempotency-key": "charge-1" },
  };
  assert.equal((await world.json(path, options)).body.success, false);
  await world.deposit("ada", "4");
  const second = await world.json(path, options);
  assert.equal(second.body.success, true);
  assert.equal(second.body.balance, "1");
  assert.equal(second.response.headers.get("idempotent-replayed"), null);
  const third = await world.json(path, options);
  assert.deepEqual(third.body, second.body);
  assert.equal(third.response.headers.get("idempotent-replayed"), "true");
  assert.equal((await world.balance("ada")).balance, "1");
});

Deno.test("charge: the project's own URL is filled in and escaped", async () => {
  using world = await createWorld({
    project: { topUpUrl: "https://shop.test/pay/{project}?u={user}&a={amount}#{user}" },
  });
  const user = "a b&c=d/é#{project}";
  const { body } = await world.json(path, { body: { user, amount: "1.50" } });
  const escaped = encodeURIComponent(user);
  assert.equal(
    body.url,
    `https://shop.test/pay/${world.projectId}?u=${escaped}&a=1.5#${escaped}`,
  );
  assert.ok(body.message.includes(body.url));
});

Deno.test("charge: never touches what a running call holds", async () => {
  using world = await createWorld();
  await world.deposit("ada", "0.001");
  const stream = fedStream();
  world.upstream.once(() => stream.response);
  const answer = await world.call(chatPath, { body: chatBody("ada", { stream: true }) });
  const text = answer.text();
  const before = await world.balance("ada");
  assert.equal(before.balance, "0.001");
  assert.notEqual(before.held, "0");
  const over = await world.json(path, { body: { user: "ada", amount: "0.001" } });
  assert.equal(over.body.success, false);
  assert.equal(over.body.available, before.available);
  const rest = await world.json(path, { body: { user: "ada", amount: before.available } });
  assert.equal(rest.body.success, true);
  assert.equal(rest.body.available, "0");
  assert.equal(rest.body.held, before.held);
  for (const event of [chunk({ content: "Hello" }), chunk({}, "stop"), usageChunk(), "[DONE]"]) {
    stream.send(event);
  }
  stream.end();
  await text;
  await settle();
  const after = await world.balance("ada");
  assert.equal(after.held, "0");
  // 10 tokens in and 5 out, of a larger hold.
  assert.equal(fromDecimal(before.held) - fromDecimal(after.balance), 20_000n);
  await checkBooks(world, "ada");
});

Deno.test("charge: an amount that only running calls hold is reported as that, not as spent", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const gate = Promise.withResolvers<void>();
  world.upstream.reply(async () => {
    await gate.promise;
    return completion();
  });
  const running = world.json(chatPath, { body: chatBody("ada") });
  await world.until(async () => (await world.balance("ada")).held !== "0");
  const { body } = await world.json("/v1/user/charge", { body: { user: "ada", amount: "1" } });
  assert.deepEqual([body.success, body.reason], [false, "balance_held"]);
  assert.match(body.message, /earlier answers are still running/);
  gate.resolve();
  await running;
});

Deno.test("charge: the events of a refused one carry its metadata, exactly, and so do the logs", async () => {
  using world = await createWorld();
  await subscribe(world, { events: ["balance.*"] });
  const raw = '{"user":"ada","amount":"99","metadata":{"order":12345678901234567890}}';
  assert.equal((await world.json("/v1/user/charge", { raw })).body.success, false);
  await deliver(world);
  const told = await logs(world);
  const types = told.map(({ event }) => event.type).sort();
  assert.deepEqual(types, ["balance.charge.failed", "balance.depleted"]);
  const text = await (await world.call("/v1/webhooks/logs")).text();
  assert.equal(text.split('"metadata":{"order":12345678901234567890}').length, 3);
});

Deno.test("charge: one without an authorization is reported as refused, too", async () => {
  using world = await sharedWorld();
  await subscribe(world, { events: ["balance.*"] });
  const body = { user: "ada", amount: "2", metadata: { order: 7 } };
  assert.equal((await world.json("/v1/user/charge", { body })).body.success, false);
  await deliver(world);
  const [told, another] = await logs(world);
  assert.ok(told && !another);
  const { type, data, metadata } = told.event;
  assert.deepEqual([type, metadata], ["balance.charge.failed", { order: 7 }]);
  assert.deepEqual(
    [data.walletUserId, data.amount, data.errorCode, data.activityId],
    [null, "2", "authorization_required", null],
  );
});

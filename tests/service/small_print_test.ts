import assert from "node:assert/strict";
import Stripe from "stripe";
import { ApiError } from "../../src/base/errors.ts";
import { measureBody } from "../../src/base/head_response.ts";
import { withDeadline } from "../../src/base/deadline.ts";
import { typedDecimal } from "../../src/base/money.ts";
import { rowsPerPage } from "../../src/store/listing.ts";
import { chat, usageOf } from "../support/chat.ts";
import { chatBody, chatPath } from "../support/books.ts";
import { forgetWholly } from "../support/forget.ts";
import { makeFolder, serviceEnv, startFarebox } from "../support/process.ts";
import { completion, usage } from "../support/upstream.ts";
import { allow, Device, pay, sharedWorld } from "../support/wallets.ts";
import { deliver, logs, operate, subscribe, subscriptionsPath } from "../support/webhooks.ts";
import { adminKey, createWorld, type World } from "../support/world.ts";

// What a reader of the documents may rely on, and would only find missing in the rare case.

Deno.test("summary: money is counted also in an hour of more models than a row has room for", async () => {
  const models = { "*": { input: "1", output: "2", maxOutputTokens: 1000 } };
  using world = await createWorld({ project: { pricing: { models } } });
  for (let n = 0; n < 30; n++) {
    if (n === 0) await world.deposit("ada", "100");
    assert.equal((await chat(world, { model: `m-${n}` })).status, 200);
  }
  await world.json("/v1/user/charge", { body: { user: "ada", amount: "7" } });
  const summary = `/v1/admin/projects/${world.projectId}/summary`;
  const { body } = await world.json(summary, { key: adminKey });
  assert.deepEqual([body.totals.deposits, body.totals.charges], ["100", "7"]);
});

Deno.test("wallet: whoever allows a user anew does not set the project's own limits back", async () => {
  using world = await sharedWorld({ limits: { user: { spendPerDay: "1" } } });
  const device = new Device(world);
  await allow(device);
  await pay(world);
  world.upstream.reply(() => completion({ usage: usage(100_000, 1) }));
  const content = "a".repeat(300_000);
  const body = chatBody("ada", { messages: [{ role: "user", content }] });
  const untilRefused = async () => {
    for (let answers = 0; answers < 15; answers++) {
      const asked = await world.json(chatPath, { body });
      if (asked.body.paywall) return [answers, asked.body.paywall.reason];
    }
  };
  const [answers, reason] = await untilRefused() ?? [];
  assert.ok(Number(answers) > 2);
  assert.equal(reason, "limit_reached");
  await world.clock.advance(1_000);
  // By the body, too: it is a POST like any other.
  const ended = await world.json("/v1/user/disconnect", { body: { user: "ada" } });
  assert.equal(ended.body.disconnected, true);
  assert.equal((await world.json("/v1/user/connect?user=ada")).body.connected, false);
  await world.clock.advance(1_000);
  await allow(device, {});
  assert.deepEqual(await untilRefused(), [0, "limit_reached"]);
});

const keys = { secretKey: "sk_test_of_the_owner", webhookSecret: "whsec_of_the_owner" };

async function tell(world: World, event: unknown) {
  const payload = JSON.stringify(event);
  const header = await new Stripe("sk_test").webhooks.generateTestHeaderStringAsync({
    payload,
    secret: keys.webhookSecret,
    timestamp: Math.floor(world.clock.now() / 1000),
    cryptoProvider: Stripe.createSubtleCryptoProvider(),
  });
  const headers = { "stripe-signature": header, "content-length": String(payload.length) };
  return await world.json(`/v1/stripe/${world.projectId}`, { key: null, raw: payload, headers });
}

for (const user of ["ada", "7", "test"]) {
  Deno.test(`stripe: what was paid is not booked again once its user '${user}' is forgotten`, async () => {
    using world = await createWorld({ project: { stripe: keys } });
    const object = {
      id: "cs_test_a1b7C9d2e3F4",
      object: "checkout.session",
      payment_status: "paid",
      amount_total: 1000,
      currency: "usd",
      payment_intent: "pi_1",
      metadata: {
        farebox_project: world.projectId,
        farebox_user: user,
        farebox_units: "1000",
      },
    };
    const type = "checkout.session.completed";
    const event = { id: "evt_1", object: "event", type, data: { object } };
    await tell(world, event);
    assert.equal((await world.balance(user)).balance, "10");
    await forgetWholly(world, { forfeit: true }, user);
    await tell(world, event);
    assert.equal((await world.balance(user)).balance, "0");
  });
}

Deno.test("charge: the events of a refused one carry its metadata, exactly, as do the logs", async () => {
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

Deno.test("charge: one that nobody has allowed a wallet for is told as refused, too", async () => {
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

const ends: [string, unknown, unknown][] = [
  ["nothing", null, "string"],
  ["parts", [{ type: "text", text: "x" }], "object"],
];

for (const [name, content, kind] of ends) {
  Deno.test(`chat: a clamped answer of ${name} has the link at its end, too`, async () => {
    const models = { "test-model": { input: "1", output: "1000", maxOutputTokens: 1000 } };
    using world = await createWorld({ project: { pricing: { models } } });
    await world.deposit("ada", "0.05");
    const message = { role: "assistant", content };
    const choices = [{ index: 0, message, finish_reason: "length" }];
    world.upstream.once(() => completion({ choices, usage: usage(5, 40) }));
    const { body } = await chat(world);
    const sent = body.choices[0].message.content;
    assert.equal(typeof sent, kind);
    assert.match(JSON.stringify(sent), /https?:\/\//);
    assert.equal((await usageOf(world)).length, 1);
  });
}

Deno.test("chat: an answer that a spending limit cut sends nobody to top up", async () => {
  const models = { "test-model": { input: "1", output: "1000", maxOutputTokens: 1000 } };
  const limits = { user: { spendPerDay: "0.05" } };
  using world = await createWorld({ project: { pricing: { models }, limits } });
  await world.deposit("ada", "100");
  const message = { role: "assistant", content: "Hello" };
  const choices = [{ index: 0, message, finish_reason: "length" }];
  world.upstream.once(() => completion({ choices, usage: usage(5, 40) }));
  const { body } = await chat(world);
  const [{ max_tokens: cap }] = world.upstream.calls.map(({ body }) => body);
  assert.ok(cap < 50, "the limit pays for less than was asked");
  assert.equal(body.choices[0].message.content, "Hello");
});

const badSecrets = ["whsec_!!!!!!!!!!!!!!", "whsec_c2hvcnQ=", "whsec_ab cd"];

for (const secret of badSecrets) {
  Deno.test(`subscriptions: '${secret}' would sign with another key than it seems, and is refused`, async () => {
    using world = await createWorld();
    const body = { url: "https://hooks.example.com/x", events: ["balance.*"], secret };
    const made = await world.json(subscriptionsPath, { body });
    assert.deepEqual([made.status, made.body.error.param], [400, "secret"]);
  });
}

Deno.test("subscriptions: no more than 100 are active, also by enabling some again", async () => {
  using world = await createWorld();
  const [first] = [await subscribe(world)];
  await world.json(`${subscriptionsPath}/${first?.id}`, { method: "DELETE" });
  for (let n = 0; n < 100; n++) {
    await subscribe(world, { url: `https://hooks.example.com/${n}` });
  }
  const { status } = await operate(world, `/subscriptions/${first?.id}`, {
    method: "PATCH",
    body: { isActive: true },
  });
  assert.equal(status, 400);
});

Deno.test("backup: to ask only for its head does not stand in the way of the next one", async () => {
  await using folder = await makeFolder();
  await using farebox = await startFarebox({ folder: folder.path, env: serviceEnv });
  const headers = { authorization: `Bearer ${serviceEnv.ADMIN_KEY}` };
  const ask = (method: string) => fetch(`${farebox.url}/v1/admin/backup`, { method, headers });
  for (const method of ["HEAD", "HEAD", "GET"]) {
    const response = await ask(method);
    const { byteLength } = await response.arrayBuffer();
    assert.deepEqual([response.status, byteLength > 0], [200, method === "GET"]);
  }
});

Deno.test("http: to ask only for its head tells an answer's length, or none where it is not known", async () => {
  await using folder = await makeFolder();
  await using farebox = await startFarebox({ folder: folder.path, env: serviceEnv });
  const made = { key: adminKey, body: { name: "Test" } };
  const { project, apiKey } = await farebox.json("/v1/admin/projects", made);
  const headers = { authorization: `Bearer ${adminKey}` };
  const ask = async (method: string, path: string) => {
    const response = await fetch(farebox.url + path, { method, headers });
    const { byteLength } = await response.arrayBuffer();
    return { status: response.status, byteLength, told: response.headers.get("content-length") };
  };
  for (const path of ["/healthz", "/openapi.json", "/v1/admin/projects", "/v1/models", "/wallet"]) {
    const whole = await ask("GET", path);
    const { status, byteLength, told } = await ask("HEAD", path);
    assert.deepEqual([status, byteLength, told], [whole.status, 0, String(whole.byteLength)], path);
  }
  await Promise.all(Array.from({ length: rowsPerPage + 1 }, async () => {
    const body = { user: "ada", amount: "1" };
    await farebox.json("/v1/user/balance/deposit", { key: apiKey, body });
  }));
  const exported = `/v1/admin/projects/${project.id}/export?what=entries`;
  assert.deepEqual(await ask("HEAD", exported), { status: 200, byteLength: 0, told: null });
});

Deno.test("http: of an answer to HEAD nothing is left that would wait for its reader", async () => {
  const endless = () => {
    const state = { left: false };
    const body = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(new Uint8Array(10)),
      cancel: () => void (state.left = true),
    });
    return { state, body };
  };
  for (const told of [null, "12345"]) {
    const { state, body } = endless();
    const answer = new Response(body, { headers: told ? { "content-length": told } : {} });
    await measureBody(answer);
    assert.deepEqual([state.left, answer.headers.get("content-length")], [true, told]);
  }
});

Deno.test("patience: what ends in time leaves no timer behind, and what does not is told as late", async () => {
  const timers: (() => void)[] = [];
  const timer = {
    after(_ms: number, work: () => void) {
      timers.push(work);
      return () => void timers.splice(timers.indexOf(work), 1);
    },
  };
  const bound = { ms: 10, late: () => new Error("late") };
  assert.equal(await withDeadline(timer, Promise.resolve("done"), bound), "done");
  await assert.rejects(withDeadline(timer, Promise.reject(new Error("failed")), bound), /failed/);
  assert.equal(timers.length, 0);
  const late = withDeadline(timer, new Promise(() => {}), bound);
  timers[0]?.();
  await assert.rejects(late, /late/);
});

Deno.test("errors: headers that are added to a fault's leave its own as they are", () => {
  const own = { "retry-after": "7" };
  const fault = new ApiError(429, { message: "Too fast.", code: "rate_limited", headers: own });
  const both = fault.with({ "retry-after": "1", "x-ratelimit-limit-requests": "9" });
  assert.deepEqual(both.headers, { "retry-after": "7", "x-ratelimit-limit-requests": "9" });
  assert.deepEqual([both.status, both.body()], [429, fault.body()]);
});

const typed: [string, string][] = [
  ["2,5", "2.5"],
  [" 2.50 ", "2.50"],
  ["1,000", "1,000"],
  ["1,000.50", "1.000.50"],
  ["0,1234", "0.1234"],
];

for (const [text, expected] of typed) {
  Deno.test(`money: '${text}' as people type it is '${expected}'`, () => {
    assert.equal(typedDecimal(text), expected);
  });
}

import assert from "node:assert/strict";
import { fromBytes } from "../../src/base/json.ts";
import { decodeAccount } from "../../src/ledger/account.ts";
import type { Entry } from "../../src/ledger/entry.ts";
import { chatBody, chatPath, storedRows } from "../support/books.ts";
import { createScriptedStore } from "../support/store.ts";
import {
  allow,
  charge,
  Device,
  env,
  linkFor,
  pathOf,
  pay,
  sharedWorld,
  tellServer,
} from "../support/wallets.ts";
import { deliver, subscribe } from "../support/webhooks.ts";
import { signedAuthorizationToken } from "../support/links.ts";
import { adminKey, type Body, createWorld } from "../support/world.ts";

const dayMs = 24 * 60 * 60 * 1000;

Deno.test("wallet: a chat without an authorization requests it, and is served once it is given and paid", async () => {
  using world = await sharedWorld();
  await subscribe(world, { events: ["authorization.*", "request.blocked", "balance.*"] });
  const asked = await world.json(chatPath, { body: chatBody("ada") });
  assert.equal(asked.status, 200);
  assert.equal(asked.body.paywall.reason, "authorization_required");
  assert.match(asked.body.choices[0].message.content, /^Helper needs your permission/);
  assert.equal(asked.response.headers.get("x-service-paywall"), "authorization_required");
  const path = pathOf(asked.body.paywall.url);
  const device = new Device(world);
  const page = await device.get(path);
  assert.match(page.html, /Helper asks for permission/);
  assert.match(page.html, /<bdi>ada<\/bdi>/);
  assert.match(page.headers.get("content-security-policy") ?? "", /frame-ancestors 'none'/);
  assert.doesNotMatch(page.headers.get("set-cookie") ?? "", /farebox_wallet/, "a look gives none");
  const { set, location } = await device.post(path, { decision: "approve", cap: "5" });
  assert.match(set ?? "", /^__Host-farebox_wallet=.+; Path=\/; .*HttpOnly; SameSite=Lax; Secure$/);
  assert.match((await device.get(location ?? "")).html, /Helper may charge your wallet/);
  const empty = await world.json(chatPath, { body: chatBody("ada") });
  assert.equal(empty.body.paywall.reason, "insufficient_funds");
  assert.equal((await pay(world)).answer.body.outcome, "booked");
  const answered = await world.json(chatPath, { body: chatBody("ada") });
  assert.equal(answered.body.paywall, undefined, JSON.stringify(answered.body));
  await deliver(world);
  const { walletUserId } =
    world.subscriber.received.find(({ body }) => body.event.type === "authorization.completed")
      ?.body.event.data ?? assert.fail();
  assert.match(walletUserId, /^per_/);
  const deposit = world.subscriber.received.find(({ body }) =>
    body.event.type === "balance.deposit.created"
  );
  assert.deepEqual(
    [deposit?.body.event.data.walletUserId, deposit?.body.event.data.externalUserId],
    [walletUserId, "ada"],
  );
  const types = new Set(world.subscriber.types());
  for (const type of ["authorization.requested", "authorization.completed", "request.blocked"]) {
    assert.ok(types.has(type), type);
  }
  const blocked = world.subscriber.received.map(({ body }) => body.event)
    .filter(({ type }) => type === "request.blocked").map(({ data }) => data.walletUserId);
  assert.deepEqual(new Set(blocked), new Set([null, walletUserId]), "none was known at first");
});

Deno.test("wallet: one wallet pays for several projects, each of which sees its own part", async () => {
  using world = await sharedWorld();
  const other = await world.makeProject({ name: "Painter", mode: "shared" });
  const device = new Device(world);
  await allow(device);
  await pay(world, { amount: "10" });
  const before = await charge(world, "1", { user: "bob", key: other.apiKey });
  assert.deepEqual([before.success, before.reason], [false, "authorization_required"]);
  await allow(device, { user: "bob", key: other.apiKey });
  assert.equal((await charge(world, "1", { user: "bob", key: other.apiKey })).success, true);
  assert.equal((await charge(world, "2")).balance, "7");
  const seen = await world.json("/v1/user/activities?user=bob", { key: other.apiKey });
  assert.deepEqual(seen.body.activities.map(({ kind }: Body) => kind), ["charge"]);
  assert.deepEqual((await world.activities("ada")).map(({ kind }) => kind), ["charge", "deposit"]);
  const foreign = seen.body.activities[0].id;
  const refund = { user: "ada", activityId: foreign };
  assert.equal((await world.json("/v1/user/refund", { body: refund })).status, 404);
  const own = { user: "bob", activityId: foreign };
  const back = await world.json("/v1/user/refund", { key: other.apiKey, body: own });
  assert.deepEqual([back.status, back.body.balance], [200, "8"]);
  const { html } = await device.get("/wallet");
  for (const text of ["Helper", "Painter", "$8.00"]) assert.ok(html.includes(text), text);
});

Deno.test("wallet: no more is spent in a day than its owner allows, at once or one by one", async () => {
  using world = await sharedWorld();
  const device = new Device(world);
  await allow(device, { cap: "3" });
  await pay(world, { amount: "20" });
  const charges = await Promise.all(Array.from({ length: 10 }, () => charge(world, "0.5")));
  assert.equal(charges.filter(({ success }) => success).length, 6);
  const beyond = charges.find(({ success }) => !success);
  assert.equal(beyond?.reason, "authorization_required");
  const chat = await world.json(chatPath, { body: chatBody("ada") });
  assert.equal(chat.body.paywall.reason, "limit_reached");
  assert.match(chat.body.choices[0].message.content, /daily limit/);
  assert.equal((await world.balance("ada")).balance, "17");
  await world.clock.advance(dayMs);
  assert.equal((await charge(world, "3")).success, true, "the next day is another one");
  assert.equal((await charge(world, "0.1")).success, false);
  const link = pathOf((await charge(world, "0.1")).url);
  assert.match((await device.get(link)).html, /Current limit: \$3\.00/);
  await device.post(link, { decision: "approve", other: "3,5", cap: "5" });
  assert.equal((await charge(world, "0.5")).success, true, "the typed amount counts");
  assert.equal((await charge(world, "0.1")).success, false);
});

Deno.test("wallet: a running call's hold counts against the cap", async () => {
  using world = await sharedWorld({
    pricing: { models: { "test-model": { input: "1000", output: "10000", maxOutputTokens: 100 } } },
  });
  await allow(new Device(world), { cap: "3" });
  await pay(world, { amount: "50" });
  const gate = Promise.withResolvers<void>();
  world.upstream.reply(async () => {
    await gate.promise;
    return Response.json({ error: { message: "down" } }, { status: 500 });
  });
  const running = world.json(chatPath, { body: chatBody("ada") });
  await world.until(async () => (await world.balance("ada")).held !== "0");
  assert.equal((await charge(world, "2.9")).success, false);
  gate.resolve();
  await running;
  assert.equal((await charge(world, "2.9")).success, true);
});

Deno.test("wallet: two projects in two processes at once take what is available, and no more", async () => {
  using world = await sharedWorld();
  const other = await world.makeProject({ name: "Painter", mode: "shared" });
  const device = new Device(world);
  await allow(device, { cap: "1000" });
  await allow(device, { user: "bob", key: other.apiKey, cap: "1000" });
  await pay(world, { amount: "10" });
  using second = await createWorld({ shareWith: world, env });
  const asked = Promise.all(Array.from({ length: 60 }, (_, n) => {
    const process = n % 2 ? world : second;
    const who = n % 4 < 2 ? {} : { user: "bob", key: other.apiKey };
    return charge(process, "0.25", who);
  }));
  let done = false;
  const finished = asked.finally(() => (done = true));
  // A transaction that lost a race waits a few milliseconds of the clock before it retries.
  await world.until(() => done, 5);
  const charges = await finished;
  assert.equal(charges.filter(({ success }) => success).length, 40);
  for (const { success, reason } of charges) {
    assert.ok(success || reason === "insufficient_funds", reason);
  }
  const rows = await storedRows(world);
  const [account] = rows.filter(({ key }) => key[0] === "account");
  const entries = rows.filter(({ key }) => key[0] === "entry" && key[1] === account?.key[1])
    .map(({ value }) => fromBytes<Entry>(value ?? assert.fail())).sort((a, b) => a.seq - b.seq);
  assert.deepEqual(entries.map(({ seq }) => seq), entries.map((_, index) => index + 1));
  assert.equal(entries.at(-1)?.balanceAfter, "0");
  assert.equal(decodeAccount(account?.value ?? null).balance, 0n);
});

Deno.test("wallet: a link counts once even if the clock was set back meanwhile", async () => {
  using world = await sharedWorld();
  const device = new Device(world);
  const link = await linkFor(world);
  world.clock.set(-60_000);
  await device.post(link, { decision: "approve", cap: "5" });
  await device.post(link, { decision: "decline" });
  assert.match((await device.get(link)).html, /Up to \$5\.00/);
});

Deno.test("wallet: a link counts once, for its user, and ends with any later decision", async () => {
  using world = await sharedWorld();
  const device = new Device(world);
  const [first, second] = [await linkFor(world), await linkFor(world)];
  await world.clock.advance(1);
  const both = await Promise.all([
    device.post(first, { decision: "approve", cap: "5" }),
    device.post(first, { decision: "approve", cap: "50" }),
  ]);
  assert.deepEqual(both.map(({ status }) => status), [303, 303]);
  assert.equal(both.filter(({ set }) => set !== null).length, 1, "a double click is one decision");
  assert.match((await device.get(first)).html, /may charge your wallet/);
  assert.equal((await device.get(second)).status, 404, "made before the decision");
  await device.post(second, { decision: "approve", cap: "500" });
  assert.match((await device.get(first)).html, /Up to \$5\.00|Up to \$50\.00/);
  const [payload = "", signature = ""] = (await signedAuthorizationToken(world, "ada")).split(".");
  const forged = btoa(
    atob(payload.replaceAll("-", "+").replaceAll("_", "/")).replace("ada", "bob"),
  );
  for (
    const bad of [
      `${forged}.${signature}`,
      payload,
      `${payload}.`,
      "x",
      `${payload}.${signature}.x`,
    ]
  ) {
    assert.equal((await device.get(`/authorize/${bad}`)).status, 404, bad);
    assert.equal((await device.post(`/authorize/${bad}`, { decision: "approve" })).status, 404);
  }
  const topUp = await world.json("/v1/user/balance/topup?user=ada");
  const crossed = pathOf(topUp.body.url).replace("/t/", "/a/");
  assert.equal((await device.get(crossed)).status, 404, "a link of the other kind");
  const old = await linkFor(world, "eve");
  await world.clock.advance(7 * dayMs);
  assert.equal((await device.get(old)).status, 404, "expired");
});

Deno.test("wallet: a declined request charges nothing, and may be repeated", async () => {
  using world = await sharedWorld();
  await subscribe(world, { events: ["authorization.*"] });
  const device = new Device(world);
  const path = await linkFor(world);
  await world.clock.advance(1);
  await device.post(path, { decision: "decline" });
  assert.match((await device.get(path)).html, /Not allowed/);
  assert.equal((await charge(world, "1")).reason, "authorization_required");
  await world.clock.advance(1);
  await allow(device);
  // Another person's refusal must not end what this one allows.
  const stranger = new Device(world);
  const { body } = await world.json("/v1/user/connect?user=ada");
  assert.equal(body.connected, true);
  await pay(world, { amount: "20" });
  await world.clock.advance(1);
  const limited = pathOf((await charge(world, "11")).url);
  assert.match(limited, /^\/a\//);
  await world.clock.advance(1);
  const said = await stranger.post(limited, { decision: "decline" });
  assert.equal(said.status, 303);
  const told = await stranger.get(said.location ?? "");
  assert.match(told.html, /Not allowed/, "it is not their wallet");
  assert.equal((await world.json("/v1/user/connect?user=ada")).body.connected, true);
  await deliver(world);
  assert.ok(world.subscriber.types().includes("authorization.declined"));
});

Deno.test("wallet: an authorization ends by the project's call and by its owner", async () => {
  using world = await sharedWorld();
  await subscribe(world, { events: ["authorization.revoked"] });
  const device = new Device(world);
  await allow(device);
  await pay(world);
  const ended = await world.json("/v1/user/disconnect?user=ada", { method: "POST" });
  assert.deepEqual([ended.status, ended.body.disconnected], [200, true]);
  assert.equal((await charge(world, "1")).reason, "authorization_required");
  assert.equal((await world.balance("ada")).balance, "0", "no longer this project's to see");
  await world.clock.advance(1);
  await allow(device);
  assert.equal((await charge(world, "1")).balance, "9", "the same wallet");
  const fields = { action: "revoke", projectId: world.projectId, user: "ada" };
  const stranger = new Device(world);
  assert.equal((await stranger.post("/wallet", fields)).status, 403);
  await allow(stranger, { user: "eve" });
  await stranger.post("/wallet", fields);
  assert.equal((await charge(world, "1")).success, true, "not by another person");
  const elsewhere = await device.post("/wallet", fields, { "sec-fetch-site": "cross-site" });
  assert.equal(elsewhere.status, 403, "not by another site");
  await device.post("/wallet", { ...fields, action: "cap", cap: "1.5" });
  assert.equal((await charge(world, "1")).success, false, "two of one and a half are spent");
  await device.post("/wallet", fields);
  assert.equal((await charge(world, "0.1")).reason, "authorization_required");
  await deliver(world);
  assert.deepEqual(world.subscriber.types(), [
    "authorization.revoked",
    "authorization.revoked",
  ]);
});

Deno.test("wallet: only its owner's device sees its balance", async () => {
  using world = await sharedWorld();
  const device = new Device(world);
  await allow(device);
  await pay(world, { amount: "7" });
  const { body } = await world.json("/v1/user/balance/topup?user=ada");
  assert.match((await device.get(pathOf(body.url))).html, /\$7\.00/);
  const stranger = new Device(world);
  const seen = (await stranger.get(pathOf(body.url))).html;
  assert.doesNotMatch(seen, /\$7\.00|Money added/);
  assert.match(seen, /Choose an amount.*\$5\.00/, "and may pay in");
  stranger.cookie = (device.cookie ?? "").replace(/.$/, (end) => (end === "A" ? "B" : "A"));
  assert.doesNotMatch((await stranger.get(pathOf(body.url))).html, /\$7\.00/, "forged");
  assert.match((await stranger.get("/wallet")).html, /no wallet on this device/);
  await world.clock.advance(400 * dayMs);
  assert.match((await device.get("/wallet")).html, /no wallet on this device/, "too long ago");
});

Deno.test("wallet: money comes only through the server's own Stripe account, once", async () => {
  using world = await sharedWorld();
  const body = { user: "ada", amount: "5" };
  const direct = await world.json("/v1/user/balance/deposit", { body });
  assert.deepEqual([direct.status, direct.body.error.code], [400, "mode_conflict"]);
  const device = new Device(world);
  await allow(device);
  const forged = await pay(world, { secret: "whsec_of_another" });
  assert.deepEqual([forged.answer.status, (await world.balance("ada")).balance], [400, "0"]);
  assert.equal((await tellServer(world, forged.event)).body.outcome, "booked");
  assert.equal((await tellServer(world, { ...forged.event, id: "evt_again" })).status, 200);
  assert.equal((await world.balance("ada")).balance, "10");
  // Paid while the permission was withdrawn: it is still that wallet's money.
  const paidLate = pay(world, { amount: "5" });
  await paidLate;
  await world.json("/v1/user/disconnect?user=ada", { method: "POST" });
  const late: Body = { ...(await paidLate).event, id: "evt_late" };
  assert.equal((await tellServer(world, late)).status, 200);
  assert.match((await device.get("/wallet")).html, /\$15\.00/);
  const unknown = { ...late, data: { object: { ...late.data.object, metadata: {} } } };
  assert.equal((await tellServer(world, unknown)).body.outcome, "ignored");
  const refunded = {
    id: "evt_refund",
    object: "event",
    type: "charge.refunded",
    data: { object: { payment_intent: late.data.object.payment_intent, amount_refunded: 500 } },
  };
  assert.equal((await tellServer(world, refunded)).body.outcome, "debited");
  assert.match((await device.get("/wallet")).html, /\$10\.00/);
});

Deno.test("wallet: payments are only refunded by Stripe, whatever the day's cap", async () => {
  using world = await sharedWorld();
  const device = new Device(world);
  await allow(device, { cap: "3" });
  const { session } = await pay(world, { amount: "20" });
  assert.equal((await charge(world, "2")).success, true);
  const [, deposit] = await world.activities("ada");
  const asked = { user: "ada", activityId: deposit?.id };
  const byProject = await world.json("/v1/user/refund", { body: asked });
  assert.deepEqual([byProject.status, byProject.body.error.code], [400, "mode_conflict"]);
  assert.equal((await world.balance("ada")).balance, "18");
  const paidBack = (id: string, total: number, before: number) =>
    tellServer(world, {
      id,
      object: "event",
      type: "charge.refunded",
      data: {
        object: { payment_intent: session.payment_intent, amount_refunded: total },
        previous_attributes: { amount_refunded: before },
      },
    });
  assert.equal((await paidBack("evt_half", 1000, 0)).body.outcome, "debited");
  assert.equal((await world.balance("ada")).balance, "8");
  assert.equal((await charge(world, "1")).success, true, "it is no use of the day's cap");
  assert.equal((await paidBack("evt_rest", 2000, 1000)).body.outcome, "debited");
  const [last] = await world.activities("ada");
  assert.deepEqual([last?.amount, last?.shortfall, last?.balanceAfter], ["7", "3", "0"]);
});

Deno.test("wallet: a project's mode is fixed, and it accepts no money of its own", async () => {
  using world = await sharedWorld();
  const make = (fields: Record<string, unknown>) =>
    world.json("/v1/admin/projects", {
      key: adminKey,
      body: { name: "x", mode: "shared", ...fields },
    });
  for (
    const [param, fields] of Object.entries({
      stripe: { stripe: { secretKey: "sk_test_123", webhookSecret: "whsec_123" } },
      topUpUrl: { topUpUrl: "https://pay.example.com/{user}" },
      "topUp.checkoutUrl": { topUp: { checkoutUrl: "https://pay.example.com/{user}" } },
      trialCredits: { trialCredits: "1" },
    })
  ) {
    const { status, body } = await make(fields);
    assert.deepEqual([status, body.error.code, body.error.param], [400, "mode_conflict", param]);
  }
  const path = `/v1/admin/projects/${world.projectId}`;
  const patch = (body: unknown) => world.json(path, { method: "PATCH", key: adminKey, body });
  assert.equal((await patch({ trialCredits: "1" })).status, 400);
  assert.equal((await patch({ mode: "default" })).status, 400);
  assert.equal((await patch({ lowBalance: "1" })).status, 200);
});

Deno.test("wallet: what a dead process held is released and charged in its own project's name", async () => {
  const store = createScriptedStore();
  using world = await createWorld({ env, project: { mode: "shared" }, wrapKv: store.wrap });
  const other = await world.makeProject({ name: "Painter", mode: "shared" });
  const device = new Device(world);
  await allow(device);
  await allow(device, { user: "bob", key: other.apiKey });
  await pay(world, { amount: "10" });
  world.upstream.reply(() => new Promise(() => {}));
  world.json(chatPath, { body: chatBody("ada") }).catch(() => {});
  await world.until(async () => (await world.balance("ada")).held !== "0");
  store.dead = true;
  using survivor = await createWorld({ shareWith: world, env });
  await world.clock.advance(60 * 60 * 1000);
  // The other project's operations leave it alone.
  assert.equal((await charge(survivor, "1", { user: "bob", key: other.apiKey })).success, true);
  await survivor.app.sweep();
  assert.equal((await survivor.balance("ada")).held, "0");
  const kinds = (await survivor.activities("ada")).map(({ kind }) => kind);
  assert.ok(kinds.includes("expired"), kinds.join());
});

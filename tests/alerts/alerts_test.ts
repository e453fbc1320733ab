import assert from "node:assert/strict";
import type { Mail } from "../../src/deps.ts";
import { confirmAddresses, nextCheck } from "../support/alerts.ts";
import { chat } from "../support/chat.ts";
import { ada, forgetWholly, rowsNaming } from "../support/forget.ts";
import { deliver, operate, subscribe } from "../support/webhooks.ts";
import { adminKey, type Body, createWorld, type World } from "../support/world.ts";

const everything = {
  emails: ["owner@my.app"],
  webhookFailing: { afterMinutes: 30 },
  paymentNotBooked: true,
  errorRate: { percent: 50, calls: 4 },
  userBalance: { below: "1" },
  totalBalance: { below: "10" },
  negativeMargin: true,
};

async function watchingWorld(options: Parameters<typeof createWorld>[0] = {}) {
  const mails: Mail[] = [];
  let fault: Error | null = null;
  const world = await createWorld({
    project: { alerts: { emails: everything.emails } },
    sendMail: async (mail) => {
      if (fault) throw fault;
      mails.push(mail);
      await Promise.resolve();
    },
    ...options,
  });
  await confirmAddresses(world, mails);
  await operate(world, "", { method: "PATCH", body: { alerts: everything } });
  return { world, mails, fail: (error: Error | null) => void (fault = error) };
}

async function alertsOf(world: World): Promise<Body[]> {
  return (await operate(world, "/alerts", { method: "GET" })).body.alerts;
}

async function firing(world: World): Promise<string[]> {
  return (await alertsOf(world)).filter(({ resolvedAt }) => resolvedAt === null)
    .map(({ rule, user, model }) => `${rule} ${user ?? model ?? ""}`.trim()).sort();
}

async function eventsOf(world: World): Promise<string[]> {
  await deliver(world);
  return world.subscriber.received.map(({ body: { event } }) => `${event.type} ${event.data.rule}`);
}

Deno.test("alerts: low balances fire once, as event and e-mail, and are resolved by a deposit", async () => {
  const { world, mails } = await watchingWorld();
  using _ = world;
  await subscribe(world, { events: ["alert.*"] });
  await world.deposit("ada", "0.5");
  await world.deposit("bob", "20");
  await nextCheck(world);
  assert.deepEqual(await firing(world), ["userBalance ada"]);
  assert.deepEqual(await eventsOf(world), ["alert.fired userBalance"]);
  assert.equal(mails.length, 1);
  const [mail] = mails;
  assert.deepEqual(mail?.to, ["owner@my.app"]);
  assert.match(mail?.subject ?? "", /low balance of a user$/);
  assert.match(mail?.text ?? "", /ada’s balance is \$0\.50\.[^]*\/users\/one\?user=ada/);
  await nextCheck(world);
  assert.equal((await eventsOf(world)).length, 1, "an alert fires once");
  await world.deposit("ada", "5");
  await nextCheck(world);
  assert.deepEqual(await firing(world), []);
  assert.deepEqual((await eventsOf(world)).slice(1), ["alert.resolved userBalance"]);
  assert.equal(mails.length, 1, "the next e-mail waits for a quarter of an hour");
  await nextCheck(world, 15);
  assert.match(mails[1]?.text ?? "", /^Resolved: Low balance of a user/);
  assert.equal((await alertsOf(world))[0]?.user, "ada");
  assert.equal((await operate(world, "/alerts", { method: "GET" })).body.mail.isConfigured, true);
});

Deno.test("alerts: the share of failed calls of a model, and the sum of all balances", async () => {
  const { world } = await watchingWorld();
  using _ = world;
  await world.deposit("ada", "5");
  world.upstream.reply(() => Response.json({ error: { message: "no" } }, { status: 500 }));
  for (let call = 0; call < 4; call++) await chat(world, { user: "ada" });
  await world.app.flush();
  await nextCheck(world);
  assert.deepEqual(await firing(world), ["errorRate test-model", "totalBalance"]);
  const [first] = (await alertsOf(world)).filter(({ rule }) => rule === "errorRate");
  assert.equal(first?.summary, "100 % of 4 calls of test-model failed.");
  await nextCheck(world, 130);
  assert.deepEqual(await firing(world), ["totalBalance"], "the hours have passed");
});

Deno.test("alerts: calls that fail because of the provider's account say so", async () => {
  const { world } = await watchingWorld();
  using _ = world;
  await world.deposit("ada", "5");
  const message = "Your credit balance is too low to access the Anthropic API.";
  world.upstream.reply(() => Response.json({ error: { message } }, { status: 400 }));
  for (let call = 0; call < 4; call++) await chat(world, { user: "ada" });
  await world.app.flush();
  await nextCheck(world);
  const [first] = (await alertsOf(world)).filter(({ rule }) => rule === "errorRate");
  assert.match(first?.summary ?? "", /^100 % .*The provider refuses the key or the account/);
  assert.ok(!first?.summary.includes("credit"));
});

Deno.test("alerts: a webhook that fails for long", async () => {
  const { world } = await watchingWorld();
  using _ = world;
  const { id } = await subscribe(world, { events: ["balance.*"] });
  world.subscriber.reply(() => ({ status: 500 }));
  await world.deposit("ada", "50");
  await deliver(world);
  await nextCheck(world);
  assert.deepEqual(await firing(world), []);
  await nextCheck(world, 30);
  assert.deepEqual(await firing(world), ["webhookFailing"]);
  assert.equal((await alertsOf(world))[0]?.subscriptionId, id);
});

Deno.test("alerts: an e-mail that fails is sent again later, with the same id", async () => {
  const { world, mails, fail } = await watchingWorld();
  using _ = world;
  await world.deposit("ada", "0.5");
  fail(new Error("421 try later"));
  await nextCheck(world);
  const { body } = await operate(world, "/alerts", { method: "GET" });
  assert.deepEqual([body.mail.sentAt, body.mail.error], [null, "421 try later"]);
  fail(null);
  await nextCheck(world, 2);
  assert.equal(mails.length, 1);
  assert.equal((await operate(world, "/alerts", { method: "GET" })).body.mail.error, null);
});

Deno.test("alerts: what is switched off is resolved, and an erased user is named nowhere", async () => {
  const { world } = await watchingWorld();
  using _ = world;
  await world.deposit("ada lovelace", "0.5");
  await nextCheck(world);
  assert.equal((await firing(world)).length, 2);
  await forgetWholly(world, { forfeit: true }, "ada lovelace");
  assert.deepEqual(await rowsNaming(world, "ada lovelace"), []);
  await nextCheck(world);
  assert.deepEqual(await firing(world), ["totalBalance"]);
  await operate(world, "", { method: "PATCH", body: { alerts: { totalBalance: null } } });
  await nextCheck(world);
  assert.deepEqual(await firing(world), []);
});

Deno.test("alerts: a test e-mail needs an address and a server, and is limited to one a minute", async () => {
  const { world, mails, fail } = await watchingWorld();
  using _ = world;
  const test = () => operate(world, "/alerts/test-email", { body: {} });
  fail(new Error("535 authentication failed"));
  const refused = await test();
  assert.deepEqual([refused.status, refused.body.error.code], [502, "mail_failed"]);
  assert.match(refused.body.error.message, /535 authentication failed/);
  fail(null);
  assert.equal((await test()).body.error.code, "mail_too_often");
  await world.clock.advance(60_001);
  assert.deepEqual((await test()).body, { sent: true });
  assert.deepEqual(mails[0]?.to, ["owner@my.app"]);
  await operate(world, "", { method: "PATCH", body: { alerts: { emails: [] } } });
  assert.equal((await test()).body.error.param, "alerts.emails");
  using silent = await createWorld({ project: { alerts: everything } });
  const unset = await operate(silent, "/alerts/test-email", { body: {} });
  assert.equal(unset.body.error.code, "mail_not_configured");
});

Deno.test("alerts: settings are validated field by field", async () => {
  using world = await createWorld();
  for (
    const [alerts, param] of [
      [{ emails: ["nobody"] }, "alerts.emails.0"],
      [{ errorRate: { percent: 0 } }, "alerts.errorRate.percent"],
      [{ userBalance: { below: "0" } }, "alerts.userBalance.below"],
      [{ webhookFailing: { afterMinutes: 0 } }, "alerts.webhookFailing.afterMinutes"],
      [{ other: true }, "alerts.other"],
    ] as const
  ) {
    const path = `/v1/admin/projects/${world.projectId}`;
    const { status, body } = await world.json(path, {
      method: "PATCH",
      key: adminKey,
      body: { alerts },
    });
    assert.deepEqual([status, body.error.param], [400, param]);
  }
});

Deno.test("alerts: a resolved one goes after 30 days, though nothing else fires", async () => {
  const { world } = await watchingWorld();
  using _ = world;
  await world.deposit("ada", "0.5");
  await nextCheck(world);
  await world.deposit("ada", "20");
  await nextCheck(world);
  const stored = async () =>
    (await rowsNaming(world, "ada")).filter((row) => /^\["alerts"/.test(row));
  assert.equal((await stored()).length, 1);
  await world.clock.advance(29 * 24 * 3_600_000);
  await nextCheck(world);
  assert.equal((await stored()).length, 1);
  await world.clock.advance(2 * 24 * 3_600_000);
  await nextCheck(world);
  assert.deepEqual(await stored(), []);
});

Deno.test("alerts: none is resolved in the name of a user who is being erased", async () => {
  let isStopped = false;
  const { world } = await watchingWorld({
    wrapKv: (kv) => ({
      ...kv,
      async list(options) {
        // The erasure comes no further than the log of requests.
        if (isStopped && options.prefix[0] === "requests") throw new TypeError("no connection");
        return await kv.list(options);
      },
    }),
  });
  using _ = world;
  await subscribe(world, { events: ["alert.*"] });
  await world.deposit(ada, "0.5");
  await nextCheck(world);
  assert.ok((await firing(world)).includes(`userBalance ${ada}`));
  isStopped = true;
  const path = `/v1/admin/projects/${world.projectId}/users/${encodeURIComponent(ada)}/forget`;
  const { status } = await world.json(path, { key: adminKey, body: { forfeit: true } });
  assert.equal(status, 503);
  await assert.rejects(nextCheck(world));
  const events = await eventsOf(world);
  assert.deepEqual(events.filter((event) => event.startsWith("alert.resolved")), []);
  isStopped = false;
  await forgetWholly(world, { forfeit: true });
  assert.deepEqual(await rowsNaming(world, ada), []);
});

import assert from "node:assert/strict";
import { hiddenFields, signedIn, textOf } from "../support/console.ts";
import { assertGrowth } from "../support/growth.ts";
import { createGate, createScriptedStore } from "../support/store.ts";
import { deliver, logs, operate, subscribe } from "../support/webhooks.ts";
import { adminKey, type Body, createWorld, type World } from "../support/world.ts";

async function actions(world: World): Promise<Body[]> {
  const path = `/v1/admin/projects/${world.projectId}/audit`;
  return (await world.json(path, { key: adminKey })).body.actions;
}

async function read(world: World, id: string): Promise<Body> {
  return (await world.json(`/v1/webhooks/subscriptions/${id}`)).body.subscription;
}

Deno.test("console: a webhook is created with its secret shown once, and a second click creates no other", async () => {
  using world = await createWorld();
  const owner = await signedIn(world);
  const form = {
    ...hiddenFields((await owner.get("webhooks")).html, "/webhooks"),
    url: "https://hooks.example.com/farebox",
    events: "balance.* usage.*, archived",
    description: "Books",
    customHeaders: "X-Team: books\nX-Key: a: b",
  };
  const made = await owner.post("webhooks", form);
  const [secret = ""] = /whsec_[A-Za-z0-9+/=]+/.exec(made.html) ?? [];
  world.seenSecrets.add(secret);
  assert.ok(secret);
  assert.match(textOf(made.html), /shown only once and is stored encrypted, to sign deliveries/);
  const [subscription, ...others] = (await world.json("/v1/webhooks/subscriptions")).body
    .subscriptions;
  assert.deepEqual(others, []);
  assert.deepEqual(subscription.events, ["balance.*", "usage.*", "archived"]);
  assert.deepEqual(subscription.customHeaders, { "X-Team": "books", "X-Key": "a: b" });
  const page = await owner.get(`webhooks/${subscription.id}`);
  assert.doesNotMatch(page.html, new RegExp(secret.slice(0, 20)));
  assert.ok((await owner.post("webhooks", form)).html.includes(secret));
  const bad: [fields: Record<string, string>, says: RegExp][] = [
    [{ url: "http://hooks.example.com" }, /‘URL’ must start with https/],
    [{ url: "https://10.0.0.1/" }, /‘URL’ must contain a host name/],
    [{ events: "balance.deposit.craeted" }, /‘Events’ contains the unknown event .* closest/],
    [{ customHeaders: "none" }, /on a line of its own/],
    [{ customHeaders: "Host: x" }, /reserved/],
    [{ customHeaders: "X-Team: a\nX-Team: b" }, /must not contain the same header twice/],
    [{ customHeaders: "X-Team: a\nx-team: b" }, /must not contain the same header twice/],
  ];
  for (const [fields, says] of bad) {
    const hidden = hiddenFields((await owner.get("webhooks")).html, "/webhooks");
    const answer = await owner.post("webhooks", { ...form, ...hidden, ...fields });
    assert.equal(answer.status, 400);
    assert.match(textOf(answer.html), says);
  }
});

Deno.test("console: a form submitted twice at once, while the store is busy, counts once", async () => {
  const gate = createGate();
  const store = createScriptedStore();
  using world = await createWorld({ wrapKv: store.wrap });
  const owner = await signedIn(world);
  const form = {
    ...hiddenFields((await owner.get("webhooks")).html, "/webhooks"),
    url: "https://hooks.example.com/farebox",
    events: "*",
  };
  store.writes.length = 0;
  store.atomic = async (write, real) => {
    await gate.opened;
    return await real(write);
  };
  // Deliveries that arrive while this one is under way are sent together.
  const deposit = world.deposit("ada", "1");
  await settled(() => store.writes.length === 1);
  const answers = [owner.post("webhooks", form), owner.post("webhooks", form)];
  await settled(() => false);
  gate.open();
  await deposit;
  const [one, other] = await Promise.all(answers);
  const [made, same] = [one, other].map((answer) => /whsec_[\w+/=]+/.exec(answer?.html ?? "")?.[0]);
  world.seenSecrets.add(made ?? assert.fail("one of them makes a webhook"));
  assert.equal(made, same, "and both show its secret");
  const { body } = await world.json("/v1/webhooks/subscriptions");
  assert.equal(body.subscriptions.length, 1);
});

/** Until the condition holds, for at most a few turns. */
async function settled(done: () => boolean): Promise<void> {
  for (let turns = 0; turns < 50 && !done(); turns++) {
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

Deno.test("console: a line of many spaces for a webhook's header is refused in time that grows with it", async () => {
  using world = await createWorld();
  const owner = await signedIn(world);
  const hidden = hiddenFields((await owner.get("webhooks")).html, "/webhooks");
  await assertGrowth((spaces) => {
    const form = {
      ...hidden,
      url: "https://hooks.example.com/farebox",
      events: "*",
      customHeaders: `a: b\n${" ".repeat(spaces)}x`,
    };
    return async () => {
      assert.match(textOf((await owner.post("webhooks", form)).html), /on a line of its own/);
    };
  }, { size: 16_000 });
});

Deno.test("console: a test event goes only to one webhook, marked, whatever it listens to", async () => {
  using world = await createWorld();
  const { id } = await subscribe(world, { url: "https://a.example.com/", events: ["usage.*"] });
  await subscribe(world, { url: "https://b.example.com/", events: ["*"] });
  const owner = await signedIn(world);
  const form = hiddenFields((await owner.get(`webhooks/${id}`)).html, "/test");
  assert.match(
    textOf((await owner.submit(`webhooks/${id}/test`, form)).html),
    /test event was sent/,
  );
  await owner.submit(`webhooks/${id}/test`, form);
  await deliver(world);
  const [sent, ...others] = world.subscriber.received;
  assert.deepEqual(others, []);
  assert.equal(sent?.url, "https://a.example.com/");
  const { event } = sent?.body ?? assert.fail();
  assert.deepEqual([event.type, event.metadata, event.trigger.source], [
    "updated",
    { test: true },
    "console",
  ]);
  assert.deepEqual(event.data.changedFields, ["pricing.models"], "an example");
  assert.match(sent?.headers["x-service-signature"] ?? "", /^[0-9a-f]{64}$/);
  const [row] = await actions(world);
  assert.deepEqual([row?.action, row?.target], ["webhook.tested", id]);
  const page = textOf((await owner.get(`webhooks/${id}`)).html);
  assert.match(page, /updated Delivered 1 200/);
});

Deno.test("console: a webhook is deactivated after a confirmation, and activated again", async () => {
  using world = await createWorld();
  const { id } = await subscribe(world);
  const owner = await signedIn(world);
  assert.match(textOf((await owner.get(`webhooks/${id}/deactivate`)).html), /Nothing is sent/);
  assert.equal((await read(world, id)).isActive, true);
  const off = await owner.submit(`webhooks/${id}/deactivate`);
  assert.match(textOf(off.html), /is deactivated.*State inactive/);
  assert.equal((await read(world, id)).isActive, false);
  const form = hiddenFields((await owner.get(`webhooks/${id}`)).html, "/enable");
  const on = await owner.submit(`webhooks/${id}/enable`, form);
  assert.match(textOf(on.html), /active again.*State active/);
  const test = await owner.get(`webhooks/${id}`);
  await owner.submit(`webhooks/${id}/deactivate`);
  const tested = await owner.post(`webhooks/${id}/test`, hiddenFields(test.html, "/test"));
  assert.equal(tested.status, 400);
  assert.deepEqual((await actions(world)).slice(0, 3).map(({ action }) => action), [
    "webhook.deactivated",
    "webhook.reenabled",
    "webhook.deactivated",
  ]);
});

Deno.test("console: a secret is rotated after a confirmation; both sign for the requested hours", async () => {
  using world = await createWorld();
  const { id, secret: old } = await subscribe(world);
  const owner = await signedIn(world);
  const form = hiddenFields((await owner.get(`webhooks/${id}/rotate`)).html, "/rotate");
  const wrong = await owner.post(`webhooks/${id}/rotate`, { ...form, hours: "999" });
  assert.equal(wrong.status, 400);
  assert.match(wrong.html, /<input[^>]*name="hours"[^>]*value="999"/);
  const made = await owner.post(`webhooks/${id}/rotate`, { ...form, hours: "1" });
  const [secret = ""] = /whsec_[A-Za-z0-9+/=]+/.exec(made.html) ?? [];
  world.seenSecrets.add(secret);
  assert.ok(secret && secret !== old);
  assert.match(textOf(made.html), /shown only once and is stored encrypted, to sign deliveries/);
  const again = await owner.post(`webhooks/${id}/rotate`, { ...form, hours: "1" });
  assert.ok(again.html.includes(secret));
  await world.deposit("ada", "1");
  await deliver(world);
  const signatures = () => world.subscriber.received.at(-1)?.headers["webhook-signature"] ?? "";
  assert.equal(signatures().split(" ").length, 2);
  await world.clock.advance(61 * 60 * 1000);
  await world.deposit("ada", "1");
  await deliver(world);
  assert.equal(signatures().split(" ").length, 1);
  const [row] = await actions(world);
  assert.deepEqual([row?.action, row?.detail.secretSuffix], ["webhook.rotated", secret.slice(-6)]);
});

Deno.test("console: a delivery shows each attempt and its event, and can be redelivered", async () => {
  using world = await createWorld();
  const { id } = await subscribe(world);
  world.subscriber.reply(() => ({ status: 503, bodyHead: "<b>busy</b>" }));
  await world.deposit("ada", "1");
  await deliver(world);
  world.subscriber.reply(() => ({ status: 410 }));
  await world.clock.advance(60_000);
  await deliver(world);
  const [failed] = await logs(world);
  assert.equal(failed?.status, "error");
  const owner = await signedIn(world);
  const page = await owner.get(`deliveries/${failed?.id}`);
  const text = textOf(page.html);
  assert.match(text, /Attempts 2 .*410 \d+ status 410 .*503 \d+ status 503/);
  assert.match(text, /"type": "balance\.deposit\.created"/);
  assert.doesNotMatch(page.html, /<b>busy/);
  const gate = createGate();
  world.subscriber.reply(() => gate.opened.then(() => ({})));
  const path = `deliveries/${failed?.id}`;
  const form = hiddenFields(page.html, `/${path}`);
  const other = hiddenFields((await owner.get(path)).html, `/${path}`);
  const again = await owner.submit(path, form);
  assert.match(textOf(again.html), /being retried/);
  assert.match(textOf((await owner.submit(path, other)).html), /being retried/, "of two pages");
  gate.open();
  await deliver(world);
  assert.match(textOf((await owner.get(path)).html), /Status Delivered/);
  const sent = world.subscriber.received.length;
  assert.match(
    textOf((await owner.submit(path, form)).html),
    /already submitted/,
    "by a double click",
  );
  await deliver(world);
  assert.equal(world.subscriber.received.length, sent);
  const [row, before] = await actions(world);
  assert.deepEqual([row?.action, row?.target], ["delivery.redelivered", failed?.id]);
  assert.notEqual(before?.action, "delivery.redelivered");
  const foreign = await world.makeProject();
  const stranger = await signedIn(world, foreign.ownerKey);
  const elsewhere = `/console/projects/${foreign.projectId}`;
  assert.equal((await stranger.get(`${elsewhere}/deliveries/${failed?.id}`)).status, 404);
  assert.equal((await stranger.get(`${elsewhere}/webhooks/${id}`)).status, 404);
});

Deno.test("console: a delivery shows the numbers of its event as they were sent", async () => {
  using world = await createWorld();
  await subscribe(world, { events: ["balance.deposit.created"] });
  const numbers = { order: "12345678901234567890", huge: "1e400", tiny: "0.1234567890123456789" };
  const metadata = Object.entries(numbers).map(([name, text]) => `"${name}":${text}`).join();
  const raw = `{"user":"ada","amount":"5","metadata":{${metadata}}}`;
  const headers = { "content-type": "application/json" };
  assert.equal((await world.json("/v1/user/balance/deposit", { raw, headers })).status, 200);
  await deliver(world);
  const [log] = await logs(world);
  const owner = await signedIn(world);
  const delivery = textOf((await owner.get(`deliveries/${log?.id}`)).html);
  const user = textOf((await owner.get("users/one?user=ada")).html);
  for (const [name, text] of Object.entries(numbers)) {
    assert.ok(delivery.includes(`"${name}": ${text}`), delivery);
    assert.ok(user.includes(`"${name}":${text}`), user);
  }
});

Deno.test("console: nothing is sent to an inactive webhook until it is activated again", async () => {
  using world = await createWorld();
  const { id } = await subscribe(world);
  world.subscriber.reply(() => ({ status: 410 }));
  await world.deposit("ada", "1");
  await deliver(world);
  const [failed] = await logs(world, "&status=error");
  const owner = await signedIn(world);
  const path = `deliveries/${failed?.id}`;
  const [one, all] = [await owner.get(path), await owner.get(`webhooks/${id}/redeliver`)];
  await owner.submit(`webhooks/${id}/deactivate`);
  const webhook = await owner.get(`webhooks/${id}`);
  assert.match(textOf(webhook.html), /Activate again.*State inactive nothing is sent/);
  assert.doesNotMatch(textOf(webhook.html), /deliveries are sent|Redeliver/);
  const delivery = await owner.get(path);
  assert.match(textOf(delivery.html), /is inactive\. Nothing is sent\. Activate the webhook again/);
  assert.doesNotMatch(textOf(delivery.html), /Redeliver/);
  const since = { ...hiddenFields(all.html, "/redeliver"), since: "2025-12-31T00:00" };
  for (
    const told of [
      await owner.submit(path, hiddenFields(one.html, `/${path}`)),
      await owner.submit(`webhooks/${id}/redeliver`, since),
      await owner.get((await owner.get(`webhooks/${id}/redeliver`)).location ?? ""),
    ]
  ) {
    assert.match(textOf(told.html), /inactive, so nothing was sent/);
  }
  assert.equal((await logs(world, "&status=error")).length, 1);
  assert.equal((await actions(world))[0]?.action, "webhook.deactivated");
  await owner.submit(`webhooks/${id}/enable`);
  const again = hiddenFields((await owner.get(path)).html, `/${path}`);
  assert.match(textOf((await owner.submit(path, again)).html), /being retried/);
});

Deno.test("console: deliveries are listed by status, page by page, and all failed ones can be redelivered", async () => {
  using world = await createWorld();
  const { id } = await subscribe(world, { events: ["balance.deposit.created"] });
  world.subscriber.reply(() => ({ status: 410 }));
  const owner = await signedIn(world);
  assert.match(textOf((await owner.get("deliveries")).html), /No deliveries yet/);
  for (let n = 0; n < 30; n++) await world.deposit("ada", "1");
  await deliver(world);
  world.subscriber.reply(() => ({}));
  const failed = await owner.get(`webhooks/${id}?status=error`);
  assert.equal(failed.html.match(/data-label="Response">410</g)?.length, 25);
  const [, next = ""] = /href="([^"]*cursor=[^"]*)" rel="next"/.exec(failed.html) ?? [];
  const second = await owner.get(next.replaceAll("&amp;", "&"));
  assert.equal(second.html.match(/data-label="Response">410</g)?.length, 5);
  assert.match(
    textOf((await owner.get(`deliveries?status=success`)).html),
    /No deliveries with this status/,
  );
  assert.match(textOf((await owner.get("webhooks")).html), /held back|failing/);
  const form = hiddenFields((await owner.get(`webhooks/${id}/redeliver`)).html, "/redeliver");
  const wrong = await owner.post(`webhooks/${id}/redeliver`, { ...form, since: "soon" });
  assert.match(wrong.html, /<input[^>]*name="since"[^>]*value="soon"/);
  assert.equal(wrong.status, 400);
  const since = { ...form, since: "2025-12-31T00:00" };
  const asked = await owner.submit(`webhooks/${id}/redeliver`, since);
  assert.match(textOf(asked.html), /deliveries are pending again/);
  assert.match(
    (await owner.post(`webhooks/${id}/redeliver`, since)).location ?? "",
    /already-sent/,
  );
  await world.app.sweep();
  await world.clock.advance(11 * 60_000);
  await deliver(world);
  const [row] = await actions(world);
  assert.deepEqual([row?.action, row?.target], ["webhook.redelivered", id]);
  const job = await operate(world, `/redeliveries/${row?.detail.jobId}`, { method: "GET" });
  assert.equal(job.body.redelivery.redelivered, 30);
});

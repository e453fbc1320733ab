import assert from "node:assert/strict";
import { holdsMoney } from "../../src/ledger/hold_sweep.ts";
import { chatBody, chatPath } from "../support/books.ts";
import { textOf } from "../support/console.ts";
import { createScriptedStore } from "../support/store.ts";
import { completion, fedStream, readEvents, usage, usageChunk } from "../support/upstream.ts";
import { allow, charge, Device, env, linkFor, pay, sharedWorld } from "../support/wallets.ts";
import { deliver, subscribe } from "../support/webhooks.ts";
import { adminKey, createWorld } from "../support/world.ts";
import { queueOf } from "../support/holders.ts";

Deno.test("wallet: every authorization is shown and can be ended, however many there are", async () => {
  using world = await sharedWorld();
  const [device, other] = [new Device(world), new Device(world)];
  const users = Array.from({ length: 103 }, (_, n) => `u${n + 100}`);
  for (const user of users) await allow(device, { user });
  // Connections that another wallet has taken over use no place.
  await world.clock.advance(1);
  for (const user of users.slice(0, 2)) {
    await world.json(`/v1/user/disconnect?user=${user}`, { method: "POST" });
    await world.clock.advance(1);
    await allow(other, { user });
  }
  const { html } = await device.get("/wallet");
  const shown = [...html.matchAll(/name="user" value="([^"]+)"/g)].map(([, user]) => user);
  assert.deepEqual(shown, users.slice(2));
  const last = { action: "revoke", projectId: world.projectId, user: users.at(-1) ?? "" };
  assert.equal((await device.post("/wallet", last)).status, 303);
  assert.equal((await charge(world, "1", { user: last.user })).reason, "authorization_required");
});

Deno.test("wallet: a cap can be changed while its user is charged rapidly", async () => {
  const store = createScriptedStore();
  using world = await createWorld({ env, project: { mode: "shared" }, wrapKv: store.wrap });
  const device = new Device(world);
  await allow(device, { cap: "10" });
  let until: number | null = null;
  store.atomic = async (write, real) => {
    const isDecision = write.sets.some(({ key }) => key[0] === "authorization");
    if (!isDecision) return await real(write);
    // Until then, a charge is written before each of its writes.
    until ??= world.clock.now() + 20;
    return world.clock.now() < until ? null : await real(write);
  };
  const form = { action: "cap", projectId: world.projectId, user: "ada", cap: "20" };
  let answered = false;
  const changed = device.post("/wallet", form).finally(() => (answered = true));
  await world.until(() => answered, 5);
  assert.equal((await changed).status, 303);
  assert.match((await device.get("/wallet")).html, /of \$20\.00 today/);
});

Deno.test("wallet: an authorization request names who made the request", async () => {
  using world = await sharedWorld();
  await subscribe(world, { events: ["authorization.requested"] });
  await charge(world, "1");
  await world.json("/v1/user/connect?user=ada");
  await world.json("/v1/user/balance/topup?user=ada");
  await world.json(chatPath, { body: chatBody("ada") });
  await deliver(world);
  const { body: { keys: [key] } } = await world.json(
    `/v1/admin/projects/${world.projectId}/keys`,
    { key: adminKey },
  );
  const triggers = world.subscriber.received.map(({ body }) => body.event.trigger);
  const byKey = { source: "api", actorType: "paywall-owner", actorId: key.id };
  const byUser = { source: "proxy", actorType: "end-user", actorId: "ada" };
  const told = (trigger: unknown) => JSON.stringify(trigger);
  assert.deepEqual(triggers.map(told).sort(), [byKey, byKey, byKey, byUser].map(told).sort());
});

Deno.test("wallet: a used link tells other devices that it was authorized, and for whom", async () => {
  using world = await sharedWorld();
  const [device, stranger, other] = [new Device(world), new Device(world), new Device(world)];
  await allow(other, { user: "bob" });
  const link = await linkFor(world);
  await world.clock.advance(1);
  await device.post(link, { decision: "approve", cap: "10" });
  assert.match((await device.get(link)).html, /Helper may charge your wallet/);
  for (const each of [stranger, other]) {
    const text = textOf((await each.get(link)).html);
    assert.match(
      text,
      /This link has been used Helper may charge the wallet of the device that allowed/,
    );
    assert.doesNotMatch(text, /Not allowed|\$/);
  }
  await world.clock.advance(1);
  await device.post("/wallet", { action: "revoke", projectId: world.projectId, user: "ada" });
  assert.equal((await stranger.get(link)).status, 404);
});

Deno.test("wallet: what each user holds of it is indexed, for the sweep and for erasures", async () => {
  using world = await sharedWorld();
  const device = new Device(world);
  const users = ["ada", "bob"];
  for (const user of users) await allow(device, { user });
  await pay(world);
  const streams = users.map(() => fedStream());
  for (const stream of streams) world.upstream.once(() => stream.response);
  const answers = [];
  for (const user of users) {
    const body = chatBody(user, { stream: true });
    answers.push(readEvents(await world.call(chatPath, { body })));
  }
  for (const user of users) {
    assert.equal(
      await holdsMoney({ kv: world.deps.kv, queue: queueOf(world) }, {
        projectId: world.projectId,
        user,
      }),
      true,
      user,
    );
  }
  for (const stream of streams) {
    stream.send(usageChunk(usage(8, 1)));
    stream.send("[DONE]");
    stream.end();
  }
  await Promise.all(answers);
});

Deno.test("wallet: a cap set while another process records a charge loses nothing of it", async () => {
  const store = createScriptedStore();
  using world = await createWorld({ env, project: { mode: "shared" }, wrapKv: store.wrap });
  using other = await createWorld({ env, shareWith: world });
  const device = new Device(world);
  await allow(device);
  await pay(world, { amount: "20" });
  store.atomic = async (write, real) => {
    store.atomic = null;
    assert.equal((await charge(other, "4")).success, true);
    return await real(write);
  };
  const cap = { action: "cap", projectId: world.projectId, user: "ada", cap: "5" };
  assert.equal((await device.post("/wallet", cap)).status, 303);
  assert.equal((await charge(world, "2")).success, false, "1 is left of the day");
  assert.equal((await charge(world, "1")).success, true);
});

Deno.test("wallet: an authorization that ends during a request authorizes nothing more", async () => {
  const store = createScriptedStore();
  using world = await createWorld({ env, project: { mode: "shared" }, wrapKv: store.wrap });
  using other = await createWorld({ env, shareWith: world });
  const device = new Device(world);
  await allow(device);
  await pay(world, { amount: "20" });
  const disconnect = () => other.json("/v1/user/disconnect?user=ada", { method: "POST" });
  for (
    const ask of [
      async () => (await charge(world, "2")).reason,
      async () => (await world.json(chatPath, { body: chatBody("ada") })).body.paywall?.reason,
    ]
  ) {
    store.get = async (key, real) => {
      const row = await real(key);
      if (key[0] !== "authorization") return row;
      store.get = null;
      await disconnect();
      return row;
    };
    assert.equal(await ask(), "authorization_required");
    await world.clock.advance(1_000);
    await allow(device);
  }
  assert.match((await device.get("/wallet")).html, /\$20\.00/);
});

Deno.test("wallet: its page shows what each app may take and took, of today and newest first", async () => {
  using world = await sharedWorld();
  const device = new Device(world);
  await allow(device);
  const other = await world.makeProject({ name: "Scribe", mode: "shared" });
  await allow(device, { user: "eve", key: other.apiKey });
  await pay(world, { amount: "50" });
  const shown = async () => {
    const text = textOf((await device.get("/wallet")).html).replaceAll(/\s+/g, " ");
    const moves = [...text.matchAll(/(?:Money added|Charge) Today ?(\+?-?) ?(-?\$[\d.]+)/g)]
      .map(([, sign, amount]) => `${sign}${amount}`);
    return { text, moves };
  };
  const took = ["1", "2", "0.5"];
  for (const amount of took) {
    await world.clock.advance(1);
    const [user, key] = amount === "2" ? ["eve", other.apiKey] : ["ada", world.apiKey];
    assert.equal((await charge(world, amount, { user, key })).success, true);
  }
  const { text, moves } = await shown();
  assert.deepEqual(moves, ["-$0.50", "-$2.00", "-$1.00", "+$50.00"]);
  assert.match(text, /As ada · \$1\.50 of \$10\.00 today/);
  assert.match(text, /As eve · \$2\.00 of \$10\.00 today/);
  await world.clock.advance(24 * 60 * 60 * 1000);
  await world.json("/v1/user/disconnect", { body: { user: "ada" } });
  const later = (await shown()).text;
  assert.match(later, /As ada · No longer allowed/);
  assert.match(later, /As eve · \$0\.00 of \$10\.00 today/);
  for (let n = 0; n < 20; n++) await charge(world, "0.1", { user: "eve", key: other.apiKey });
  assert.deepEqual((await shown()).moves, Array(20).fill("-$0.10"));
});

Deno.test("wallet: no other site makes a browser sign in, or add a passkey", async () => {
  using world = await sharedWorld();
  const device = new Device(world);
  await allow(device);
  const ask = async (path: string, site: string) => {
    const headers = { cookie: device.cookie ?? "", "sec-fetch-site": site };
    return (await world.json(path, { key: null, body: {}, headers })).status;
  };
  for (const room of ["/wallet/passkeys", "/wallet/sign-in"]) {
    assert.equal(await ask(`${room}/options`, "same-origin"), 200);
    for (const site of ["cross-site", "same-site"]) {
      assert.equal(await ask(room, site), 403, room);
      assert.equal(await ask(`${room}/options`, site), 403, room);
    }
  }
});

Deno.test("wallet: a new authorization of a user does not reset the project's own limits", async () => {
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

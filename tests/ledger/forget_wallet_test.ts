import assert from "node:assert/strict";
import {
  allConnectionsPrefix,
  authorizationsPrefix,
  forgetJobsPrefix,
  holdingPrefix,
} from "../../src/store/keys.ts";
import { chatBody, chatPath } from "../support/books.ts";
import { ada, forget, forgetWholly, rowsAsTextOf, rowsNaming } from "../support/forget.ts";
import { createGate, createScriptedStore } from "../support/store.ts";
import { completion } from "../support/upstream.ts";
import {
  allow,
  charge,
  Device,
  env,
  linkFor,
  pay,
  sharedWorld,
  tellServer,
} from "../support/wallets.ts";
import { keysUnder, move, verify } from "../support/verify.ts";
import { deliver, operate, subscribe } from "../support/webhooks.ts";
import { adminKey, type Body, createWorld, type World } from "../support/world.ts";

const disconnect = (world: World, user = ada) =>
  world.json(`/v1/user/disconnect?user=${user}`, { method: "POST" });

async function exportedEntries(world: World): Promise<Body[]> {
  const path = `/v1/admin/projects/${world.projectId}/export?what=entries`;
  const lines = (await (await world.call(path, { key: adminKey })).text()).trim().split("\n");
  return lines.map((line) => JSON.parse(line));
}

/** A wallet that has paid for two projects, and for two users of one of them. */
async function makeShared() {
  const world = await sharedWorld();
  await subscribe(world);
  await world.json(chatPath, { body: chatBody(ada) });
  const device = new Device(world);
  await allow(device, { user: ada });
  await pay(world, { user: ada, amount: "10" });
  await charge(world, "1", { user: ada });
  await allow(device, { user: "bob" });
  await charge(world, "2", { user: "bob" });
  const other = await world.makeProject({ name: "Other", mode: "shared" });
  await allow(device, { user: "someone", key: other.apiKey });
  await charge(world, "3", { user: "someone", key: other.apiKey });
  await charge(world, "0.5", { user: ada });
  await deliver(world);
  return { world, device };
}

Deno.test("forget: an authorization to charge a wallet has to be ended first", async () => {
  using world = (await makeShared()).world;
  const { status, body } = await forget(world);
  assert.deepEqual([status, body.error.code], [400, "user_connected"]);
});

Deno.test("forget: in a wallet only the project's own user is erased", async () => {
  const { world, device } = await makeShared();
  using _ = world;
  await disconnect(world);
  await deliver(world);
  const others = await rowsAsTextOf(world, "someone");
  const wallet = (await device.get("/wallet")).html;
  assert.ok((await rowsNaming(world, ada)).length > 10);
  const { erased, pseudonym } = await forgetWholly(world);
  assert.equal(erased.walletEntries, 3);
  assert.deepEqual(await rowsNaming(world, ada), []);
  assert.equal(await rowsAsTextOf(world, "someone"), others);
  assert.equal((await rowsNaming(world, pseudonym)).length > 3, true);
  assert.equal((await keysUnder(world, allConnectionsPrefix)).length, 3);
  const decided = await keysUnder(world, authorizationsPrefix(world.projectId));
  assert.deepEqual(decided.map((key) => key[2]), ["bob", pseudonym]);
  const moneyOf = (html: string) => html.match(/\$[\d.]+/g);
  assert.deepEqual(moneyOf((await device.get("/wallet")).html), moneyOf(wallet));
  assert.equal((await charge(world, "1", { user: "bob" })).success, true);
  await world.clock.advance(61_000);
  assert.deepEqual((await verify(world)).faults, []);
});

Deno.test("forget: an erased user may be connected again, as someone new", async () => {
  const { world, device } = await makeShared();
  using _ = world;
  await disconnect(world);
  await deliver(world);
  await forgetWholly(world);
  assert.equal((await charge(world, "1", { user: ada })).reason, "authorization_required");
  await world.clock.advance(1);
  await allow(device, { user: ada });
  assert.equal((await charge(world, "1", { user: ada })).success, true);
  const activities = await world.activities(ada);
  assert.deepEqual(activities.map(({ delta }) => delta), ["-1"]);
  await world.clock.advance(61_000);
  assert.deepEqual((await verify(world)).faults, []);
});

Deno.test("forget: what was spent from a wallet is exported and refunded under the pseudonym", async () => {
  using world = await sharedWorld();
  const [first, second] = [new Device(world), new Device(world)];
  const charged: string[] = [];
  for (const device of [first, second]) {
    await allow(device, { user: ada });
    await pay(world, { user: ada, amount: "10" });
    charged.push((await charge(world, "3", { user: ada })).activityId);
    await disconnect(world);
    await world.clock.advance(1);
  }
  const { pseudonym } = await forgetWholly(world);
  const entries = await exportedEntries(world);
  assert.deepEqual(entries.map(({ user }) => user), Array(4).fill(pseudonym));
  assert.deepEqual(entries.map(({ delta }) => delta), ["10", "-3", "10", "-3"]);
  for (const activityId of charged) {
    const foreign = await operate(world, "/users/bob/refund", { body: { activityId } });
    assert.equal(foreign.status, 404);
    const { status } = await operate(world, `/users/${pseudonym}/refund`, { body: { activityId } });
    assert.equal(status, 200);
  }
  assert.match((await first.get("/wallet")).html, /\$10\.00/);
  assert.match((await second.get("/wallet")).html, /\$10\.00/);
  assert.deepEqual(await rowsNaming(world, ada), []);
  await world.clock.advance(61_000);
  assert.deepEqual((await verify(world)).faults, []);
});

Deno.test("forget: keys that name the user stay distinct, also where two wallets paid", async () => {
  using world = await sharedWorld();
  for (const key of [`${ada}-1`, `${ada}-2`]) {
    await allow(new Device(world), { user: ada });
    await pay(world, { user: ada, amount: "10" });
    await move(world, "/v1/user/charge", { user: ada, amount: "1" }, key);
    await disconnect(world);
    await world.clock.advance(1);
  }
  await forgetWholly(world);
  assert.deepEqual(await rowsNaming(world, ada), []);
  await world.clock.advance(61_000);
  assert.deepEqual((await verify(world)).faults, []);
  const keys = (await exportedEntries(world)).map(({ idempotencyKey }) => idempotencyKey);
  assert.equal(new Set(keys).size, 4);
});

Deno.test("forget: a late payment into a wallet under an erased name can be erased again", async () => {
  using world = await sharedWorld();
  await allow(new Device(world), { user: ada });
  const { session, event } = await pay(world, { user: ada, amount: "10" });
  await disconnect(world);
  await forgetWholly(world);
  const late = { ...session, id: "cs_late", payment_intent: "pi_late", payment_status: "paid" };
  const told = { ...event, id: "evt_late", data: { object: late } };
  assert.equal((await tellServer(world, told)).body.outcome, "booked");
  assert.deepEqual((await exportedEntries(world)).map(({ delta }) => delta), ["10", "10"]);
  await deliver(world);
  const { erased } = await forgetWholly(world);
  assert.equal(erased.walletEntries, 1);
  assert.deepEqual(await rowsNaming(world, ada), []);
  assert.equal((await exportedEntries(world)).length, 2);
});

Deno.test("forget: refused while money is held in the wallet of a person who paid before", async () => {
  const { world } = await makeShared();
  using _ = world;
  const gate = createGate();
  world.upstream.reply(async () => {
    await gate.opened;
    return completion();
  });
  const running = world.json(chatPath, { body: chatBody(ada) });
  await world.until(async () => (await world.balance(ada)).held !== "0");
  await disconnect(world);
  await world.clock.advance(1);
  await allow(new Device(world), { user: ada });
  await disconnect(world);
  const refused = await forget(world);
  assert.deepEqual([refused.status, refused.body.error.code], [400, "money_held"]);
  gate.open();
  await running;
  await world.clock.advance(61_000);
  await world.app.sweep();
  await deliver(world);
  await forgetWholly(world);
  assert.deepEqual(await rowsNaming(world, ada), []);
});

Deno.test("forget: what Stripe refunds meanwhile is recorded, and names no one", async () => {
  const forgetter = createScriptedStore();
  using world = await createWorld({ env, project: { mode: "shared" }, wrapKv: forgetter.wrap });
  const device = new Device(world);
  await allow(device, { user: ada });
  const { session } = await pay(world, { user: ada, amount: "10" });
  await disconnect(world);
  const told = async (by: World, id: string, total: number) => {
    const object = { payment_intent: session.payment_intent, amount_refunded: total };
    const data = { object, previous_attributes: { amount_refunded: total - 100 } };
    const event = { id, object: "event", type: "charge.refunded", data };
    return (await tellServer(by, event)).body.outcome;
  };
  const outcomes: string[] = [];
  using between = await createWorld({ env, shareWith: world, seed: 2 });
  forgetter.atomic = async (write, real) => {
    const names = write.sets.map(({ key }) => key[0]);
    // The payment already has its new name; its entry has not.
    const isRenaming = names.includes("entry") && !names.includes("account");
    if (isRenaming && outcomes.length === 0) {
      outcomes.push("renaming");
      outcomes.push(await told(between, "evt_between", 100));
    }
    return await real(write);
  };
  const early = createScriptedStore();
  using before = await createWorld({ env, shareWith: world, wrapKv: early.wrap });
  early.atomic = async (write, real) => {
    // It read under the old name while the row was written under the new one.
    if (outcomes.length === 0) await forgetWholly(world);
    return await real(write);
  };
  outcomes.push(await told(before, "evt_before", 200));
  assert.deepEqual(outcomes, ["renaming", "debited", "debited"]);
  assert.deepEqual(await rowsNaming(world, ada), []);
  assert.match((await device.get("/wallet")).html, /\$8\.00/);
  await world.clock.advance(61_000);
  assert.deepEqual((await verify(world)).faults, []);
});

Deno.test("forget: no one is connected or paid for by that name until it completes", async () => {
  const forgetter = createScriptedStore();
  using world = await createWorld({ env, project: { mode: "shared" }, wrapKv: forgetter.wrap });
  const device = new Device(world);
  await allow(device, { user: ada });
  const { session, event } = await pay(world, { user: ada, amount: "10" });
  await charge(world, "1", { user: ada });
  await disconnect(world);
  using between = await createWorld({ env, shareWith: world, seed: 2 });
  const other = new Device(between);
  await world.clock.advance(1);
  const link = await linkFor(between, ada, world.apiKey);
  const decisions: number[] = [];
  forgetter.atomic = async (write, real) => {
    if (write.sets.some(({ key }) => key[0] === "entry") && decisions.length === 0) {
      for (const decision of ["approve", "decline"]) {
        decisions.push((await other.post(link, { decision, cap: "10", wallet: "new" })).status);
      }
      const late = { ...session, id: "cs_late", payment_status: "paid" };
      const told = { ...event, id: "evt_late", data: { object: late } };
      decisions.push((await tellServer(between, told)).status);
    }
    return await real(write);
  };
  await forgetWholly(world);
  assert.deepEqual(decisions, [403, 403, 403]);
  assert.deepEqual(await rowsNaming(world, ada), []);
  await world.clock.advance(1);
  await allow(device, { user: ada });
  const again = () => move(world, "/v1/user/charge", { user: ada, amount: "1" }, `of-${ada}`);
  assert.equal(await again(), await again());
  assert.deepEqual((await world.activities(ada)).map(({ delta }) => delta), ["-1"]);
  await world.clock.advance(61_000);
  assert.deepEqual((await verify(world)).faults, []);
});

Deno.test("forget: an operation or authorization under way for that name is refused as too late", async () => {
  const forgetter = createScriptedStore();
  using world = await createWorld({ env, project: { mode: "shared" }, wrapKv: forgetter.wrap });
  const device = new Device(world);
  await allow(device, { user: ada });
  const { session, event } = await pay(world, { user: ada, amount: "10" });
  await disconnect(world);
  const slow = createScriptedStore();
  using between = await createWorld({ env, shareWith: world, seed: 2, wrapKv: slow.wrap });
  using asked = await createWorld({ env, shareWith: world, seed: 3, wrapKv: slow.wrap });
  await world.clock.advance(1);
  const link = await linkFor(asked, ada, world.apiKey);
  const [begun, sent] = [createGate(), createGate()];
  let waiting = 0;
  slow.atomic = async (write, real) => {
    if (++waiting === 2) begun.open();
    await sent.opened;
    return await real(write);
  };
  const late = { ...session, id: "cs_late", payment_intent: "pi_late", payment_status: "paid" };
  const told = tellServer(between, { ...event, id: "evt_late", data: { object: late } });
  const allowed = new Device(asked).post(link, { decision: "approve", cap: "10", wallet: "new" });
  await begun.opened;
  const statuses: number[] = [];
  forgetter.atomic = async (write, real) => {
    if (write.sets.some(({ key }) => key[0] === "entry") && statuses.length === 0) {
      sent.open();
      statuses.push((await told).status, (await allowed).status);
    }
    return await real(write);
  };
  await forgetWholly(world);
  assert.deepEqual(statuses, [403, 403]);
  assert.deepEqual(await rowsNaming(world, ada), []);
  await world.clock.advance(61_000);
  assert.deepEqual((await verify(world)).faults, []);
});

Deno.test("forget: no refund brings the name back into a wallet while its entries are renamed", async () => {
  const forgetter = createScriptedStore();
  using world = await createWorld({ env, project: { mode: "shared" }, wrapKv: forgetter.wrap });
  await allow(new Device(world), { user: ada });
  await pay(world, { user: ada, amount: "10" });
  const { activityId } = await charge(world, "1", { user: ada });
  await charge(world, "0.5", { user: ada });
  await disconnect(world);
  using between = await createWorld({ env, shareWith: world, seed: 2 });
  const refusals: unknown[] = [];
  forgetter.get = async (key, real) => {
    if (key[0] === "entry" && refusals.length === 0) {
      refusals.push("asked");
      const body = { user: ada, activityId, amount: "0.25", metadata: { mail: ada } };
      const answer = await between.json("/v1/user/refund", { key: world.apiKey, body });
      refusals.push(answer.status, answer.body.error?.code);
    }
    return await real(key);
  };
  await forgetWholly(world);
  assert.deepEqual(refusals, ["asked", 403, "user_being_forgotten"]);
  assert.deepEqual(await rowsNaming(world, ada), []);
  await world.clock.advance(61_000);
  assert.deepEqual((await verify(world)).faults, []);
});

Deno.test("forget: a user who is connected while it starts is not erased", async () => {
  const forgetter = createScriptedStore();
  using world = await createWorld({ env, project: { mode: "shared" }, wrapKv: forgetter.wrap });
  using between = await createWorld({ env, shareWith: world, seed: 2 });
  let connected = false;
  forgetter.atomic = async (write, real) => {
    if (write.sets.some(({ key }) => key[0] === "forget_job") && !connected) {
      connected = true;
      await allow(new Device(between), { user: ada, key: world.apiKey });
    }
    return await real(write);
  };
  const { status, body } = await forget(world);
  assert.deepEqual([status, body.error?.code, connected], [400, "user_connected", true]);
  assert.deepEqual(await keysUnder(world, forgetJobsPrefix), []);
});

Deno.test("forget: a wallet's user is erased right after a call, and the hold index names them no more", async () => {
  const { world } = await makeShared();
  using _ = world;
  assert.equal((await world.json(chatPath, { body: chatBody(ada) })).status, 200);
  await disconnect(world);
  await deliver(world);
  assert.equal((await keysUnder(world, holdingPrefix)).length, 1, "it is still listed");
  assert.equal((await forgetWholly(world)).status, "done");
  assert.deepEqual(await keysUnder(world, holdingPrefix), []);
  assert.deepEqual(await rowsNaming(world, ada), []);
});

Deno.test("forget: while a call of a wallet's user runs, nothing is erased", async () => {
  const { world } = await makeShared();
  using _ = world;
  const gate = createGate();
  world.upstream.once(async () => {
    await gate.opened;
    return completion();
  });
  const before = world.upstream.calls.length;
  const answer = world.json(chatPath, { body: chatBody(ada) });
  await world.until(() => world.upstream.calls.length > before);
  await disconnect(world);
  assert.equal((await forget(world)).body.error.code, "money_held");
  gate.open();
  assert.equal((await answer).status, 200);
  assert.equal((await forgetWholly(world)).status, "done");
});

Deno.test("forget: what a dead process held for a wallet's user is charged before the name goes", async () => {
  const store = createScriptedStore();
  using world = await createWorld({
    env,
    project: { name: "Helper", mode: "shared" },
    wrapKv: store.wrap,
  });
  await allow(new Device(world), { user: ada });
  await pay(world, { user: ada });
  const before = world.upstream.calls.length;
  world.upstream.reply(() => new Promise(() => {}));
  world.json(chatPath, { body: chatBody(ada) }).catch(() => {});
  await world.until(() => world.upstream.calls.length > before);
  store.dead = true;
  using after = await createWorld({ env, shareWith: world });
  await disconnect(after);
  assert.equal((await forgetWholly(after)).status, "done");
  await after.app.sweep();
  assert.deepEqual(await rowsNaming(after, ada), []);
  await after.clock.advance(61_000);
  assert.deepEqual((await verify(after)).faults, []);
});

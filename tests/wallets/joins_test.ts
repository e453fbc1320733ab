import assert from "node:assert/strict";
import { decodeAuthorization } from "../../src/ledger/authorization.ts";
import { authorizationKey, entryKey, ownEntriesPrefix } from "../../src/store/keys.ts";
import { textOf } from "../support/console.ts";
import { edit, verify } from "../support/verify.ts";
import { allow, charge, Device, env, pay, tellServer } from "../support/wallets.ts";
import { completion } from "../support/upstream.ts";
import { adminKey, type Body, createWorld, type World } from "../support/world.ts";

// Two wallets of one person become one: the operator asks, both owners confirm.

const project = { name: "Helper", mode: "shared" };
const reason = "Has lost the only device, and showed the receipt of the payment.";

const admin = (world: World, path: string, body?: unknown, method?: string) =>
  world.json(`/v1/admin/wallets${path}`, {
    key: adminKey,
    ...(body === undefined ? {} : { body }),
    ...(method ? { method } : {}),
  });

async function walletsOf(world: World, user: string): Promise<Body[]> {
  const { body } = await admin(world, `?projectId=${world.projectId}&user=${user}`);
  return body.wallets;
}

async function walletOf(world: World, user: string): Promise<Body> {
  return (await walletsOf(world, user))[0] ?? assert.fail(`${user} has no wallet`);
}

const balanceOf = async (world: World, id: string): Promise<string> =>
  (await admin(world, `/${id}`)).body.wallet.balances[0]?.balance ?? "0";

/** A person with 46 who lost every way to open their wallet, and a new one that pays now. */
async function begin(world: World) {
  const lost = new Device(world);
  await allow(lost);
  await pay(world, { amount: "50" });
  await charge(world, "4");
  const { id: from } = await walletOf(world, "ada");
  await lost.post("/wallet", { action: "leave", confirmed: "yes" });
  await world.json("/v1/user/disconnect?user=ada", { method: "POST" });
  await world.clock.advance(1);
  const device = new Device(world);
  await allow(device, { cap: "20" });
  const { id: into } = await walletOf(world, "ada");
  return { from, into, device };
}

Deno.test("join: a lost wallet becomes part of a new one, once its owner confirms and with a reason", async () => {
  using world = await createWorld({ env, project });
  const { from, into, device } = await begin(world);
  const without = await admin(world, `/${from}/join`, { into });
  assert.deepEqual([without.status, without.body.error.code], [400, "reason_required"]);
  const forOwner = { into, reasons: { from: reason, into: reason } };
  const refused = await admin(world, `/${from}/join`, forOwner);
  assert.deepEqual([refused.status, refused.body.error.code], [400, "owner_confirms"]);
  const { body } = await admin(world, `/${from}/join`, { into, reasons: { from: reason } });
  assert.deepEqual([body.join.status, body.join.consents.into], ["asked", null]);
  assert.equal(await balanceOf(world, from), "46");
  const { html } = await device.get("/wallet");
  assert.match(textOf(html), /Are both wallets yours\?.*which has \$46\.00/);
  assert.equal((await device.post("/wallet", { action: "join", from })).status, 303);
  assert.match((await device.get("/wallet")).html, /\$46\.00/);
  assert.equal(await balanceOf(world, from), "0");
  assert.equal(await balanceOf(world, into), "46");
  assert.equal((await charge(world, "6")).success, true);
  await world.app.sweep();
  assert.equal(await balanceOf(world, into), "40");
  const { body: trail } = await world.json("/v1/admin/audit", { key: adminKey });
  const actions = trail.actions.filter(({ action }: Body) => action.startsWith("wallet."));
  assert.deepEqual(actions.map(({ action }: Body) => action), [
    "wallet.joined",
    "wallet.join_asked",
  ]);
  assert.deepEqual(actions[0].detail, {
    into,
    fromBy: `the operator: ${reason}`,
    intoBy: "its owner",
  });
  assert.deepEqual((await verify(world)).faults, []);
});

Deno.test("join: both owners confirm, each on a device of theirs, and both devices open the one", async () => {
  using world = await createWorld({ env, project });
  const [one, other] = [new Device(world), new Device(world)];
  await allow(one);
  await allow(other, { user: "bob", cap: "7" });
  await pay(world, { amount: "10" });
  await pay(world, { user: "bob", amount: "20.5" });
  const [from, into] = [(await walletOf(world, "ada")).id, (await walletOf(world, "bob")).id];
  const { body } = await admin(world, `/${from}/join`, { into });
  assert.deepEqual(body.join.consents, { from: null, into: null });
  await one.post("/wallet", { action: "join", from });
  assert.match(textOf((await one.get("/wallet")).html), /You have confirmed/);
  assert.equal(await balanceOf(world, into), "20.5", "one of them alone moves nothing");
  await new Device(world).post("/wallet", { action: "join", from });
  const stranger = new Device(world);
  await allow(stranger, { user: "eve" });
  await stranger.post("/wallet", { action: "join", from });
  assert.equal(await balanceOf(world, into), "20.5", "nor does a stranger");
  await other.post("/wallet", { action: "join", from });
  for (const device of [one, other]) {
    const { html } = await device.get("/wallet");
    assert.match(html, /\$30\.50/);
    assert.match(html, /As <bdi>ada/);
    assert.match(html, /As <bdi>bob/);
  }
  for (const [user, amount] of [["ada", "9"], ["bob", "7"]] as const) {
    assert.equal((await charge(world, amount, { user })).success, true, user);
  }
  assert.equal((await charge(world, "0.1", { user: "bob" })).success, false, "caps stay");
  await one.post("/wallet", { action: "sign-out-others" });
  assert.match((await other.get("/wallet")).html, /no wallet on this device/);
  assert.deepEqual((await verify(world)).faults, []);
});

Deno.test("join: an owner declines, or the operator withdraws, and nothing has moved", async () => {
  using world = await createWorld({ env, project });
  const { from, into, device } = await begin(world);
  const ask = () => admin(world, `/${from}/join`, { into, reasons: { from: reason } });
  assert.equal((await ask()).status, 200);
  assert.equal((await ask()).body.error.code, "join_pending");
  await device.post("/wallet", { action: "decline-join", from });
  assert.equal((await admin(world, `/${from}`)).body.wallet.join, null);
  assert.equal((await ask()).status, 200);
  assert.deepEqual((await admin(world, `/${from}/join`, undefined, "DELETE")).body, {
    withdrawn: true,
  });
  assert.equal((await admin(world, `/${from}/join`, undefined, "DELETE")).status, 404);
  await device.post("/wallet", { action: "join", from });
  assert.equal(await balanceOf(world, from), "46");
});

Deno.test("join: what cannot be joined is refused", async () => {
  using world = await createWorld({ env, project });
  const { from, into, device } = await begin(world);
  const join = (id: string, body: unknown) => admin(world, `/${id}/join`, body);
  const nobody = "per_01K9Z0C8Q4R7T2V5X8Z1B3D5F7";
  assert.equal((await join(nobody, { into })).status, 404);
  assert.equal((await join(from, { into: nobody, reasons: { from: reason } })).status, 404);
  assert.equal((await join(from, { into: from })).status, 400);
  assert.equal((await join(from, { into, reasons: { from: "short" } })).status, 400);
  assert.equal((await join(from, { into, reasons: { from: reason } })).status, 200);
  await device.post("/wallet", { action: "join", from });
  for (const [id, other] of [[from, into], [into, from]] as const) {
    const { body } = await join(id, { into: other, reasons: { from: reason, into: reason } });
    assert.ok(["wallet_joined", "owner_confirms"].includes(body.error.code), body.error.code);
  }
  const { body } = await join(into, { into: from, reasons: { into: reason } });
  assert.equal(body.error.code, "wallet_joined");
  const late = await admin(world, `/${from}/join`, undefined, "DELETE");
  assert.equal(late.body.error.code, "wallet_joined");
});

Deno.test("join: a running call goes on, is charged where it holds, and the rest follows", async () => {
  using world = await createWorld({ env, project });
  const [one, other] = [new Device(world), new Device(world)];
  await allow(one);
  await pay(world, { amount: "10" });
  await allow(other, { user: "bob" });
  const [from, into] = [(await walletOf(world, "ada")).id, (await walletOf(world, "bob")).id];
  const gate = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  world.upstream.once(async () => {
    begun.resolve();
    await gate.promise;
    return completion();
  });
  const messages = [{ role: "user", content: "Hello" }];
  const call = world.json("/v1/chat/completions", {
    body: { model: "test-model", user: "ada", messages, max_tokens: 100 },
  });
  await begun.promise;
  await admin(world, `/${from}/join`, { into });
  await one.post("/wallet", { action: "join", from });
  await other.post("/wallet", { action: "join", from });
  const held = (await admin(world, `/${from}`)).body.wallet.balances[0];
  assert.equal(held.balance, held.held, "all but the hold has moved");
  assert.notEqual(held.held, "0");
  gate.resolve();
  const { body } = await call;
  await world.app.sweep();
  assert.equal(await balanceOf(world, from), "0");
  const left = Number(await balanceOf(world, into));
  assert.equal(left.toFixed(6), (10 - body.usage.cost).toFixed(6));
  const row = await world.deps.kv.get(authorizationKey(world.projectId, "ada"));
  const { personId, spent } = decodeAuthorization(row.value ?? assert.fail());
  assert.deepEqual([personId, Number(spent)], [into, body.usage.cost], "the day's cap counts it");
  assert.deepEqual((await verify(world)).faults, []);
});

Deno.test("join: refunds and payments that concern the former wallet find the money", async () => {
  using world = await createWorld({ env, project });
  const lost = new Device(world);
  await allow(lost, { cap: "100" });
  const { event } = await pay(world, { amount: "50" });
  const { activityId } = await charge(world, "4");
  const { id: from } = await walletOf(world, "ada");
  await lost.post("/wallet", { action: "leave", confirmed: "yes" });
  await world.json("/v1/user/disconnect?user=ada", { method: "POST" });
  await world.clock.advance(1);
  const device = new Device(world);
  await allow(device);
  const { id: into } = await walletOf(world, "ada");
  await admin(world, `/${from}/join`, { into, reasons: { from: reason } });
  await device.post("/wallet", { action: "join", from });
  const refund = await world.json("/v1/user/refund", { body: { user: "ada", activityId } });
  assert.equal(refund.status, 200, JSON.stringify(refund.body));
  await world.app.sweep();
  assert.deepEqual([await balanceOf(world, from), await balanceOf(world, into)], ["0", "50"]);
  const { payment_intent: intent } = event.data.object;
  const charged = { id: "ch_1", object: "charge", payment_intent: intent, currency: "usd" };
  await tellServer(world, {
    id: "evt_refunded",
    object: "event",
    type: "charge.refunded",
    data: { object: { ...charged, amount: 5000, amount_refunded: 5000, refunded: true } },
  });
  assert.deepEqual([await balanceOf(world, from), await balanceOf(world, into)], ["0", "0"]);
  const entries = await world.json(
    `/v1/admin/projects/${world.projectId}/users/ada/activities`,
    { key: adminKey },
  );
  assert.ok(entries.body.activities.every(({ kind }: Body) => kind !== "transfer"));
  assert.deepEqual((await verify(world)).faults, []);
});

Deno.test("join: two operators, two processes or a repeated confirmation move nothing twice", async () => {
  using world = await createWorld({ env, project });
  using second = await createWorld({ env, shareWith: world });
  const { from, into, device } = await begin(world);
  const ask = (at: World) => admin(at, `/${from}/join`, { into, reasons: { from: reason } });
  const asked = await Promise.all([ask(world), ask(second)]);
  assert.equal(asked.filter(({ status }) => status === 200).length, 1);
  const tabs = [world, second].map((at) =>
    Object.assign(new Device(at), { cookie: device.cookie })
  );
  await Promise.all(tabs.map((tab) => tab.post("/wallet", { action: "join", from })));
  await Promise.all([world.app.sweep(), second.app.sweep()]);
  assert.deepEqual([await balanceOf(world, from), await balanceOf(world, into)], ["0", "46"]);
  assert.deepEqual((await verify(world)).faults, []);
});

for (
  const [name, harm, told] of [
    ["moves more than arrives", (entry: Body) => ({ ...entry, delta: "-40" }), /moves -40 between/],
    ["names another entry", (entry: Body) => ({
      ...entry,
      transfer: { ...entry.transfer, activityId: "act_01K9Z0C8Q4R7T2V5X8Z1B3D5F7" },
    }), /is missing/],
    [
      "has lost its other side",
      ({ transfer: _, ...entry }: Body) => entry,
      /only partly a transfer/,
    ],
  ] as const
) {
  Deno.test(`join: verify reports a transfer that ${name}`, async () => {
    using world = await createWorld({ env, project });
    const { from, into, device } = await begin(world);
    assert.deepEqual((await verify(world)).faults, []);
    await admin(world, `/${from}/join`, { into, reasons: { from: reason } });
    await device.post("/wallet", { action: "join", from });
    const rows = await world.deps.kv.list({ prefix: ownEntriesPrefix(from), limit: 9 });
    const id = String(rows.at(-1)?.key[2]);
    await edit<Body>(world, entryKey(from, id), harm);
    for (const query of ["since=true", "", "part=1&parts=1"]) {
      const { faults } = await verify(world, query);
      assert.ok(faults.some((fault) => told.test(fault)), `${query}: ${faults.join("\n")}`);
    }
  });
}

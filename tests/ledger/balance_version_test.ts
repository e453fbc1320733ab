import assert from "node:assert/strict";
import { loadTokenizer } from "../../src/pricing/tokenizer.ts";
import { chatBody, chatPath } from "../support/books.ts";
import { createScriptedStore } from "../support/store.ts";
import { allow, charge, Device, env, pay } from "../support/wallets.ts";
import { deliver, subscribe } from "../support/webhooks.ts";
import { type Body, createWorld, type World } from "../support/world.ts";

await loadTokenizer();

/** What was told of each change of a user's balance, in order of its number. */
async function told(world: World, user = "ada"): Promise<{ type: string; version: number }[]> {
  await deliver(world);
  const events = new Map<string, Body>();
  for (const { body: { event } } of world.subscriber.received) events.set(event.id, event);
  return [...events.values()]
    .filter(({ data, subject }) => data.balanceVersion && subject.externalId === user)
    .map(({ type, data }) => ({ type, version: data.balanceVersion }))
    .sort((one, other) => one.version - other.version || (one.type < other.type ? -1 : 1));
}

async function move(world: World, path: string, body: Body): Promise<string> {
  const answer = await world.json(path, { body });
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  return answer.body.activityId;
}

Deno.test("balance version: rises by one with each change of a user's own balance, also after a restart", async () => {
  const store = createScriptedStore();
  using world = await createWorld({ wrapKv: store.wrap, project: { trialCredits: "1" } });
  await subscribe(world, { events: ["balance.*", "usage.charge.created"] });
  const deposited = await move(world, "/v1/user/balance/deposit", { user: "ada", amount: "5" });
  await world.json(chatPath, { body: chatBody("ada") });
  const charged = await move(world, "/v1/user/charge", { user: "ada", amount: "1" });
  await move(world, "/v1/user/refund", { activityId: charged });
  await move(world, "/v1/user/refund", { activityId: deposited, amount: "1" });
  world.upstream.reply(() => new Promise(() => {}));
  const before = world.upstream.calls.length;
  world.json(chatPath, { body: chatBody("ada") }).catch(() => {});
  await world.until(() => world.upstream.calls.length > before);
  await deliver(world);
  store.dead = true;
  using after = await createWorld({ shareWith: world });
  await after.app.sweep();
  await after.deposit("ada", "1");
  assert.deepEqual((await told(after)).map(({ type, version }) => `${version} ${type}`), [
    "1 balance.trial.granted",
    "2 balance.deposit.created",
    "3 usage.charge.created",
    "4 balance.charge.completed",
    "4 balance.charge.created",
    "5 balance.refund.created",
    "6 balance.refund.created",
    "7 usage.charge.created",
    "8 balance.deposit.created",
  ]);
});

Deno.test("balance version: rises in the order of the changes, whichever process and whatever clock", async () => {
  using world = await createWorld({ isShared: true });
  using ahead = await createWorld({ shareWith: world, aheadMs: 3_600_000 });
  await subscribe(world, { events: ["balance.*"] });
  const amounts = Array.from({ length: 12 }, (_, n) => n + 1);
  for (const n of amounts) {
    const deposit = (n % 2 ? world : ahead).deposit("ada", String(n));
    // Processes that write one account take turns.
    await world.clock.advance(2_000);
    await deposit;
  }
  for (const each of [world, ahead]) await deliver(each);
  const events = world.subscriber.received.map(({ body }) => body.event.data);
  events.sort((one, other) => one.balanceVersion - other.balanceVersion);
  assert.deepEqual(events.map(({ amount }) => Number(amount)), amounts);
  assert.deepEqual(events.map(({ balanceVersion }) => balanceVersion), amounts);
});

Deno.test("balance version: of a wallet's user only rises, also when another wallet pays", async () => {
  using world = await createWorld({ env, project: { name: "Helper", mode: "shared" } });
  await subscribe(world, { events: ["balance.*", "usage.charge.created"] });
  const pays = async (device: Device) => {
    await allow(device, { user: "ada" });
    await pay(world, { user: "ada" });
    await allow(device, { user: "bob" });
    for (const user of ["ada", "bob", "ada"]) await charge(world, "0.5", { user });
    await world.json(chatPath, { body: chatBody("ada") });
    for (const user of ["ada", "bob"]) {
      await world.json(`/v1/user/disconnect?user=${user}`, { method: "POST" });
    }
  };
  await pays(new Device(world));
  const first = await told(world);
  await pays(new Device(world));
  const all = await told(world);
  assert.deepEqual(all.slice(0, first.length), first);
  const versions = all.filter(({ type }) => type !== "balance.charge.completed")
    .map(({ version }) => version);
  assert.equal(versions.length, 8);
  assert.equal(new Set(versions).size, 8, "no two changes have the same");
  assert.ok((all[first.length]?.version ?? 0) > (first.at(-1)?.version ?? 0));
});

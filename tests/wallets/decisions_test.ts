import assert from "node:assert/strict";
import { type Authorization, formerPayers } from "../../src/ledger/authorization.ts";
import { allConnectionsPrefix, authorizationsPrefix } from "../../src/store/keys.ts";
import { keysUnder } from "../support/verify.ts";
import { allow, charge, Device, linkFor, pathOf, pay, sharedWorld } from "../support/wallets.ts";
import { deliver, subscribe } from "../support/webhooks.ts";
import type { World } from "../support/world.ts";

// Who may decide about a wallet: its own person, and nobody else who has the link or a wallet.

const isConnected = async (world: World) =>
  (await world.json("/v1/user/connect?user=ada")).body.connected;

/** A link to allow more, as from a charge beyond the cap. */
async function linkForMore(world: World): Promise<string> {
  await world.clock.advance(1);
  return pathOf((await charge(world, "9")).url);
}

Deno.test("wallet: only the payer may decline a request for more", async () => {
  using world = await sharedWorld();
  const [grace, other] = [new Device(world), new Device(world)];
  await allow(other, { user: "bob" });
  await allow(grace, { cap: "8" });
  await pay(world, { amount: "20" });
  for (const [device, connected] of [[other, true], [grace, false]] as const) {
    const link = await linkForMore(world);
    assert.equal((await device.post(link, { decision: "decline" })).status, 303);
    assert.equal(await isConnected(world), connected);
  }
});

Deno.test("wallet: only its own person sees and sets the cap, while the authorization is active", async () => {
  using world = await sharedWorld();
  const [grace, other] = [new Device(world), new Device(world)];
  await allow(other, { user: "bob" });
  await allow(grace, { cap: "5" });
  await pay(world, { amount: "20" });
  const set = (device: Device, cap: string) =>
    device.post("/wallet", { action: "cap", projectId: world.projectId, user: "ada", cap });
  const link = await linkForMore(world);
  assert.doesNotMatch((await other.get(link)).html, /Now allowed/);
  assert.match((await grace.get(link)).html, /Current limit: \$5\.00/);
  await set(other, "15");
  assert.equal((await charge(world, "9")).success, false, "it is another person's");
  await set(grace, "15");
  assert.equal((await charge(world, "9")).success, true);
  await world.json("/v1/user/disconnect?user=ada", { method: "POST" });
  await set(grace, "20");
  assert.equal(await isConnected(world), false);
  assert.equal((await charge(world, "1")).success, false);
});

Deno.test("wallet: an authorization is ended once, and only if there was one", async () => {
  using world = await sharedWorld();
  await subscribe(world, { events: ["authorization.revoked"] });
  const disconnect = async () =>
    (await world.json("/v1/user/disconnect?user=ada", { method: "POST" })).body.message;
  const nothing = "There was no authorization to end.";
  assert.equal(await disconnect(), nothing);
  await new Device(world).post(await linkFor(world), { decision: "decline" });
  assert.equal(await disconnect(), nothing);
  await world.clock.advance(1);
  await allow(new Device(world));
  assert.notEqual(await disconnect(), nothing);
  assert.equal(await disconnect(), nothing);
  await deliver(world);
  assert.deepEqual(world.subscriber.types(), ["authorization.revoked"]);
});

Deno.test("wallet: declining an expired request brings nothing back, whoever declines", async () => {
  using world = await sharedWorld();
  const [grace, other] = [new Device(world), new Device(world)];
  await allow(other, { user: "bob" });
  await allow(grace);
  await pay(world);
  await world.json("/v1/user/disconnect?user=ada", { method: "POST" });
  for (const device of [other, new Device(world), grace]) {
    await world.clock.advance(1);
    assert.equal((await device.post(await linkFor(world), { decision: "decline" })).status, 303);
    assert.equal(await isConnected(world), false);
    assert.equal((await charge(world, "1")).reason, "authorization_required");
  }
});

for (const setBackMs of [0, 60_000]) {
  const when = setBackMs === 0 ? "at once" : "where the clock was set back too";
  Deno.test(`wallet: ending an authorization invalidates every link that requested it, ${when}`, async () => {
    using world = await sharedWorld();
    const grace = new Device(world);
    await allow(grace, { cap: "8" });
    await pay(world, { amount: "20" });
    const link = await linkForMore(world);
    await world.clock.advance(1);
    // One more decision, which the next one follows.
    if (setBackMs > 0) {
      await grace.post(await linkForMore(world), { decision: "approve", cap: "8" });
    }
    world.clock.set(-setBackMs);
    const form = { action: "revoke", projectId: world.projectId, user: "ada" };
    assert.equal((await grace.post("/wallet", form)).status, 303);
    const late = new Device(world);
    await late.post(link, { decision: "approve", cap: "9" });
    await grace.post(link, { decision: "approve", cap: "9" });
    assert.equal((await grace.get(link)).status, 404);
    assert.equal(await isConnected(world), false);
  });
}

Deno.test("wallet: a person without a wallet who declines is not stored", async () => {
  using world = await sharedWorld();
  await new Device(world).post(await linkFor(world), { decision: "decline" });
  assert.equal((await keysUnder(world, authorizationsPrefix(world.projectId))).length, 1);
  assert.deepEqual(await keysUnder(world, allConnectionsPrefix), []);
});

Deno.test("wallet: of former payers, the last 20 are kept, each of them once", () => {
  const charged = { day: "", spent: "0" };
  const payer = (n: number) => ({ personId: `per_${n}`, connectionId: `con_${n}`, ...charged });
  const last: Authorization = {
    ...payer(0),
    status: "active",
    dailyCap: "1",
    decidedAt: 0,
    requestId: null,
    former: [{ ...payer(-1), personId: "" }, ...Array.from({ length: 25 }, (_, n) => payer(n + 1))],
  };
  const kept = formerPayers(last, "per_3").map(({ personId }) => personId);
  const wanted = [...Array(22).keys()].filter((n) => n !== 3).map((n) => `per_${n}`).slice(0, 20);
  assert.deepEqual(kept, wanted);
  assert.deepEqual(formerPayers(null, "per_3"), []);
});

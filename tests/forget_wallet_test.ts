import assert from "node:assert/strict";
import { allConnectionsPrefix, authorizationsPrefix } from "../src/store/keys.ts";
import { chatBody, chatPath } from "./support/books.ts";
import { ada, forget, forgetWholly, rowsAsTextOf, rowsNaming } from "./support/forget.ts";
import { allow, charge, Device, pay, sharedWorld } from "./support/wallets.ts";
import { keysUnder, verify } from "./support/verify.ts";
import { deliver, subscribe } from "./support/webhooks.ts";
import type { World } from "./support/world.ts";

const disconnect = (world: World, user = ada) =>
  world.json(`/v1/user/disconnect?user=${user}`, { method: "POST" });

/** A wallet that two projects and two users of one of them have spent of. */
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

Deno.test("forget: leave to spend of a wallet has to be ended first", async () => {
  using world = (await makeShared()).world;
  const { status, body } = await forget(world);
  assert.deepEqual([status, body.error.code], [400, "user_connected"]);
});

Deno.test("forget: of a wallet only the project's own user is taken out", async () => {
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
  assert.equal((await keysUnder(world, allConnectionsPrefix)).length, 2);
  assert.equal((await keysUnder(world, authorizationsPrefix(world.projectId))).length, 1);
  const moneyOf = (html: string) => html.match(/\$[\d.]+/g);
  assert.deepEqual(moneyOf((await device.get("/wallet")).html), moneyOf(wallet));
  assert.equal((await charge(world, "1", { user: "bob" })).success, true);
  await world.clock.advance(61_000);
  assert.deepEqual((await verify(world)).faults, []);
});

Deno.test("forget: whoever was forgotten may be connected again, as someone new", async () => {
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

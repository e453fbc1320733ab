import assert from "node:assert/strict";
import { signedIn } from "../support/console.ts";
import { deliver, retry, subscribe, subscriptionsPath } from "../support/webhooks.ts";
import { createWorld, type World } from "../support/world.ts";

const hourMs = 60 * 60 * 1000;

/** A world with a subscription that fails, and another one. */
async function failingWorld() {
  const world = await createWorld();
  const failing = await subscribe(world, {
    url: "https://broken.example.com/secret-path",
    events: ["balance.deposit.created", "webhook.failing"],
  });
  await subscribe(world, { url: "https://ops.example.com/", events: ["webhook.*"] });
  const state = { broken: true };
  world.subscriber.reply(({ url }) =>
    state.broken && url.includes("broken") ? { status: 500 } : {}
  );
  return { world, failing, state };
}

async function depositAndDeliver(world: World) {
  await world.deposit("ada", "1");
  await deliver(world);
}

const notices = ({ subscriber }: World) =>
  subscriber.received.filter(({ body }) => body.event.type === "webhook.failing");

Deno.test("failing: after a day of failures the project's other subscriptions are notified, once", async () => {
  const { world, failing } = await failingWorld();
  using _world = world;
  const since = new Date(world.clock.now()).toISOString();
  await depositAndDeliver(world);
  await world.clock.advance(23 * hourMs);
  await depositAndDeliver(world);
  assert.equal(notices(world).length, 0, "not within a day");
  await world.clock.advance(2 * hourMs);
  await depositAndDeliver(world);
  await deliver(world);
  const [notice] = notices(world);
  assert.deepEqual(notices(world).map(({ url }) => url), ["https://ops.example.com/"]);
  const { paywallId, ownerUserId, ...data } = notice?.body.event.data ?? {};
  assert.deepEqual([paywallId, typeof ownerUserId], [world.projectId, "string"]);
  assert.deepEqual(data, {
    subscriptionId: failing.id,
    host: "broken.example.com",
    failingSince: since,
    lastDeliveredAt: null,
    consecutiveFailures: data.consecutiveFailures,
    responseCode: 500,
    error: "status 500",
  });
  assert.ok(data.consecutiveFailures >= 3);
  await world.clock.advance(48 * hourMs);
  await depositAndDeliver(world);
  assert.equal(notices(world).length, 1, "it is not repeated");
  const { body } = await world.json(`${subscriptionsPath}/${failing.id}`);
  assert.equal(body.subscription.failingSince, since);
});

Deno.test("failing: a success ends it, and later failures are counted from their own beginning", async () => {
  const { world, failing, state } = await failingWorld();
  using _world = world;
  await depositAndDeliver(world);
  await world.clock.advance(20 * hourMs);
  state.broken = false;
  await depositAndDeliver(world);
  const shown = async () =>
    (await world.json(`${subscriptionsPath}/${failing.id}`)).body.subscription;
  assert.equal("failingSince" in await shown(), false);
  state.broken = true;
  await world.clock.advance(20 * hourMs);
  await depositAndDeliver(world);
  await retry(world);
  assert.equal(notices(world).length, 0);
  await world.clock.advance(25 * hourMs);
  await depositAndDeliver(world);
  await deliver(world);
  assert.equal(notices(world).length, 1, "a second time it is notified again");
});

Deno.test("failing: the console's list marks a subscription that has failed for days", async () => {
  const { world } = await failingWorld();
  using _world = world;
  const list = async () => (await (await signedIn(world)).get("webhooks")).html;
  await depositAndDeliver(world);
  assert.doesNotMatch(await list(), /failing for/);
  await world.clock.advance(50 * hourMs);
  assert.match(await list(), /tag bad">failing for 2 days</);
});

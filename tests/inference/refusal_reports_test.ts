import assert from "node:assert/strict";
import { chatBody, chatPath } from "../support/books.ts";
import { ada, forgetWholly, rowsNaming } from "../support/forget.ts";
import { deliver, subscribe } from "../support/webhooks.ts";
import { createWorld, type World } from "../support/world.ts";

const ask = (world: World, user: string) => world.json(chatPath, { body: chatBody(user) });

async function eventsOf(world: World): Promise<[string, string, number][]> {
  await deliver(world);
  return world.subscriber.received.map(({ body }) => {
    const { type, subject, data } = body.event;
    return [type, subject.externalId, data.count];
  });
}

Deno.test("refusals: 300 in a row are one event at once, and one at the end of the minute", async () => {
  using world = await createWorld({ project: { limits: { user: { requestsPerMinute: 1 } } } });
  await world.deposit("ada", "1");
  await subscribe(world, { events: ["usage.rate.limited", "proxy.request.blocked"] });
  assert.equal((await ask(world, "ada")).status, 200);
  for (let at = 0; at < 300; at++) assert.equal((await ask(world, "ada")).status, 429);
  assert.deepEqual(await eventsOf(world), [
    ["usage.rate.limited", "ada", 1],
    ["proxy.request.blocked", "ada", 1],
  ]);
  await world.clock.advance(61_000);
  assert.deepEqual((await eventsOf(world)).slice(2), [
    ["usage.rate.limited", "ada", 299],
    ["proxy.request.blocked", "ada", 299],
  ]);
  await world.clock.advance(300_000);
  assert.equal((await eventsOf(world)).length, 4, "a quiet minute has no event");
});

Deno.test("refusals: paywalls of each user and reason have an event of their own, and are flushed at the end", async () => {
  using world = await createWorld();
  await subscribe(world, { events: ["request.blocked", "balance.depleted"] });
  for (let at = 0; at < 5; at++) {
    await ask(world, "ada");
    await ask(world, "bob");
  }
  const blocked = async () =>
    (await eventsOf(world)).filter(([type]) => type === "request.blocked")
      .map(([, user, count]) => [user, count]);
  assert.deepEqual(await blocked(), [["ada", 1], ["bob", 1]]);
  await world.app.flush();
  assert.deepEqual(await blocked(), [["ada", 1], ["bob", 1], ["ada", 4], ["bob", 4]]);
});

Deno.test("refusals: those of a user who is erased are reported before, and name no one after", async () => {
  using world = await createWorld();
  await subscribe(world, { events: ["request.blocked"] });
  for (let at = 0; at < 3; at++) await ask(world, ada);
  await deliver(world);
  await forgetWholly(world);
  const counts = (await eventsOf(world)).map(([, , count]) => count);
  assert.deepEqual(counts, [1, 2]);
  await world.clock.advance(300_000);
  assert.equal((await eventsOf(world)).length, 2);
  assert.deepEqual(await rowsNaming(world, ada), []);
});

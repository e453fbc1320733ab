import assert from "node:assert/strict";
import { loadTokenizer } from "../../src/pricing/tokenizer.ts";
import { chatBody, chatPath } from "../support/books.ts";
import { chatStream } from "../support/chat.ts";
import { createScriptedStore } from "../support/store.ts";
import {
  chunk,
  completion,
  fedStream,
  readEvents,
  usage,
  usageChunk,
} from "../support/upstream.ts";
import { createWorld } from "../support/world.ts";

await loadTokenizer();

/** A world whose store can be unavailable, as one that restarts. */
async function fragileWorld() {
  const store = createScriptedStore();
  const world = await createWorld({ wrapKv: store.wrap });
  await world.deposit("ada", "1");
  return Object.assign(world, { store });
}

/** Streams a response of 8 tokens in and 500 out, which ends while the store is unavailable. */
async function streamInto(world: Awaited<ReturnType<typeof fragileWorld>>, seconds: number) {
  const stream = fedStream();
  world.upstream.once(() => stream.response);
  const events = readEvents(await chatStream(world));
  stream.send(chunk({ content: "all of it" }));
  await world.clock.advance(2_000);
  world.store.dead = true;
  stream.send(usageChunk(usage(8, 500)));
  stream.send("[DONE]");
  stream.end();
  await world.clock.advance(seconds * 1_000);
  world.store.dead = false;
  await world.clock.advance(5_000);
  return await events;
}

for (const seconds of [1, 20, 45]) {
  Deno.test(`store unavailable: a stream that ends during an outage of ${seconds} s is charged after it`, async () => {
    using world = await fragileWorld();
    const told = await streamInto(world, seconds);
    assert.equal(told.at(-1), "[DONE]");
    assert.equal((await world.balance("ada")).balance, "0.998992");
    await world.clock.advance(120_000);
    await world.app.sweep();
    const kinds = (await world.activities("ada")).map(({ kind }) => kind);
    assert.deepEqual(kinds, ["usage", "deposit"]);
  });
}

Deno.test("store unavailable: a response that is not streamed is delivered once it is charged", async () => {
  using world = await fragileWorld();
  world.upstream.once(() => {
    world.store.dead = true;
    return completion({ usage: usage(8, 500) });
  });
  const answer = world.json(chatPath, { body: chatBody("ada") });
  await world.clock.advance(10_000);
  world.store.dead = false;
  await world.clock.advance(5_000);
  assert.equal((await answer).status, 200);
  assert.equal((await world.balance("ada")).balance, "0.998992");
});

Deno.test("store unavailable: if it outlasts a hold, the log has what was not charged", async () => {
  using world = await fragileWorld();
  const told = await streamInto(world, 90);
  assert.notEqual(told.at(-1), "[DONE]");
  const [lost = assert.fail("nothing in the log")] = world.logged
    .filter(({ event }) => event === "charge_lost");
  assert.equal(lost.cost, "0.001008");
  assert.deepEqual([lost.uncachedInputTokens, lost.outputTokens], [8, 500]);
  assert.equal(lost.code, "store_unavailable");
});

Deno.test("store unavailable: a key works again as soon as it is back", async () => {
  using world = await fragileWorld();
  await world.clock.advance(2_000);
  world.store.dead = true;
  assert.notEqual((await world.json("/v1/models")).status, 200);
  world.store.dead = false;
  assert.equal((await world.json("/v1/models")).status, 200);
});

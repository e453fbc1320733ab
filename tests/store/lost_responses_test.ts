import assert from "node:assert/strict";
import { loadTokenizer } from "../../src/pricing/tokenizer.ts";
import { chatBody, chatPath, storedAccount } from "../support/books.ts";
import { settle } from "../support/clock.ts";
import { createScriptedStore } from "../support/store.ts";
import { createWorld } from "../support/world.ts";

Deno.test("lost responses: a caller who disconnects before the model responds, while the store is unavailable, leaves nothing behind", async () => {
  await loadTokenizer();
  const store = createScriptedStore();
  const project = { limits: { key: { concurrent: 1 } } };
  using world = await createWorld({ wrapKv: store.wrap, project });
  await world.deposit("ada", "10");
  const leave = new AbortController();
  world.upstream.once(() => new Promise(() => {}));
  const body = chatBody("ada", { stream: true });
  const asked = world.call(chatPath, { body, signal: leave.signal });
  asked.catch(() => {});
  await world.until(() => world.upstream.calls.length >= 1);
  store.dead = true;
  leave.abort();
  await world.clock.advance(3_000);
  store.dead = false;
  await world.clock.advance(2 * 60_000);
  await asked.catch(() => {});
  await world.app.sweep();
  assert.equal(world.app.running.size, 0);
  assert.equal((await storedAccount(world, "ada")).holds.length, 0);
  assert.equal((await world.json(chatPath, { body: chatBody("ada") })).status, 200);
});

Deno.test("lost responses: a response whose charge landed with an unknown outcome is delivered", async () => {
  const store = createScriptedStore();
  using world = await createWorld({ wrapKv: store.wrap });
  await world.deposit("ada", "10");
  let failing = 0;
  store.atomic = async (write, real) => {
    const text = write.sets.map(({ value }) => new TextDecoder().decode(value)).join();
    if (failing === 0 && !text.includes('"kind":"usage"')) return await real(write);
    if (failing === 0) {
      await real(write);
      // And three times more, from every caller that asks about the outcome.
      failing = 4;
    }
    if (--failing === 0) store.atomic = null;
    throw new TypeError("the connection broke");
  };
  const asked = world.json(chatPath, { body: chatBody("ada") });
  await settle();
  await world.clock.advance(2_000);
  const { status, body, response } = await asked;
  assert.equal(status, 200);
  const [entry, ...more] = await world.activities("ada");
  assert.deepEqual([entry?.kind, entry?.amount], ["usage", body.usage.cost_exact]);
  assert.equal(response.headers.get("x-service-activity-id"), entry?.id);
  assert.deepEqual(more.map(({ kind }) => kind), ["deposit"]);
});

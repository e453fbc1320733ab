import assert from "node:assert/strict";
import { loadTokenizer } from "../../src/pricing/tokenizer.ts";
import { chatBody, chatPath, storedAccount } from "../support/books.ts";
import { createScriptedStore } from "../support/store.ts";
import { subscribe } from "../support/webhooks.ts";
import { createWorld, type World } from "../support/world.ts";

// One atomic write has limits (1,000 mutations, 800 KiB), and everything that waits for one account
// is written in one: it must never exceed what the store accepts, because then nothing of it would
// ever be written.

async function subscribeOften(world: World, count: number): Promise<void> {
  for (let n = 0; n < count; n++) {
    await subscribe(world, { url: `https://hooks.example.com/${n}`, events: ["*"] });
  }
}

for (const [holds, subscriptions] of [[256, 1], [80, 100]] as const) {
  Deno.test(`large writes: ${holds} holds of a dead process end, with ${subscriptions} subscriptions`, async () => {
    await loadTokenizer();
    const store = createScriptedStore();
    using survivor = await createWorld({ project: { limits: { user: { concurrent: null } } } });
    using world = await createWorld({ shareWith: survivor, seed: 3, wrapKv: store.wrap });
    await subscribeOften(survivor, subscriptions);
    await survivor.deposit("ada", "1000");
    await world.clock.advance(2_000);
    world.upstream.reply(() => new Promise(() => {}));
    for (let n = 0; n < holds; n++) {
      world.json(chatPath, { body: chatBody("ada") }).catch(() => {});
    }
    await world.until(() => world.upstream.calls.length >= holds);
    store.dead = true;
    await survivor.clock.advance(61_000);
    const body = { user: "ada", amount: "1" };
    assert.equal((await survivor.json("/v1/user/charge", { body })).status, 200);
    for (let n = 0; n < 3; n++) await survivor.app.sweep();
    assert.equal((await storedAccount(survivor, "ada")).holds.length, 0);
    assert.deepEqual((await survivor.balance("ada")).held, "0");
    const expired = (await survivor.activities("ada")).filter(({ kind }) => kind === "expired");
    assert.ok(expired.length > 0);
  });
}

Deno.test("large writes: many concurrent charges, each with many subscribers, are all recorded", async () => {
  using world = await createWorld();
  await subscribeOften(world, 100);
  await world.deposit("ada", "1000");
  await world.clock.advance(2_000);
  const body = { user: "ada", amount: "1" };
  const all = await Promise.all(
    Array.from({ length: 65 }, () => world.json("/v1/user/charge", { body })),
  );
  assert.deepEqual([...new Set(all.map(({ status }) => status))], [200]);
  assert.equal((await world.balance("ada")).balance, "935");
});

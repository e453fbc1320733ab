import assert from "node:assert/strict";
import { loadTokenizer } from "../../src/pricing/tokenizer.ts";
import { accountKey, holdingPrefix } from "../../src/store/keys.ts";
import { chatBody, chatPath } from "../support/books.ts";
import { createWorld, type World } from "../support/world.ts";

await loadTokenizer();

const listed = async ({ deps }: World) =>
  (await deps.kv.list({ prefix: holdingPrefix, limit: 10 })).length;

Deno.test("hold sweep: an account in use is only read, and dropped from the index once it is idle", async () => {
  using world = await createWorld({ isShared: true });
  using sweeper = await createWorld({ shareWith: world });
  await world.deposit("ada", "1");
  const version = async () => (await world.deps.kv.get(accountKey(world.projectId, "ada"))).version;
  for (let round = 0; round < 6; round++) {
    await world.json(chatPath, { body: chatBody("ada") });
    const written = await version();
    await world.clock.advance(15_000);
    await sweeper.app.sweep();
    assert.equal(await version(), written, `round ${round}`);
    assert.equal(await listed(world), 1);
  }
  await world.clock.advance(60_000);
  await sweeper.app.sweep();
  assert.equal(await listed(world), 0);
});

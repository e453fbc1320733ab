import assert from "node:assert/strict";
import { checkBooks } from "../support/books.ts";
import { createWorld, type World } from "../support/world.ts";

const late = 11 * 60_000;

/** A clock that is wrong while `work` runs. */
async function ahead(world: World, work: () => Promise<void>): Promise<void> {
  world.clock.set(late);
  await work();
  world.clock.set(-late);
}

Deno.test("commit markers: a deposit whose response was lost is recorded once, also beside a clock that is ahead", async () => {
  let lost: (() => Promise<void>) | null = null;
  using world = await createWorld({
    wrapKv: (kv) => ({
      ...kv,
      // As a remote store's client does: the response is lost, the write is sent again, and is
      // rejected.
      async atomic(write) {
        const landed = await kv.atomic(write);
        const meanwhile = write.sets.some(({ key }) => key[0] === "entry") ? lost : null;
        if (!meanwhile) return landed;
        lost = null;
        await meanwhile();
        return await kv.atomic(write);
      },
    }),
  });
  using other = await createWorld({ shareWith: world });
  await world.deposit("ada", "1");
  lost = () => ahead(world, other.app.sweep);
  await world.deposit("ada", "10");
  assert.equal(lost, null);
  assert.equal((await checkBooks(world, "ada")).length, 2);
});

Deno.test("commit markers: a machine that slept during a write does not record it twice either", async () => {
  let sleeps = false;
  using world: World = await createWorld({
    wrapKv: (kv) => ({
      ...kv,
      async atomic(write) {
        const landed = await kv.atomic(write);
        if (!sleeps || write.sets.filter(({ key }) => key[0] === "entry").length < 2) return landed;
        sleeps = false;
        world.clock.set(late);
        await world.app.sweep();
        throw new TypeError("the connection was reset");
      },
    }),
  });
  const users = ["ada", "bob", "cyd"];
  for (const user of users) await world.deposit(user, "1");
  // The first one looks for rows of an older version, and writes that it has.
  await world.app.sweep();
  sleeps = true;
  await Promise.all(users.map((user) => world.deposit(user, "10")));
  assert.equal(sleeps, false);
  for (const user of users) assert.equal((await checkBooks(world, user)).length, 2, user);
});

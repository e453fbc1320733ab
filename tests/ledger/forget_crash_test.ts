import assert from "node:assert/strict";
import { zero } from "../../src/base/money.ts";
import { createHolds } from "../../src/ledger/hold.ts";
import { forgetJobsPrefix, holdingPrefix } from "../../src/store/keys.ts";
import type { Kv } from "../../src/store/kv.ts";
import { chat } from "../support/chat.ts";
import { checkBooks } from "../support/books.ts";
import {
  ada,
  bob,
  forget,
  forgetWholly,
  makePeople,
  rowsAsTextOf,
  rowsNaming,
  usersOf,
} from "../support/forget.ts";
import { createScriptedStore } from "../support/store.ts";
import { keysUnder, verify } from "../support/verify.ts";
import { createWorld, type World } from "../support/world.ts";
import { noOthers, queueOf } from "../support/holders.ts";

/** A world whose process dies directly after its n-th write from then on. */
async function mortalWorld() {
  const store = createScriptedStore();
  const world = await createWorld({ wrapKv: store.wrap });
  await makePeople(world);
  await world.clock.advance(61_000);
  await world.app.sweep();
  const before = store.writes.length;
  return {
    world,
    dieAfter(n: number) {
      store.atomic = async (write, real) => {
        if (store.writes.length - before < n) return await real(write);
        store.dead = true;
        await real(write);
        throw new TypeError("the process has died");
      };
    },
    /** How many writes there have been. */
    writes: () => store.writes.length - before,
  };
}

/** How many writes the removal of one user takes. */
async function countWrites(): Promise<number> {
  const { world, writes } = await mortalWorld();
  using _ = world;
  await forgetWholly(world, { forfeit: true });
  return writes();
}

Deno.test("forget: after a crash at any write, the sweep or another call completes the erasure", async () => {
  const writesInAll = await countWrites();
  assert.ok(writesInAll > 20, `${writesInAll} writes`);
  for (let n = 1; n <= writesInAll; n++) {
    const at = `after write ${n} of ${writesInAll}`;
    const { world, dieAfter } = await mortalWorld();
    using _ = world;
    const others = await rowsAsTextOf(world, bob);
    dieAfter(n);
    assert.equal((await forget(world, { forfeit: true })).status, 503, at);

    using next = await createWorld({ shareWith: world });
    assert.deepEqual((await verify(next)).faults, [], at);
    if (n % 2 === 0) await forgetWholly(next, { forfeit: true });
    else await next.app.sweep();
    assert.deepEqual(await rowsNaming(next, ada), [], at);
    assert.equal(await rowsAsTextOf(next, bob), others, at);
    assert.deepEqual(await keysUnder(next, forgetJobsPrefix), [], at);
    const names = (await usersOf(next)).map(({ user }) => user);
    assert.equal(names.length, 2, at);
    assert.equal((await checkBooks(next, names[1])).length, 6, at);
    await next.clock.advance(61_000);
    assert.deepEqual((await verify(next)).faults, [], at);
  }
});

Deno.test("forget: a late sweep of holds does not bring the name back", async () => {
  using world = await createWorld({ project: { trialCredits: "3" } });
  await world.deposit(ada, "1");
  assert.equal((await chat(world, { user: ada })).status, 200);
  const listed = await world.deps.kv.list({ prefix: holdingPrefix, limit: 10 });
  assert.equal(listed.length, 1);
  await forgetWholly(world, { forfeit: true });

  // Another process has read the list before the removal began.
  const stale = (kv: Kv): Kv => ({
    ...kv,
    list: async (options) => options.prefix[0] === "holding" ? listed : await kv.list(options),
  });
  using late = await createWorld({ shareWith: world, wrapKv: stale });
  await late.app.sweep();
  const holds = holdsOver(late);
  const ref = { projectId: world.projectId, user: ada };
  assert.equal(await holds.renew(ref, "req_1", zero), false);
  await holds.release(ref, "req_1");
  assert.deepEqual(await rowsNaming(late, ada), []);
});

/** Holds of a process whose responses were cut off. */
function holdsOver({ deps }: World) {
  return createHolds({ ...deps, holders: noOthers }, queueOf({ deps }));
}

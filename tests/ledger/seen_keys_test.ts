import assert from "node:assert/strict";
import { createSeenKeys } from "../../src/ledger/seen_keys.ts";
import type { Kv } from "../../src/store/kv.ts";
import { checkBooks } from "../support/books.ts";
import { createWorld, type World } from "../support/world.ts";

const depositPath = "/v1/user/balance/deposit";
const chargePath = "/v1/user/charge";

function send(world: World, path: string, key: string, amount: string, user = "ada") {
  return world.json(path, { body: { user, amount }, headers: { "idempotency-key": key } });
}

/** How often an idempotency key's row was read from the store. */
function countLooks(): { looks: number; wrap(kv: Kv): Kv } {
  const counted = {
    looks: 0,
    wrap: (kv: Kv): Kv => ({
      ...kv,
      getMany(keys) {
        counted.looks += keys.filter(([kind]) => kind === "idempotency").length;
        return kv.getMany(keys);
      },
    }),
  };
  return counted;
}

Deno.test("seen keys: a new key is not read, a known one is", async () => {
  const counted = countLooks();
  using world = await createWorld({ wrapKv: counted.wrap });
  await world.deposit("ada", "1");
  for (let n = 0; n < 20; n++) await send(world, depositPath, `order-${n}`, "1");
  assert.equal(counted.looks, 0);
  const { response } = await send(world, depositPath, "order-7", "1");
  assert.equal(response.headers.get("idempotent-replayed"), "true");
  assert.equal(counted.looks, 1);
  assert.equal(world.deps.metrics.retried.value, 0);
  assert.equal((await world.balance("ada")).balance, "21");
});

Deno.test("seen keys: what another process recorded is found by the write, and then read", async () => {
  const counted = countLooks();
  using other = await createWorld();
  using world = await createWorld({ shareWith: other, wrapKv: counted.wrap });
  await send(other, depositPath, "order-1", "5");
  // From here on this process knows the account, and reads nothing for a new key.
  await world.deposit("ada", "1");
  const again = await Promise.all([
    send(world, depositPath, "order-1", "5"),
    send(world, depositPath, "order-2", "2"),
    send(world, depositPath, "order-3", "4", "bob"),
  ]);
  const replayed = again.map(({ response }) => response.headers.get("idempotent-replayed"));
  assert.deepEqual(replayed, ["true", null, null]);
  assert.equal((await world.balance("ada")).balance, "8");
  assert.equal((await world.balance("bob")).balance, "4");
  counted.looks = 0;
  await send(world, depositPath, "order-4", "1");
  assert.equal(counted.looks, 1, "after a surprise this process looks first");
  await checkBooks(world, "ada");
});

Deno.test("seen keys: a charge that took the last money is not refused when it is repeated", async () => {
  using other = await createWorld();
  using world = await createWorld({ shareWith: other });
  await other.deposit("ada", "5");
  await send(other, chargePath, "order-1", "5");
  await world.deposit("ada", "1");
  const { body, response } = await send(world, chargePath, "order-1", "5");
  assert.equal(body.success, true, JSON.stringify(body));
  assert.equal(response.headers.get("idempotent-replayed"), "true");
  assert.equal((await world.balance("ada")).balance, "1");
});

Deno.test("seen keys: a key that another process used for something else is 422", async () => {
  using other = await createWorld();
  using world = await createWorld({ shareWith: other });
  await send(other, depositPath, "order-1", "5");
  await world.deposit("ada", "1");
  const { status, body } = await send(world, depositPath, "order-1", "6");
  assert.equal(status, 422);
  assert.equal(body.error.code, "idempotency_key_reused");
  assert.equal((await world.balance("ada")).balance, "6");
});

Deno.test("seen keys: names are remembered for at least 10,000 others; caution ends after as many", () => {
  const seenKeys = createSeenKeys();
  assert.equal(seenKeys.isNew("first"), true);
  for (let n = 0; n < 10_000; n++) assert.equal(seenKeys.isNew(`other-${n}`), true);
  assert.equal(seenKeys.isNew("first"), false);
  assert.equal(seenKeys.isNew("other-0"), false);
  seenKeys.onCollision();
  for (let n = 0; n < 10_000; n++) assert.equal(seenKeys.isNew(`later-${n}`), false);
  assert.equal(seenKeys.isNew("last"), true);
});

import assert from "node:assert/strict";
import { strangersBodyDeadlineMs } from "../../src/base/limits.ts";
import { settle } from "../support/clock.ts";
import { createScriptedStore } from "../support/store.ts";
import { createWorld, type World } from "../support/world.ts";

const form = { "content-type": "application/x-www-form-urlencoded" };
const json = { "content-type": "application/json" };
const signed = { ...json, "stripe-signature": `t=1767225600,v1=${"a".repeat(64)}` };

/** Sends the first byte of a body that never ends, without a key. */
function sendSlowly(world: World, path: string, headers: Record<string, string>) {
  const raw = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(new Uint8Array([0x7b])),
  });
  return world.call(path, { raw, key: null, headers });
}

const pages: [path: string, headers: Record<string, string>][] = [
  ["/console/sign-in", form],
  ["/wallet", form],
  ["/wallet/sign-in/options", json],
  ["/authorize/x", form],
  ["/v1/stripe", signed],
];

for (const [path, headers] of pages) {
  Deno.test(`unauthenticated: a body must arrive soon, or is 408: ${path}`, async () => {
    const stripe = { STRIPE_SECRET_KEY: "sk_test_x", STRIPE_WEBHOOK_SECRET: "whsec_x" };
    using world = await createWorld({ env: stripe });
    const slow = sendSlowly(world, path, headers);
    await settle();
    await world.clock.advance(strangersBodyDeadlineMs);
    const { status, body } = await slow;
    assert.equal(status, 408);
    await body?.cancel();
  });
}

Deno.test("probes: those that wait for the store take no capacity", async () => {
  const store = createScriptedStore();
  using world = await createWorld({ env: { REQUESTS_MAX: "2" }, wrapKv: store.wrap });
  const gate = Promise.withResolvers<void>();
  let writes = 0;
  store.atomic = async (write, real) => {
    writes++;
    await gate.promise;
    return await real(write);
  };
  const probes = Array.from({ length: 10 }, () => world.json("/readyz", { key: null }));
  await settle();
  const models = await world.json("/v1/models");
  assert.equal(models.status, 200);
  assert.equal(writes, 1, "and share one write");
  gate.resolve();
  for (const probe of probes) assert.equal((await probe).status, 200);
  assert.equal((await world.json("/readyz", { key: null })).status, 200);
  assert.equal(writes, 2, "the next one has its own");
});

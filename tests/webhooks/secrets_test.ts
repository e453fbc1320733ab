import assert from "node:assert/strict";
import { serviceSignature, standardSignatures } from "../../src/webhooks/delivery/signature.ts";
import { deliver, operate, subscribe, subscriptionsPath } from "../support/webhooks.ts";
import { createWorld, type World } from "../support/world.ts";

/** That the next delivery is signed by all of these, and our own header by this one. */
async function assertSigned(world: World, secrets: string[], ours: string): Promise<void> {
  await world.deposit("ada", "1");
  await deliver(world);
  const { headers, raw } = world.subscriber.received.at(-1) ?? assert.fail();
  const timestamp = Number(headers["webhook-timestamp"]);
  const signed = { id: headers["webhook-id"] ?? "", timestamp, body: raw };
  assert.equal(headers["webhook-signature"], standardSignatures(secrets, signed));
  assert.equal(headers["x-service-signature"], serviceSignature(ours, raw));
}

async function rotate(world: World, id: string, overlapSeconds: number): Promise<string> {
  const body = { rotateSecret: true, overlapSeconds };
  const answer = await operate(world, `/subscriptions/${id}`, { method: "PATCH", body });
  return answer.body.subscription.secret;
}

Deno.test("secrets: a rotated one overlaps with those before it, each until its own end", async () => {
  using world = await createWorld();
  const { id, secret: first } = await subscribe(world);
  const second = await rotate(world, id, 3600);
  assert.notEqual(second, first);
  await assertSigned(world, [second, first], first);
  const third = await rotate(world, id, 7200);
  await assertSigned(world, [third, second, first], first);
  await world.clock.advance(3_600_000);
  await assertSigned(world, [third, second], second);
  await world.clock.advance(3_600_000);
  await assertSigned(world, [third], third);
});

Deno.test("secrets: none outlives the one that replaced it, and at most five sign", async () => {
  using world = await createWorld();
  const { id } = await subscribe(world);
  await rotate(world, id, 3600);
  const alone = await rotate(world, id, 0);
  await assertSigned(world, [alone], alone);
  const all = [alone];
  for (let n = 0; n < 5; n++) all.unshift(await rotate(world, id, 60));
  await assertSigned(world, all.slice(0, 5), String(all[4]));
});

const badSecrets = ["whsec_!!!!!!!!!!!!!!", "whsec_c2hvcnQ=", "whsec_ab cd"];

for (const secret of badSecrets) {
  Deno.test(`subscriptions: '${secret}' would sign with another key than it seems, and is refused`, async () => {
    using world = await createWorld();
    const body = { url: "https://hooks.example.com/x", events: ["balance.*"], secret };
    const made = await world.json(subscriptionsPath, { body });
    assert.deepEqual([made.status, made.body.error.param], [400, "secret"]);
  });
}

Deno.test("subscriptions: no more than 100 are active, also by enabling some again", async () => {
  using world = await createWorld();
  const [first] = [await subscribe(world)];
  await world.json(`${subscriptionsPath}/${first?.id}`, { method: "DELETE" });
  for (let n = 0; n < 100; n++) {
    await subscribe(world, { url: `https://hooks.example.com/${n}` });
  }
  const { status } = await operate(world, `/subscriptions/${first?.id}`, {
    method: "PATCH",
    body: { isActive: true },
  });
  assert.equal(status, 400);
});

import assert from "node:assert/strict";
import { outboxGraceMs } from "../../src/webhooks/delivery/fan_out.ts";
import { createGate, createScriptedStore } from "../support/store.ts";
import { createWorld } from "../support/world.ts";
import { deliver, logs, subscribe } from "../support/webhooks.ts";

Deno.test("recovery: a process that learns late that its event has landed leaves it to the one that took it", async () => {
  const store = createScriptedStore();
  using world = await createWorld({ wrapKv: store.wrap });
  await subscribe(world);
  using other = await createWorld({ shareWith: world });
  const gate = createGate();
  store.atomic = async (write, real) => {
    const version = await real(write);
    if (write.sets.some(({ key }) => key[0] === "outbox")) await gate.opened;
    return version;
  };
  world.subscriber.reply(() => ({ status: 500 }));
  const deposit = world.deposit("ada", "1");
  await world.clock.advance(outboxGraceMs + 1);
  await deliver(other);
  assert.equal(world.subscriber.received.length, 1);
  gate.open();
  await deposit;
  await world.app.dispatcher.idle();
  assert.equal(world.subscriber.received.length, 1, "its retry is not due yet");
  const [entry] = await logs(other);
  assert.deepEqual([entry?.status, entry?.attempts], ["pending", 1]);
});

import assert from "node:assert/strict";
import {
  allDuePrefix,
  allLogsPrefix,
  deliveriesPrefix,
  deliveryKey,
  dueKey,
  eventKey,
  logKey,
  outboxKey,
  outboxPrefix,
  readyPrefix,
} from "../../src/store/keys.ts";
import { filterName } from "../../src/webhooks/delivery/delivery_rows.ts";
import type { Delivery } from "../../src/webhooks/schema.ts";
import { type Damage, keysUnder, put, remove, testDamage } from "../support/verify.ts";
import type { World } from "../support/world.ts";

async function pendingDelivery(world: World): Promise<Delivery> {
  const keys = await keysUnder(world, deliveriesPrefix);
  const rows = await world.deps.kv.getMany(keys);
  const all: Delivery[] = rows.map(({ value }) =>
    JSON.parse(new TextDecoder().decode(value ?? assert.fail()))
  );
  return all.find(({ status }) => status === "pending") ?? assert.fail("one is pending");
}

const damages: Damage[] = [
  [
    "a pending delivery without its due row",
    async (world) => {
      const [due] = await keysUnder(world, allDuePrefix);
      await remove(world, due ?? assert.fail());
    },
    () => /^delivery dly_\S+ of pw_\S+ is pending, but has no row due sub_/,
  ],
  [
    "a second due row of a delivery",
    async (world) => {
      const { id, subscriptionId, dueAt, projectId } = await pendingDelivery(world);
      const key = dueKey(subscriptionId, dueAt + 1, id);
      await put(world, key, new TextEncoder().encode(projectId));
    },
    () => /^row due sub_\S+ \d+ dly_\S+ names a delivery that is pending otherwise/,
  ],
  [
    "a due row of no delivery",
    async (world) => {
      const { id, projectId } = await pendingDelivery(world);
      await remove(world, deliveryKey(projectId, id));
    },
    () => /^row due sub_\S+ \d+ dly_\S+ names a delivery that is not stored/,
  ],
  [
    "a due row that no ready row leads to",
    async (world) => {
      for (const key of await keysUnder(world, readyPrefix)) await remove(world, key);
    },
    () => /^row due sub_\S+ \d+ dly_\S+ is due, but no ready row is as early/,
  ],
  [
    "a delivery that cannot be read",
    async (world) => {
      const { id, projectId } = await pendingDelivery(world);
      await put(world, deliveryKey(projectId, id), new TextEncoder().encode("{"));
    },
    () => /^delivery dly_\S+ of pw_\S+ cannot be read/,
  ],
  [
    "a log row that is gone",
    async (world) => {
      const [row] = await keysUnder(world, allLogsPrefix);
      await remove(world, row ?? assert.fail());
    },
    () => /^delivery dly_\S+ of pw_\S+ is error, but has no row log pw_\S+ error \* \*/,
  ],
  [
    "a log row of another status",
    async (world) => {
      const { id, projectId } = await pendingDelivery(world);
      await put(world, logKey(projectId, filterName({}, "success"), id), new Uint8Array());
    },
    () => /^row log pw_\S+ success \* \* dly_\S+ names a delivery that is pending otherwise/,
  ],
  [
    "an outbox row of no event",
    async (world) => {
      const [key] = await keepOutboxRow(world);
      await remove(world, eventKey(world.projectId, String(key?.[1])));
    },
    () => /^outbox row evt_\S+ names an event that is not stored/,
  ],
  [
    "an outbox row that nobody takes up",
    async (world) => {
      await keepOutboxRow(world);
      await world.clock.advance(180_000);
    },
    () => /^outbox row evt_\S+ has waited for 180 s/,
  ],
];

/** An event that the dispatcher is not notified of. */
async function keepOutboxRow(world: World) {
  const id = world.deps.id("evt");
  const row = { projectId: world.projectId, eventType: "updated", deliveries: [] };
  const [set] = [{ key: outboxKey(id), value: new TextEncoder().encode(JSON.stringify(row)) }];
  await put(world, set.key, set.value);
  await put(world, eventKey(world.projectId, id), new TextEncoder().encode("{}"));
  return await keysUnder(world, outboxPrefix);
}

damages.forEach(testDamage);

import assert from "node:assert/strict";
import type { Committer } from "../../src/store/commit.ts";
import { afterAttempt, leasedDelivery, newDelivery } from "../../src/webhooks/delivery/delivery.ts";
import { Endpoint } from "../../src/webhooks/delivery/endpoint.ts";
import { putDelivery } from "../../src/webhooks/delivery/delivery_rows.ts";
import { createResultRecorder, type DeliveryResult } from "../../src/webhooks/delivery/record.ts";
import { emptyWrite } from "../../src/store/kv.ts";
import { deliveryKey } from "../../src/store/keys.ts";
import type { SendResult } from "../../src/webhooks/delivery/send.ts";
import { encodeDelivery, readDeliveries, readHealth } from "../../src/webhooks/store.ts";
import { createGate } from "../support/store.ts";
import { createWorld, type World } from "../support/world.ts";

type Answer = Omit<SendResult, "result" | "bodyHead">;
const answered: Answer = {
  at: 0,
  latencyMs: 5,
  responseCode: 200,
  error: null,
  retryAfterMs: null,
};
const refused: Answer = { ...answered, responseCode: 500, error: "answered 500" };
const rules = { policy: { attemptsMax: 8, backoffBaseMs: 30_000 }, random: 0.5 };

/** A claimed delivery, and the result of its attempt. */
async function claim(world: World, endpoint: Endpoint, answer = answered): Promise<DeliveryResult> {
  const { deps, clock } = world;
  const before = leasedDelivery(
    newDelivery({
      id: deps.id("dly"),
      projectId: endpoint.projectId,
      subscriptionId: endpoint.id,
      eventId: deps.id("evt"),
      eventType: "balance.deposit.created",
      eventVersion: "1",
    }, clock.now()),
    "lease",
    clock.now() + 25_000,
  );
  const write = emptyWrite();
  putDelivery(write, null, before);
  const version = await deps.committer.commit(write) ?? assert.fail();
  const after = afterAttempt(before, { ...answer, bodyHead: null }, rules);
  const row = { key: deliveryKey(endpoint.projectId, before.id), version };
  return { before, row, after, tried: true };
}

/** A committer that counts, and waits for its gate. */
function gated({ deps }: World) {
  const gate = createGate();
  const counts = { commits: 0 };
  const committer: Committer = {
    ...deps.committer,
    async commit(write) {
      counts.commits++;
      await gate.opened;
      return await deps.committer.commit(write);
    },
  };
  return { committer, counts, gate };
}

Deno.test("results: many that arrive during one write share the next few, and are bounded", async () => {
  using world = await createWorld();
  const endpoint = new Endpoint(world.projectId, "sub_test");
  const all: DeliveryResult[] = [];
  for (let n = 0; n < 300; n++) all.push(await claim(world, endpoint));
  const { committer, counts, gate } = gated(world);
  const results = createResultRecorder({ ...world.deps, committer });
  const recorded = all.slice(0, 200).map((result) => results.record(endpoint, result));
  await new Promise((resolve) => setTimeout(resolve));
  assert.equal(results.isBehind(endpoint), false);
  recorded.push(...all.slice(200).map((result) => results.record(endpoint, result)));
  assert.equal(results.isBehind(endpoint), true, "its slots are kept until some are written");
  assert.equal(results.isBehind(new Endpoint(world.projectId, "sub_other")), false);
  gate.open();
  await Promise.all(recorded);
  assert.equal(results.isBehind(endpoint), false);
  assert.ok(counts.commits <= 7, `${counts.commits} writes`);
});

Deno.test("results: what another process writes of the same subscription does not conflict", async () => {
  using world = await createWorld();
  using other = await createWorld({ shareWith: world });
  const endpoint = new Endpoint(world.projectId, "sub_test");
  const { committer, counts, gate } = gated(world);
  const ours = createResultRecorder({ ...world.deps, committer });
  const recorded = ours.record(endpoint, await claim(world, endpoint));
  const theirs = createResultRecorder(other.deps);
  await theirs.record(endpoint, await claim(other, endpoint));
  gate.open();
  await recorded;
  assert.equal(counts.commits, 1);
});

Deno.test("results: consecutive failures are counted across writes and processes", async () => {
  using world = await createWorld();
  using other = await createWorld({ shareWith: world });
  const endpoint = new Endpoint(world.projectId, "sub_test");
  const [ours, theirs] = [createResultRecorder(world.deps), createResultRecorder(other.deps)];
  const fail = async (results: typeof ours) =>
    await results.record(endpoint, await claim(world, endpoint, refused));
  const health = async () => (await readHealth(world.deps.kv, [endpoint]))[0];
  for (const results of [ours, theirs, ours]) await fail(results);
  const failingSince = "1970-01-01T00:00:00.005Z";
  assert.deepEqual(await health(), { consecutiveFailures: 3, lastDeliveredAt: null, failingSince });
  const lastDeliveredAt = new Date(answered.at + answered.latencyMs).toISOString();
  const mixed = await Promise.all(
    [answered, refused, answered, refused, refused].map((answer) => claim(world, endpoint, answer)),
  );
  await Promise.all(mixed.map((result) => theirs.record(endpoint, result)));
  assert.deepEqual(await health(), { consecutiveFailures: 2, lastDeliveredAt, failingSince });
  await fail(ours);
  assert.deepEqual(await health(), { consecutiveFailures: 3, lastDeliveredAt, failingSince });
});

Deno.test("results: of many attempts the last twenty are kept, and all are counted", async () => {
  using world = await createWorld();
  let { after } = await claim(world, new Endpoint(world.projectId, "sub_test"));
  const policy = { attemptsMax: 50, backoffBaseMs: 30_000 };
  for (let at = 1; at <= 30; at++) {
    const result = { ...answered, at, responseCode: 500, error: "status 500", bodyHead: null };
    after = afterAttempt(after, result, { policy, random: 0.5 });
  }
  assert.equal(after.attempts, 31);
  assert.deepEqual(after.history.map(({ at }) => at), Array.from({ length: 20 }, (_, n) => 11 + n));
});

Deno.test("results: a result that another process has written first is void, and not counted", async () => {
  using world = await createWorld();
  const endpoint = new Endpoint(world.projectId, "sub_test");
  const [own, lost] = [await claim(world, endpoint), await claim(world, endpoint)];
  // Another process has it since its lease ended.
  const { before, row } = lost;
  await world.deps.kv.atomic({
    ...emptyWrite(),
    sets: [{ key: row.key, value: encodeDelivery(before ?? assert.fail()) }],
  });
  const results = createResultRecorder(world.deps);
  // The first is written by itself, and the others share the next write.
  const first = await claim(world, endpoint);
  await Promise.all([first, own, lost].map((result) => results.record(endpoint, result)));
  assert.equal(world.deps.metrics.deliveries.delivered.value, 2);
  const rows = await readDeliveries(world.deps.kv, [own.after, lost.after]);
  assert.deepEqual(rows.map((found) => found?.value.status), ["success", "pending"]);
  const voided = world.logged.filter(({ event }) => event === "webhook_result_void");
  assert.deepEqual(voided.map(({ delivery }) => delivery), [lost.after.id]);
});

import assert from "node:assert/strict";
import type { Committer } from "../src/store/commit.ts";
import { afterAttempt, claimed, newDelivery } from "../src/webhooks/delivery.ts";
import { Endpoint } from "../src/webhooks/endpoint.ts";
import { putDelivery } from "../src/webhooks/delivery_rows.ts";
import { createResults, type Result } from "../src/webhooks/results.ts";
import { emptyWrite } from "../src/store/kv.ts";
import { deliveryKey } from "../src/store/keys.ts";
import { createWorld, type World } from "./support/world.ts";

const answered = { at: 0, latencyMs: 5, responseCode: 200, error: null, retryAfterMs: null };
const rules = { policy: { attemptsMax: 8, backoffBaseMs: 30_000 }, random: 0.5 };

/** A claimed delivery, and its success. */
async function claim(world: World, endpoint: Endpoint): Promise<Result> {
  const { deps, clock } = world;
  const before = claimed(
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
  const after = afterAttempt(before, { ...answered, bodyHead: null }, rules);
  const row = { key: deliveryKey(endpoint.projectId, before.id), version };
  return { before, row, after, tried: true };
}

Deno.test("results: many that come during one write share the next few, and are bounded", async () => {
  using world = await createWorld();
  const endpoint = new Endpoint(world.projectId, "sub_test");
  const all: Result[] = [];
  for (let n = 0; n < 300; n++) all.push(await claim(world, endpoint));
  const gate = Promise.withResolvers<void>();
  let commits = 0;
  const committer: Committer = {
    ...world.deps.committer,
    async commit(write) {
      commits++;
      await gate.promise;
      return await world.deps.committer.commit(write);
    },
  };
  const results = createResults({ ...world.deps, committer });
  const recorded = all.slice(0, 200).map((result) => results.record(endpoint, result));
  await new Promise((resolve) => setTimeout(resolve));
  assert.equal(results.isBehind(endpoint), false);
  recorded.push(...all.slice(200).map((result) => results.record(endpoint, result)));
  assert.equal(results.isBehind(endpoint), true, "its slots are kept until some are written");
  assert.equal(results.isBehind(new Endpoint(world.projectId, "sub_other")), false);
  gate.resolve();
  await Promise.all(recorded);
  assert.equal(results.isBehind(endpoint), false);
  assert.ok(commits <= 7, `${commits} writes`);
});

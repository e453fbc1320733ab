import assert from "node:assert/strict";
import { fromBytes } from "../../src/base/json.ts";
import { unwrittenMaxMs } from "../../src/webhooks/delivery/fan_out.ts";
import type { Kv } from "../../src/store/kv.ts";
import { createScriptedStore } from "../support/store.ts";
import { type Body, createWorld } from "../support/world.ts";
import { deliver, logs, operate, subscribe, subscriptionsPath } from "../support/webhooks.ts";

Deno.test("logs: an entry describes the delivery, and contains the event as it was sent", async () => {
  using world = await createWorld();
  const { id: subscriptionId } = await subscribe(world);
  await world.deposit("ada", "5");
  await deliver(world);
  const [entry] = await logs(world);
  const [received] = world.subscriber.received;
  const at = new Date(world.clock.now()).toISOString();
  assert.deepEqual(entry, {
    id: received?.body.delivery.id,
    subscriptionId,
    status: "success",
    attempts: 1,
    lastAttemptAt: at,
    nextRetryAt: null,
    responseCode: 200,
    responseLatencyMs: 0,
    error: null,
    createdAt: at,
    updatedAt: at,
    event: received?.body.event,
  });
});

Deno.test("logs: every combination of filters finds what it should, newest first", async () => {
  using world = await createWorld();
  const subscriptions = [await subscribe(world), await subscribe(world)];
  const statuses = [200, 500, 404];
  let n = 0;
  world.subscriber.reply(() => ({ status: statuses[n++ % 3] ?? 200 }));
  for (let round = 0; round < 6; round++) {
    await world.deposit("ada", "5");
    await world.json("/v1/user/charge", { body: { user: "ada", amount: "1" } });
    await deliver(world);
  }
  const all = await logs(world);
  assert.equal(all.length, 6 * 3 * 2);
  assert.deepEqual(all.map(({ id }) => id), all.map(({ id }) => id).sort().reverse());
  const types = ["balance.deposit.created", "balance.charge.created", "balance.charge.completed"];
  for (const subscriptionId of [undefined, ...subscriptions.map(({ id }) => id as string)]) {
    for (const status of [undefined, "pending", "success", "error"]) {
      for (const eventType of [undefined, ...types, "archived"]) {
        const filters = Object.entries({ subscriptionId, status, eventType })
          .filter(([, value]) => value !== undefined);
        const query = filters.map(([name, value]) => `&${name}=${value}`).join("");
        const expected = all.filter((entry) =>
          (!subscriptionId || entry.subscriptionId === subscriptionId) &&
          (!status || entry.status === status) && (!eventType || entry.event.type === eventType)
        );
        assert.deepEqual(await logs(world, query), expected, query);
      }
    }
  }
});

Deno.test("logs: pages neither skip nor repeat while new entries arrive", async () => {
  using world = await createWorld();
  await subscribe(world);
  for (let n = 0; n < 25; n++) await world.deposit("ada", "1");
  await deliver(world);
  const before = (await logs(world)).map(({ id }) => id);
  const seen: string[] = [];
  let cursor = "";
  do {
    const { body } = await world.json(`/v1/webhooks/logs?limit=4${cursor}`);
    seen.push(...body.logs.map(({ id }: { id: string }) => id));
    cursor = body.nextCursor ? `&cursor=${encodeURIComponent(body.nextCursor)}` : "";
    await world.deposit("ada", "1");
    await deliver(world);
  } while (cursor !== "");
  assert.deepEqual(seen, before);
});

Deno.test("logs: 20 entries by default, 100 at most, and an invalid filter is 400", async () => {
  using world = await createWorld();
  await subscribe(world);
  for (let n = 0; n < 21; n++) await world.deposit("ada", "1");
  await deliver(world);
  const { body } = await world.json("/v1/webhooks/logs");
  assert.equal(body.logs.length, 20);
  for (
    const [query, param] of [
      ["limit=0", "limit"],
      ["limit=101", "limit"],
      ["limit=ten", "limit"],
      ["status=done", "status"],
      ["eventType=balance.deposit", "eventType"],
      ["eventType=*", "eventType"],
      ["cursor=nonsense", "cursor"],
      ["cursor=%00", "cursor"],
    ]
  ) {
    const answer = await world.json(`/v1/webhooks/logs?${query}`);
    assert.deepEqual([answer.status, answer.body.error?.param], [400, param], query);
  }
  const { body: family } = await world.json("/v1/webhooks/logs?eventType=balance.deposit.*");
  assert.match(family.error.message, /closest is 'balance\.[a-z.]+'/, "one that is accepted");
  const foreign = await world.json("/v1/webhooks/logs?subscriptionId=sub_0");
  assert.deepEqual([foreign.status, foreign.body.logs], [200, []]);
});

Deno.test("logs: another project sees nothing of it", async () => {
  using world = await createWorld();
  const other = await world.makeProject();
  const { id } = await subscribe(world);
  await world.deposit("ada", "1");
  await deliver(world);
  for (const query of ["", `?subscriptionId=${id}`]) {
    const { body } = await world.json(`/v1/webhooks/logs${query}`, { key: other.apiKey });
    assert.deepEqual(body.logs, []);
  }
});

Deno.test("logs: ended deliveries are kept for the retention, then they and their events are deleted", async () => {
  using world = await createWorld({ env: { WEBHOOK_RETENTION_DAYS: "2" } });
  await subscribe(world);
  for (let n = 0; n < 120; n++) await world.deposit("ada", "1");
  await deliver(world);
  const day = 24 * 3_600_000;
  await world.clock.advance(2 * day - 1_000);
  await world.deposit("ada", "1");
  await deliver(world);
  await world.app.sweep();
  assert.equal((await logs(world)).length, 100, "the first page of 121");
  await world.clock.advance(2_000);
  await world.app.sweep();
  assert.equal((await logs(world)).length, 1);
  const events = () => world.deps.kv.list({ prefix: ["event"], limit: 500 });
  assert.equal((await events()).length, 121, "kept while a delivery could still be pending");
  await world.clock.advance(10 * day);
  await world.app.sweep();
  assert.equal((await events()).length, 0);
  assert.deepEqual(await logs(world), []);
  assert.equal((await world.deps.kv.list({ prefix: ["delivery"], limit: 5 })).length, 0);
  assert.equal((await world.deps.kv.list({ prefix: ["log"], limit: 5 })).length, 0);
});

Deno.test("logs: after a pause in which both became old, deliveries are deleted before their events", async () => {
  const store = createScriptedStore();
  using world = await createWorld({ env: { WEBHOOK_RETENTION_DAYS: "2" }, wrapKv: store.wrap });
  for (let n = 0; n < 3; n++) await subscribe(world);
  for (let n = 0; n < 50; n++) await world.deposit("ada", "1");
  await deliver(world);
  await world.clock.advance(12 * 24 * 3_600_000);
  let deleted = 0;
  store.atomic = async (write, real) => {
    const ids = write.deletes.filter(([name]) => name === "event").map(([, , id]) => id);
    deleted += ids.length;
    const left = ids.length > 0
      ? await world.deps.kv.list({ prefix: ["delivery"], limit: 500 })
      : [];
    const events = left.map(({ value }) => value && fromBytes<Body>(value).eventId);
    assert.deepEqual(ids.filter((id) => events.includes(id)), []);
    return await real(write);
  };
  await world.app.sweep();
  assert.equal(deleted, 50);
});

Deno.test("logs: a sweep reaches every project, however many there are", async () => {
  using world = await createWorld({ env: { WEBHOOK_RETENTION_DAYS: "2" } });
  for (let n = 0; n < 99; n++) await world.makeProject();
  const last = await world.makeProject();
  const { apiKey: key } = last;
  const body = { url: "https://hooks.example.com/farebox", events: ["*"] };
  assert.equal((await world.json(subscriptionsPath, { key, body })).status, 201);
  const deposit = { user: "ada", amount: "1" };
  await world.json("/v1/user/balance/deposit", { key, body: deposit });
  await deliver(world);
  await world.clock.advance(3 * 24 * 3_600_000);
  const left = () => world.deps.kv.list({ prefix: ["delivery", last.projectId], limit: 1 });
  assert.equal((await left()).length, 1);
  await world.app.sweep();
  assert.deepEqual(await left(), []);
});

Deno.test("logs: a sweep removes all that is old, or as much as it has time for, of every project", async () => {
  const store = createScriptedStore();
  const env = { WEBHOOK_RETENTION_DAYS: "2" };
  using world = await createWorld({ env, wrapKv: store.wrap });
  const other = await world.makeProject();
  for (const key of [world.apiKey, other.apiKey]) {
    const body = { url: "https://hooks.example.com/farebox", events: ["*"] };
    assert.equal((await world.json(subscriptionsPath, { key, body })).status, 201);
    const deposit = { user: "ada", amount: "1" };
    for (let n = 0; n < 900; n += 100) {
      const made = Array.from(
        { length: 100 },
        () => world.json("/v1/user/balance/deposit", { key, body: deposit }),
      );
      await Promise.all(made);
    }
    await deliver(world);
  }
  const left = async (projectId: string) =>
    (await world.deps.kv.list({ prefix: ["delivery", projectId], limit: 1_000 })).length;
  const both = () => Promise.all([world.projectId, other.projectId].map(left));
  assert.deepEqual(await both(), [900, 900]);
  await world.clock.advance(3 * 24 * 3_600_000);
  // A store that takes half a second for each write.
  store.atomic = async (write, real) => {
    await world.clock.advance(500);
    return await real(write);
  };
  await world.app.sweep();
  const [own = 0, others = 0] = await both();
  assert.ok(own < 900 && own > 600 && others < 900 && others > 600, `${own}, ${others}`);
  store.atomic = null;
  await world.app.sweep();
  assert.deepEqual(await both(), [0, 0]);
});

Deno.test("logs: a delivery in its first attempt is found by its filters only", async () => {
  using world = await createWorld();
  const [own, other] = [await subscribe(world), await subscribe(world)];
  world.subscriber.reply(() => new Promise(() => {}));
  await world.deposit("ada", "1");
  await world.clock.advance(unwrittenMaxMs);
  const found = async (query: string) =>
    (await logs(world, query)).map(({ subscriptionId }) => subscriptionId);
  assert.deepEqual((await found("")).sort(), [own.id, other.id].sort());
  assert.deepEqual(await found(`&subscriptionId=${own.id}`), [own.id]);
  const type = "&eventType=balance.deposit.created";
  assert.deepEqual(await found(`&subscriptionId=${other.id}${type}`), [other.id]);
  assert.deepEqual(await found(`&subscriptionId=${other.id}&eventType=balance.charge.created`), []);
  assert.deepEqual(await found("&eventType=balance.charge.created"), []);
});

Deno.test("logs: a delivery that is made pending again while old ones are removed is kept", async () => {
  let between: (() => Promise<unknown>) | null = null;
  const wrapKv = (kv: Kv): Kv => ({
    ...kv,
    async list(options) {
      const rows = await kv.list(options);
      const isTrims = options.prefix[0] === "log" && options.end && !options.start;
      const work = isTrims && rows.length > 0 ? between : null;
      if (work) between = null;
      await work?.();
      return rows;
    },
  });
  using world = await createWorld({ wrapKv, env: { WEBHOOK_RETENTION_DAYS: "1" } });
  await subscribe(world, { events: ["balance.deposit.*"] });
  await world.deposit("ada", "1");
  await deliver(world);
  const [old] = await logs(world);
  assert.equal(old?.status, "success");
  await world.clock.advance(2 * 24 * 3_600_000);
  world.subscriber.reply(() => ({ status: 500 }));
  between = () => operate(world, `/deliveries/${old?.id}/redeliver`);
  await world.app.sweep();
  assert.equal(between, null, "the sweep has looked at it");
  const [again] = await logs(world);
  assert.deepEqual([again?.id, again?.status], [old?.id, "pending"]);
});

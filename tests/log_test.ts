import assert from "node:assert/strict";
import { chat, chatStream, until } from "./support/chat.ts";
import { createScriptedStore } from "./support/store.ts";
import { chunk, sse } from "./support/upstream.ts";
import { deliver, subscribe } from "./support/webhooks.ts";
import { createWorld } from "./support/world.ts";

const named = { headers: { "x-request-id": "the-callers-own" } };

Deno.test("log: what a chat leaves behind names its request, as its answer does", async () => {
  const store = createScriptedStore();
  using world = await createWorld({ wrapKv: store.wrap });
  await world.deposit("ada", "1");
  const line = (event: string) => world.logged.find((line) => line.event === event) ?? {};
  world.upstream.once(() => sse([chunk({ content: "Hi" })], { done: false }));
  const streamed = await chatStream(world, {}, named);
  await streamed.text();
  assert.equal(streamed.headers.get("x-request-id"), "the-callers-own");
  const { requestId, chat: id } = line("stream_broken");
  assert.equal(requestId, "the-callers-own");
  const activity = streamed.headers.get("x-service-activity-id");
  assert.equal(
    `${id}`.replace("req_", "act_"),
    activity,
    "and what it is in events and activities",
  );

  world.upstream.once(() => {
    store.dead = true;
    return new Response("", { status: 500 });
  });
  await until(world, chat(world, {}, named));
  store.dead = false;
  assert.equal(line("release_failed").requestId, "the-callers-own");
  assert.match(String(line("release_failed").chat), /^req_/);
});

Deno.test("log: a webhook that is given up names its delivery and event", async () => {
  using world = await createWorld();
  await subscribe(world);
  world.subscriber.reply(() => ({ status: 410 }));
  await world.deposit("ada", "1");
  await deliver(world);
  const [sent] = world.subscriber.received;
  const line = world.logged.find(({ event }) => event === "webhook_errored");
  assert.deepEqual(line, {
    level: "warn",
    event: "webhook_errored",
    delivery: sent?.body.delivery.id,
    eventId: sent?.body.event.id,
    eventType: "balance.deposit.created",
    attempts: 1,
    error: "status 410",
  });
});

import assert from "node:assert/strict";
import { chat, chatStream, until } from "../support/chat.ts";
import { createScriptedStore } from "../support/store.ts";
import { chunk, sse } from "../support/upstream.ts";
import { deliver, subscribe } from "../support/webhooks.ts";
import { createWorld } from "../support/world.ts";

const named = { headers: { "x-request-id": "the-callers-own" } };

Deno.test("log: a chat's lines name its request, as its response does", async () => {
  const store = createScriptedStore();
  using world = await createWorld({ wrapKv: store.wrap });
  await world.deposit("ada", "1");
  const line = (event: string) => world.logged.find((line) => line.event === event) ?? {};
  world.upstream.once(() => sse([chunk({ content: "Hi" })], { done: false }));
  const streamed = await chatStream(world, {}, named);
  await streamed.text();
  assert.equal(streamed.headers.get("x-request-id"), "the-callers-own");
  const { requestId, chat: id, code, cause } = line("stream_broken");
  assert.deepEqual([code, cause], ["upstream_error", "a stream without its end"]);
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
  const failed = line("release_failed");
  assert.equal(failed.requestId, "the-callers-own");
  assert.match(String(failed.chat), /^req_/);
  assert.equal(failed.code, "store_unavailable");
  assert.match(String(failed.cause), /connection refused/, "what callers are not told");
});

Deno.test("log: a stream that cannot be charged logs the cause", async () => {
  const store = createScriptedStore();
  using world = await createWorld({ wrapKv: store.wrap });
  await world.deposit("ada", "1");
  world.upstream.once(() => {
    store.dead = true;
    return sse([chunk({ content: "Hi" }, "stop")]);
  });
  await until(world, chatStream(world).then((response) => response.text()));
  store.dead = false;
  const line = world.logged.find(({ event }) => event === "stream_failed");
  assert.equal(line?.code, "store_unavailable");
  assert.match(String(line?.cause), /^TypeError: error sending request: connection refused\n/);
});

Deno.test("log: a webhook that is given up is logged with its delivery and event", async () => {
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

const said = "told in confidence";

const broken: [what: string, body: string][] = [
  ["text", said],
  ["a body that is cut off", `{"messages":[{"role":"user","content":"${said}`],
  ["a body with a number beyond doubles", `{"a":12345678901234567890,"content":${said}`],
];

for (const [what, raw] of broken) {
  Deno.test(`log: nothing of ${what} that is not JSON is logged`, async () => {
    using world = await createWorld();
    const { status } = await world.json("/v1/chat/completions", { raw });
    assert.equal(status, 400);
    assert.doesNotMatch(JSON.stringify(world.logged), /told|confid/);
  });
}

const answers: [what: string, body: string][] = [
  ["is cut off", `{"choices":[{"message":{"content":"${said}`],
  ["has no choices", `{"message":{"content":"${said}"}}`],
  ["has a choice without a message", `{"choices":[{"text":"${said}"}]}`],
  ["is no JSON", said],
];

for (const [what, body] of answers) {
  Deno.test(`log: no text of a model's response that ${what} is logged`, async () => {
    using world = await createWorld();
    await world.deposit("ada", "1");
    world.upstream.reply(() => {
      return new Response(body, { headers: { "content-type": "application/json" } });
    });
    assert.equal((await chat(world)).status, 502);
    assert.doesNotMatch(JSON.stringify(world.logged), /told|confid/);
  });
}

Deno.test("log: of an error within a stream, the server's message is logged, and no text", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const error = { message: "out of memory", code: 500 };
  world.upstream.reply(() => sse([{ ...chunk({ content: said }), error }], { done: false }));
  await (await chatStream(world)).text();
  const logged = JSON.stringify(world.logged);
  assert.match(logged, /out of memory/);
  assert.doesNotMatch(logged, /told|confid/);
});

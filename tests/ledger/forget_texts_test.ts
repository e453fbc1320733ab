import assert from "node:assert/strict";
import { createKeptTexts } from "../../src/store/kept_texts.ts";
import { storedRows } from "../support/books.ts";
import { chat, chatStream } from "../support/chat.ts";
import { ada, bob, forgetWholly, rowsNaming } from "../support/forget.ts";
import { completion } from "../support/upstream.ts";
import { deliver, operate, subscribe } from "../support/webhooks.ts";
import { type Body, createWorld, type World } from "../support/world.ts";

const textOf = (user: string, what: string) => `the ${what} of ${user.replace(/@.*/, "")}`;
const day = 24 * 60 * 60 * 1000;

/** A project that keeps all that can be kept, with an upstream that keeps nothing. */
async function keepingWorld(scope: string): Promise<World> {
  const world = await createWorld({
    project: {
      upstream: { url: "https://upstream.test/v1", formats: ["chat"] },
      responseCache: { enabled: true, maxAgeSeconds: 3600, costFactor: "0.1", scope },
      limits: { user: { requestsPerMinute: 1000 } },
    },
  });
  world.upstream.reply(({ body }) => {
    const message = { role: "assistant", content: `said: ${JSON.stringify(body.messages.at(-1))}` };
    return completion({ choices: [{ index: 0, message, finish_reason: "stop" }] });
  });
  await subscribe(world);
  world.subscriber.reply(({ body }) => ({ status: 200, bodyHead: JSON.stringify(body.event) }));
  return world;
}

/** Leaves something of a user wherever a text or a name can be kept. */
async function leaveTraces(world: World, user: string): Promise<void> {
  const messagesOf = (what: string) => [{ role: "user", content: textOf(user, what) }];
  await chat(world, { user, messages: messagesOf("refused prompt") });
  await world.deposit(user, "1");
  const ask = (fields: Body) =>
    world.json("/v1/responses", { body: { model: "test-model", user, ...fields } });
  const first = await ask({ input: textOf(user, "first turn") });
  assert.equal(first.status, 200, JSON.stringify(first.body));
  const more = { previous_response_id: first.body.id, input: textOf(user, "second turn") };
  assert.equal((await ask(more)).status, 200);
  const keyed = {
    headers: { "idempotency-key": `chat-of-${user}`, "x-request-id": `request-of-${user}` },
  };
  await chat(world, { user, messages: messagesOf("keyed prompt") }, keyed);
  await chat(world, { user, messages: messagesOf("cached prompt") });
  await chat(world, { user, messages: messagesOf("cached prompt") });
  world.upstream.once(() => new Response(`{"error":{"message":"no: ${user}"}}`, { status: 401 }));
  await chat(world, { user, messages: messagesOf("failed prompt") });
  world.upstream.once(() => new Response("", { status: 500 }));
  await chatStream(world, { user, messages: messagesOf("streamed prompt") }).catch(() => {});
  await world.json(`/v1/user/balance/topup?user=${encodeURIComponent(user)}`);
  // Its link is renewed after a day.
  await world.clock.advance(day + 1);
  await world.json(`/v1/user/balance/topup?user=${encodeURIComponent(user)}`);
  await chat(world, { user, messages: messagesOf("late prompt") }, keyed);
  await operate(world, `/users/${encodeURIComponent(user)}/charge`, { body: { amount: "0.1" } });
  await deliver(world);
}

/** The rows in which a text of a user can be read, also by who has the keys. */
async function rowsWithTexts(world: World, user: string): Promise<string[]> {
  await world.app.flush();
  const texts = createKeptTexts(world.deps.config.secretsKeys, world.deps.randomBytes);
  const name = user.replace(/@.*/, "");
  return (await storedRows(world)).flatMap(({ key, value }) => {
    const bytes = value ?? new Uint8Array();
    const text = new TextDecoder().decode(bytes) + (texts.textOf(key, bytes) ?? "");
    return text.includes(`of ${name}`) ? [JSON.stringify(key)] : [];
  });
}

for (const scope of ["user", "project"]) {
  Deno.test(`forget: with a cache of the ${scope}, neither the name nor a text stays in any row`, async () => {
    using world = await keepingWorld(scope);
    await leaveTraces(world, ada);
    await leaveTraces(world, bob);
    const textsOfBob = await rowsWithTexts(world, bob);
    const kinds = new Set((await rowsNaming(world, ada)).map((row) => row.match(/\w+/)?.[0]));
    const named = ["account", "entry", "event", "delivery", "requests", "link", "user_link"];
    const kept = ["kept_id", "kept_turn", "chat_replay", "cached_response", "expiry", "top_users"];
    for (const kind of [...named, ...kept]) assert.ok(kinds.has(kind), kind);
    assert.ok((await rowsWithTexts(world, ada)).length > 3);
    await forgetWholly(world, { forfeit: true });
    assert.deepEqual(await rowsNaming(world, ada), []);
    assert.deepEqual(await rowsWithTexts(world, ada), []);
    assert.deepEqual(await rowsWithTexts(world, bob), textsOfBob, "another user's stay");
  });
}

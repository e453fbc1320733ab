import assert from "node:assert/strict";
import { keptTurnBytesMax } from "../../../src/base/limits.ts";
import { forgetWholly } from "../../support/forget.ts";
import { completion } from "../../support/upstream.ts";
import { type Body, createWorld, type World } from "../../support/world.ts";

const path = "/v1/responses";
const project = { upstream: { url: "https://upstream.test/v1", formats: ["chat"] } };

async function chatOnlyWorld(): Promise<World> {
  const world = await createWorld({ project });
  for (const user of ["ada", "bob"]) await world.deposit(user, "1");
  let n = 0;
  world.upstream.reply(() => {
    const message = { role: "assistant", content: `Answer ${++n}` };
    return completion({ choices: [{ index: 0, message, finish_reason: "stop" }] });
  });
  return world;
}

const ask = (world: World, body: Body = {}, user = "ada") =>
  world.json(path, { body: { model: "test-model", user, input: "Hello", ...body } });

const sentMessages = (world: World) => world.upstream.calls.at(-1)?.body.messages;

Deno.test("turns over a bridge: a response can be continued by its id, over several turns", async () => {
  using world = await chatOnlyWorld();
  const first = await ask(world);
  assert.equal(first.status, 200, JSON.stringify(first.body));
  const second = await ask(world, { previous_response_id: first.body.id, input: "And?" });
  assert.equal(second.status, 200, JSON.stringify(second.body));
  const third = await ask(world, {
    previous_response_id: second.body.id,
    input: [{ role: "user", content: "Then?" }],
    instructions: "Be brief",
  });
  assert.equal(third.status, 200, JSON.stringify(third.body));
  assert.deepEqual(sentMessages(world), [
    { role: "system", content: "Be brief" },
    { role: "user", content: "Hello" },
    { role: "assistant", content: "Answer 1" },
    { role: "user", content: "And?" },
    { role: "assistant", content: "Answer 2" },
    { role: "user", content: "Then?" },
  ]);
});

Deno.test("turns over a bridge: an item can be sent back by its id alone, as the AI SDK does", async () => {
  using world = await chatOnlyWorld();
  const { body } = await ask(world);
  const input = [
    { role: "user", content: "Hello" },
    { type: "item_reference", id: body.output[0].id },
    { role: "user", content: "And?" },
  ];
  const second = await ask(world, { input });
  assert.equal(second.status, 200, JSON.stringify(second.body));
  assert.deepEqual(sentMessages(world), [
    { role: "user", content: "Hello" },
    { role: "assistant", content: "Answer 1" },
    { role: "user", content: "And?" },
  ]);
});

Deno.test("turns over a bridge: a streamed response can be continued too", async () => {
  using world = await chatOnlyWorld();
  const response = await world.call(path, {
    body: { model: "test-model", user: "ada", input: "Hello", stream: true },
    keepClock: true,
  });
  const text = await response.text();
  const id = /"id":"(resp_\w+)"/.exec(text)?.[1];
  const second = await ask(world, { previous_response_id: id, input: "And?" });
  assert.equal(second.status, 200, JSON.stringify(second.body));
  assert.deepEqual(sentMessages(world).slice(0, 2), [
    { role: "user", content: "Hello" },
    { role: "assistant", content: "Answer 1" },
  ]);
});

Deno.test("turns over a bridge: a conversation that met the paywall goes on once it is paid", async () => {
  using world = await createWorld({ project });
  await world.deposit("ada", "0.0002");
  world.upstream.reply(() => completion());
  const first = await ask(world, { max_output_tokens: 20 });
  const more = { input: "And?", max_output_tokens: 20 };
  const refused = await ask(world, {
    ...more,
    input: "x".repeat(1_000),
    previous_response_id: first.body.id,
  });
  assert.match(refused.body.id, /^resp_paywall_/);
  assert.equal(refused.body.previous_response_id, first.body.id);
  await world.deposit("ada", "1");
  const paid = await ask(world, { ...more, previous_response_id: refused.body.id });
  assert.equal(paid.status, 200, JSON.stringify(paid.body));
  assert.deepEqual(sentMessages(world), [
    { role: "user", content: "Hello" },
    { role: "assistant", content: "Hello there" },
    { role: "user", content: "And?" },
  ]);
});

Deno.test("turns over a bridge: what is continued is paid for, and in the hold", async () => {
  using world = await chatOnlyWorld();
  const long = "word ".repeat(2_000);
  const { body } = await ask(world, { input: long });
  let held = 0;
  world.upstream.once(async () => {
    held = Number((await world.balance("ada")).held) * 1e6;
    return completion();
  });
  await ask(world, { previous_response_id: body.id, input: "And?", max_output_tokens: 20 });
  assert.ok(held > long.length, `${held}`);
});

Deno.test("turns over a bridge: another user's are unknown, and so is what was not to be stored", async () => {
  using world = await chatOnlyWorld();
  const { body } = await ask(world);
  const item = { input: [{ type: "item_reference", id: body.output[0].id }] };
  for (const more of [{ previous_response_id: body.id }, item]) {
    const refused = await ask(world, more, "bob");
    assert.equal(refused.status, 400, JSON.stringify(refused.body));
  }
  const unstored = await ask(world, { store: false });
  const refused = await ask(world, { previous_response_id: unstored.body.id });
  assert.equal(refused.status, 400);
});

Deno.test("turns over a bridge: one that is too large to be kept says so when it is continued", async () => {
  using world = await chatOnlyWorld();
  const { body } = await ask(world, { input: "x".repeat(keptTurnBytesMax) });
  const refused = await ask(world, { previous_response_id: body.id });
  assert.equal(refused.status, 400);
  assert.equal(refused.body.error.code, "previous_response_not_found");
});

Deno.test("turns over a bridge: a forgotten user's are erased", async () => {
  using world = await chatOnlyWorld();
  await ask(world, { input: "my secret" });
  await forgetWholly(world, { forfeit: true }, "ada");
  assert.deepEqual(await world.deps.kv.list({ prefix: ["kept_turn"], limit: 9 }), []);
});

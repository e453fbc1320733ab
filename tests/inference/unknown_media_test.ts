import assert from "node:assert/strict";
import { chat, chatStream, openReader, usageOf } from "../support/chat.ts";
import { chunk, completion, fedStream, usage, usageChunk } from "../support/upstream.ts";
import { type Body, createWorld, type World } from "../support/world.ts";

const price = { input: "1", output: "2" };
const models = { "gpt-4o": price, "my-model": price };
const file = { type: "file", file: { file_id: "file-1" } };
const photo = { type: "image_url", image_url: { url: "https://pictures.example/1.png" } };
const asking = (model: string, ...parts: unknown[]) => ({
  model,
  messages: [{ role: "user", content: [{ type: "text", text: "What is it?" }, ...parts] }],
  max_tokens: 100,
});

async function worldWith(balance: string, more: Record<string, unknown> = {}): Promise<World> {
  const allowedFields = ["file_id", "audio.id"];
  const pricing = { models: { ...models, ...more } };
  const world = await createWorld({ project: { pricing, allowedFields } });
  await world.deposit("ada", balance);
  return world;
}

/** What is held while the upstream responds with this usage. */
async function heldFor(world: World, request: Record<string, unknown>, prompt = 5_000) {
  let held = "";
  world.upstream.once(async () => {
    held = (await world.balance("ada")).held;
    return completion({ usage: usage(prompt, 5) });
  });
  const { status, body } = await chat(world, request);
  return { status, body, held: Number(held) };
}

Deno.test("files of unknown size: the hold covers the model's context window", async () => {
  using world = await worldWith("10");
  const known = await heldFor(world, asking("gpt-4o", file));
  assert.ok(known.held > 0.128 && known.held < 0.1285, `${known.held}`);
  const unknown = await heldFor(world, asking("my-model", file));
  assert.ok(unknown.held > 1.048576 && unknown.held < 1.0491, `${unknown.held}`);
  // No prompt is larger than the window, however many files it has.
  const many = await heldFor(world, asking("gpt-4o", file, file, file));
  assert.ok(many.held > 0.128 && many.held < 0.1285, `${many.held}`);
});

Deno.test("files of unknown size: a smaller balance is held completely, and pays what is reported", async () => {
  using world = await worldWith("0.05");
  const { status, held } = await heldFor(world, asking("my-model", file));
  assert.equal(status, 200);
  assert.equal(held, 0.05);
  assert.equal((world.upstream.calls[0]?.body as Body).max_tokens, 100);
  assert.equal((await usageOf(world))[0]?.amount, "0.00501");
  assert.deepEqual(await world.balance("ada"), {
    balance: "0.04499",
    held: "0",
    available: "0.04499",
  });
});

Deno.test("files of unknown size: what the balance cannot pay is recorded as shortfall", async () => {
  using world = await worldWith("0.05");
  await heldFor(world, asking("my-model", file), 80_000);
  const [entry] = await usageOf(world);
  assert.deepEqual([entry?.amount, entry?.shortfall], ["0.05", "0.03001"]);
  const { body } = await heldFor(world, asking("my-model", file));
  assert.equal(body.paywall?.reason, "insufficient_funds");
});

Deno.test("files of unknown size: the balance pays at least for a small file, and for the response", async () => {
  using world = await worldWith("0.0159");
  const { body } = await heldFor(world, asking("my-model", file));
  assert.equal(body.paywall?.reason, "insufficient_funds");
  assert.equal(world.upstream.calls.length, 0);
});

Deno.test("files of unknown size: the project's own bound is neither exceeded nor lowered", async () => {
  using world = await worldWith("1", {
    "my-model": { ...price, mediaTokens: { file: 50_000 } },
    strict: { ...price, mediaTokens: { file: 2_000_000 } },
  });
  const own = await heldFor(world, asking("my-model", file));
  assert.ok(own.held > 0.05 && own.held < 0.051, `${own.held}`);
  const { body } = await heldFor(world, asking("strict", file));
  assert.equal(body.paywall?.reason, "insufficient_funds");
});

Deno.test("files of unknown size: an image at an address is held at the most of its family", async () => {
  using world = await worldWith("1");
  const { held } = await heldFor(world, asking("gpt-4o", photo));
  assert.ok(held > 0.001445 && held < 0.0019, `${held}`);
});

Deno.test("files of unknown size: the sound of an earlier response, by its id, has a bound", async () => {
  using world = await worldWith("1");
  const earlier = { role: "assistant", content: null, audio: { id: "audio_1" } };
  const messages = [{ role: "user", content: "Hi" }, earlier, { role: "user", content: "And?" }];
  const { held } = await heldFor(world, { model: "my-model", messages, max_tokens: 100 });
  assert.ok(held > 0.032768 && held < 0.0334, `${held}`);
});

Deno.test("files of unknown size: a stream whose client disconnects is read to its end", async () => {
  using world = await worldWith("1");
  const fed = fedStream();
  world.upstream.once(() => fed.response);
  const reader = openReader(await chatStream(world, asking("my-model", file)));
  fed.send(chunk({ content: "It" }));
  await reader.read();
  const leaving = reader.leave();
  fed.send(chunk({ content: " is" }, "stop"));
  fed.send(usageChunk(usage(300_000, 3)));
  fed.send("[DONE]");
  await leaving;
  await world.app.running.idle();
  const [entry] = await usageOf(world);
  assert.deepEqual([entry?.amount, entry?.usage.source], ["0.300006", "provider"]);
});

Deno.test("files of unknown size: without a report a small file is charged, not the window", async () => {
  using world = await worldWith("10");
  world.upstream.once(() => completion({ usage: null }));
  assert.equal((await chat(world, asking("my-model", file))).status, 200);
  const [entry] = await usageOf(world);
  assert.ok(Number(entry?.amount) > 0.016 && Number(entry?.amount) < 0.0161, entry?.amount);
});

Deno.test("files of unknown size: calls at once wait for money, and the last ones take the rest", async () => {
  using world = await worldWith("1.1");
  world.upstream.reply(() => completion({ model: "my-model", usage: usage(5_000, 5) }));
  const calls = [1, 2, 3].map(() => chat(world, asking("my-model", file)));
  const statuses = (await Promise.all(calls)).map(({ status, body }) => body.paywall ?? status);
  assert.deepEqual(statuses, [200, 200, 200]);
  assert.equal((await usageOf(world)).length, 3);
});

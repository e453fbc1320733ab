import assert from "node:assert/strict";
import OpenAI from "openai";
import { usageOf } from "../support/chat.ts";
import { faultsOf, sound } from "../support/media.ts";
import { sse, sseBytes } from "../support/upstream.ts";
import { edit, verify } from "../support/verify.ts";
import { entryKey } from "../../src/store/keys.ts";
import { type Body, createWorld, type World } from "../support/world.ts";

const path = "/v1/audio/speech";
const models = {
  "tts-1": { input: "0", output: "0", characters: "15" },
  "gpt-4o-mini-tts": { input: "0.6", output: "0", audioOutput: "12" },
  "chat-only": { input: "1", output: "2" },
};

async function paidWorld(amount = "1", more: Body = {}): Promise<World> {
  const world = await createWorld({ project: { pricing: { models, ...more } } });
  if (amount !== "0") await world.deposit("ada", amount);
  return world;
}

const speak = (world: World, body: Body = {}, more: Body = {}) =>
  world.call(path, {
    body: { model: "tts-1", input: "Hello", voice: "alloy", user: "ada", ...body },
    ...more,
  });

const piece = (size: number, value = 7) => new Uint8Array(size).fill(value);
const mp3 = (sizes = [10, 20, 30]) => sound(sizes.map((size, at) => piece(size, at)));

Deno.test("speech: the sound passes on byte by byte, and its characters are charged", async () => {
  using world = await paidWorld();
  world.upstream.once(() => mp3());
  const response = await speak(world);
  assert.equal(response.headers.get("content-type"), "audio/mpeg");
  assert.equal(response.headers.get("x-service-cost"), "0.000075");
  const bytes = await response.bytes();
  assert.deepEqual([...bytes], [...piece(10, 0), ...piece(20, 1), ...piece(30, 2)]);
  const [entry] = await usageOf(world);
  assert.equal(entry?.amount, "0.000075");
  assert.equal(entry?.usage.characters, 5);
  assert.equal(entry?.usage.price.characters, "15");
  assert.equal(entry?.usage.audioOutputTokens, undefined);
  assert.equal(world.upstream.calls[0]?.body.user, undefined);
  assert.deepEqual(await faultsOf(world), []);
});

Deno.test("speech: characters are those of Unicode, with markup and fee on top", async () => {
  using world = await paidWorld("1", { requestFee: "0.001", markupPercent: "0" });
  world.upstream.once(() => mp3());
  const response = await speak(world, { input: "a😀é" });
  await response.bytes();
  const [entry] = await usageOf(world);
  assert.equal(entry?.usage.characters, 3);
  assert.equal(entry?.amount, "0.001045");
  assert.equal(response.headers.get("x-service-cost"), "0.001045");
  assert.deepEqual(await faultsOf(world), []);
});

Deno.test("speech: the hold is the cost, and without it the answer is 402", async () => {
  using world = await paidWorld("0.00008");
  let held = "";
  world.upstream.once(async () => {
    held = (await world.balance("ada")).held;
    return mp3();
  });
  await (await speak(world)).bytes();
  assert.equal(held, "0.000075");
  const refused = await speak(world);
  assert.equal(refused.status, 402);
  assert.match((await refused.json()).error.message, /https:\/\//);
});

Deno.test("speech: whoever leaves in the middle pays what was held", async () => {
  using world = await paidWorld();
  world.upstream.once(() => mp3(Array.from({ length: 50 }, () => 1_000)));
  const response = await speak(world);
  const reader = response.body?.getReader();
  await reader?.read();
  await reader?.cancel();
  await world.until(async () => (await usageOf(world)).length === 1);
  const [entry] = await usageOf(world);
  assert.equal(entry?.amount, "0.000075");
  assert.deepEqual(await world.balance("ada"), {
    balance: "0.999925",
    held: "0",
    available: "0.999925",
  });
});

Deno.test("speech: sound that breaks off is charged, and its connection broken", async () => {
  using world = await paidWorld();
  world.upstream.once(() => {
    let count = 0;
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        if (count++ < 3) controller.enqueue(piece(100));
        else controller.error(new Error("gone"));
      },
    }, { highWaterMark: 0 });
    return new Response(body, { headers: { "content-type": "audio/mpeg" } });
  });
  await assert.rejects((await speak(world)).bytes());
  assert.equal((await usageOf(world))[0]?.amount, "0.000075");
});

Deno.test("speech: an error of the upstream costs nothing", async () => {
  using world = await paidWorld();
  const answers = [
    () => Response.json({ error: { message: "no such voice" } }, { status: 400 }),
    () => Response.json({ error: { message: "no such voice" } }),
    () => new Response("<html>", { headers: { "content-type": "text/html" } }),
    () => new Response("", { headers: { "content-type": "audio/mpeg" } }),
    () => new Response("not here", { headers: { "content-type": "text/plain" } }),
    () => new Response(null, { status: 405 }),
    () => sse([{ type: "error", error: { message: "overloaded" } }], { done: false }),
  ];
  for (const answer of answers) {
    world.upstream.once(answer);
    const response = await speak(world);
    assert.ok(response.status >= 400, String(response.status));
    await response.text();
  }
  assert.deepEqual(await usageOf(world), []);
  assert.equal((await world.balance("ada")).available, "1");
});

Deno.test("speech: an error event that comes in pieces costs nothing", async () => {
  using world = await paidWorld();
  const text = ': keep-alive\n\nevent: error\ndata: {"error": {"message": "overloaded"}}\n\n';
  world.upstream.once(() => sseBytes(Array.from(text, (char) => new TextEncoder().encode(char))));
  const response = await speak(world, { stream_format: "sse" });
  assert.equal(response.status, 502);
  assert.deepEqual(await usageOf(world), []);
});

Deno.test("speech: events that break off before the first one cost nothing", async () => {
  using world = await paidWorld();
  world.upstream.once(() => {
    let isFirst = true;
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        if (!isFirst) return controller.error(new Error("gone"));
        controller.enqueue(new TextEncoder().encode('data: {"type": "speech'));
        isFirst = false;
      },
    }, { highWaterMark: 0 });
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  });
  assert.equal((await speak(world, { stream_format: "sse" })).status, 502);
  assert.deepEqual(await usageOf(world), []);
});

Deno.test("speech: an upstream without the endpoint is named as such", async () => {
  using world = await paidWorld();
  world.upstream.once(() => new Response("Not Found", { status: 404 }));
  const { status, body } = await world.json(path, {
    body: { model: "tts-1", input: "Hello", user: "ada" },
  });
  assert.equal(status, 404);
  assert.equal(body.error.code, "endpoint_not_served");
});

const tokenUsage = { input_tokens: 6, output_tokens: 40, total_tokens: 46 };

Deno.test("speech: tokens of events are charged as sound", async () => {
  using world = await paidWorld();
  const events = [
    { type: "speech.audio.delta", audio: "AAAA" },
    { type: "speech.audio.delta", audio: "AAAA" },
    { type: "speech.audio.done", usage: tokenUsage },
  ];
  world.upstream.once(() => sse(events, { done: false }));
  const response = await speak(world, { model: "gpt-4o-mini-tts", stream_format: "sse" });
  assert.equal((await response.text()).match(/"type"/g)?.length, 3);
  const [entry] = await usageOf(world);
  // 6 x 0.6 + 40 x 12 = 483.6 millionths
  assert.equal(entry?.amount, "0.0004836");
  assert.equal(entry?.usage.audioOutputTokens, 40);
  assert.deepEqual(await faultsOf(world), []);
});

Deno.test("speech: tokens that no one reports are counted by the length of the sound", async () => {
  using world = await paidWorld();
  // 2 seconds of PCM; 1,250 tokens a minute
  world.upstream.once(() => sound([piece(48_000), piece(48_000)], "audio/pcm"));
  await (await speak(world, {
    model: "gpt-4o-mini-tts",
    input: "Hello there, all of you.",
    response_format: "pcm",
  })).bytes();
  world.upstream.once(() => mp3());
  await (await speak(world, { model: "gpt-4o-mini-tts" })).bytes();
  const [byText, byLength] = await usageOf(world);
  assert.equal(byLength?.usage.audioOutputTokens, 42);
  assert.equal(byLength?.usage.source, "estimated");
  assert.equal(byText?.usage.audioOutputTokens, 10);
  assert.deepEqual(await faultsOf(world), []);
});

Deno.test("speech: a body without a type is sound, unless it looks like another", async () => {
  using world = await paidWorld();
  const untyped = (bytes: string) => {
    const response = new Response(bytes);
    response.headers.delete("content-type");
    return response;
  };
  world.upstream.once(() => untyped("ID3..."));
  const response = await speak(world);
  assert.equal(response.headers.get("content-type"), "application/octet-stream");
  assert.equal(await response.text(), "ID3...");
  world.upstream.once(() => untyped("<html>"));
  assert.equal((await speak(world)).status, 502);
  world.upstream.once(() => untyped('{"error": {"message": "no", "code": 400}}'));
  assert.equal((await speak(world)).status, 400);
});

Deno.test("speech: its speed passes on, and needs no price", async () => {
  using world = await paidWorld();
  assert.equal((await speak(world, { speed: 1.2 })).status, 200);
  assert.equal(world.upstream.calls[0]?.body.speed, 1.2);
});

const refusals: [string, Body, string][] = [
  ["an empty input", { input: "" }, "input"],
  ["a speed out of bounds", { speed: 0 }, "speed"],
  ["an unknown field", { volume: 3 }, "volume"],
  ["a model without a price for speech", { model: "chat-only" }, "model"],
];
for (const [what, body, param] of refusals) {
  Deno.test(`speech: ${what} is refused with the field's name`, async () => {
    using world = await paidWorld();
    const response = await speak(world, body);
    assert.equal(response.status, 400);
    assert.equal((await response.json()).error.param, param);
  });
}

Deno.test("speech: a repeated key makes a new request, and says so", async () => {
  using world = await paidWorld();
  world.upstream.reply(() => mp3());
  const headers = { "idempotency-key": "once" };
  const first = await speak(world, {}, { headers });
  assert.equal(first.headers.get("idempotency-stored"), "false");
  await first.bytes();
  await (await speak(world, {}, { headers })).bytes();
  assert.equal(world.upstream.calls.length, 2);
});

Deno.test("speech: a planted wrong cost is found by the verification", async () => {
  using world = await paidWorld();
  world.upstream.once(() => mp3());
  await (await speak(world)).bytes();
  const [entry] = await usageOf(world);
  assert.deepEqual(await faultsOf(world), []);
  await edit<Body>(world, entryKey(world.projectId, entry?.id), (stored) => ({
    ...stored,
    usage: { ...stored.usage, characters: 6 },
  }));
  const { faults } = await verify(world);
  assert.ok(faults.some((fault) => fault.includes(entry?.id)), faults.join("\n"));
});

Deno.test("speech: OpenAI's client works, and shows who must pay", async () => {
  using world = await paidWorld();
  const client = new OpenAI({
    apiKey: world.apiKey,
    baseURL: "http://localhost/v1",
    defaultHeaders: { "x-service-user": "ada" },
    fetch: async (input: string | URL | Request, init?: RequestInit) =>
      await world.app.fetch(new Request(input, init)),
  });
  const request = { model: "tts-1", voice: "alloy", input: "Hello" };
  world.upstream.once(() => mp3());
  const response = await client.audio.speech.create(request);
  assert.equal((await response.arrayBuffer()).byteLength, 60);
  await assert.rejects(
    client.audio.speech.create(request, { headers: { "x-service-user": "nobody" } }),
    (error: Error & { status?: number }) =>
      error.status === 402 && /https:\/\//.test(error.message),
  );
});

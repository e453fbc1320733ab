import assert from "node:assert/strict";
import OpenAI from "openai";
import { usageOf } from "../support/chat.ts";
import { faultsOf, sendForm, wav } from "../support/media.ts";
import { sse } from "../support/upstream.ts";
import { edit, verify } from "../support/verify.ts";
import { entryKey } from "../../src/store/keys.ts";
import { type Body, createWorld, type World } from "../support/world.ts";

const path = "/v1/audio/transcriptions";
const models = {
  "whisper-1": { input: "0", output: "0", audioMinutes: "0.006" },
  third: { input: "0", output: "0", audioMinutes: "0.01", markupPercent: "10" },
  "gpt-4o-transcribe": { input: "2.5", audioInput: "6", output: "10" },
  "chat-only": { input: "1", output: "2" },
};

async function paidWorld(amount = "1"): Promise<World> {
  const world = await createWorld({ project: { pricing: { models } } });
  if (amount !== "0") await world.deposit("ada", amount);
  return world;
}

type Fields = Parameters<typeof sendForm>[2];
const hear = (world: World, fields: Fields = {}, headers: Record<string, string> = {}) =>
  sendForm(world, path, { model: "whisper-1", file: wav(9.5), user: "ada", ...fields }, headers);

const text = (body: string, type: string) =>
  new Response(body, { headers: { "content-type": type } });

const answers: [string, () => Response, number, string][] = [
  [
    "by its seconds",
    () => Response.json({ text: "Hi", usage: { type: "duration", seconds: 9 } }),
    9,
    "0.0009",
  ],
  [
    "by the length in a verbose response",
    () =>
      Response.json({ task: "transcribe", duration: 8.470000267028809, text: "Hi", segments: [] }),
    9,
    "0.0009",
  ],
  [
    "by a length that is a text",
    () => Response.json({ duration: "8.47", text: "Hi" }),
    9,
    "0.0009",
  ],
  ["by our own measure without either", () => Response.json({ text: "Hi" }), 10, "0.001"],
  ["by our own measure as plain text", () => text("Hi", "text/plain; charset=utf-8"), 10, "0.001"],
  ["by our own measure as captions", () => text("WEBVTT\n\nHi", "text/vtt"), 10, "0.001"],
  [
    "by our own measure where the length is no number",
    () => Response.json({ duration: "x", usage: null }),
    10,
    "0.001",
  ],
  [
    "by our own bound where the length is absurd",
    () => Response.json({ duration: 1e6, text: "" }),
    153,
    "0.0153",
  ],
  [
    "by our own measure whatever the transcript says",
    () => Response.json({ text: '"duration": 1, {"usage": {"type": "duration", "seconds": 1}}' }),
    10,
    "0.001",
  ],
  [
    "by our own measure whatever a plain transcript says",
    () => text('{"usage": {"type": "duration", "seconds": 1}}', "text/plain"),
    10,
    "0.001",
  ],
];
for (const [what, answer, seconds, cost] of answers) {
  Deno.test(`transcriptions: a sound is charged ${what}`, async () => {
    using world = await paidWorld();
    world.upstream.once(answer);
    const response = await hear(world);
    assert.equal(response.status, 200, await response.clone().text());
    assert.equal(await response.text(), await answer().text());
    assert.equal(response.headers.get("x-service-cost"), cost);
    const [entry] = await usageOf(world);
    assert.equal(entry?.amount, cost);
    assert.equal(entry?.usage.audioSeconds, seconds);
    assert.equal(entry?.usage.price.audioMinutes, "0.006");
    const isOwn = what.startsWith("by our own");
    assert.equal(entry?.usage.source, isOwn ? "estimated" : "provider");
    assert.deepEqual(await faultsOf(world), []);
  });
}

Deno.test("transcriptions: a minute's price is divided exactly, and rounded up once", async () => {
  using world = await paidWorld();
  world.upstream.once(() => Response.json({ usage: { type: "duration", seconds: 7 } }));
  await (await hear(world, { model: "third" })).text();
  // 7 x 0.01 / 60 x 1.1 = 0.00128333…
  assert.equal((await usageOf(world))[0]?.amount, "0.001283334");
  assert.deepEqual(await faultsOf(world), []);
});

Deno.test("transcriptions: planted wrong seconds are found by the verification", async () => {
  using world = await paidWorld();
  world.upstream.once(() => Response.json({ text: "Hi" }));
  await (await hear(world)).text();
  assert.deepEqual(await faultsOf(world), []);
  const [entry] = await usageOf(world);
  await edit<Body>(world, entryKey(world.projectId, entry?.id), (stored) => ({
    ...stored,
    usage: { ...stored.usage, audioSeconds: 11 },
  }));
  const { faults } = await verify(world);
  assert.ok(faults.some((fault) => fault.includes(entry?.id)), faults.join("\n"));
});

Deno.test("transcriptions: the form reaches the upstream with its file and without the user", async () => {
  using world = await paidWorld();
  world.upstream.once(() => Response.json({ text: "Hi" }));
  await (await hear(world, {
    language: "en",
    prompt: "Grüße 😀",
    "timestamp_granularities[]": ["word", "segment"],
  })).text();
  const [call] = world.upstream.calls;
  const form = await call?.form();
  assert.equal(form?.get("model"), "whisper-1");
  assert.equal(form?.get("prompt"), "Grüße 😀");
  assert.deepEqual(form?.getAll("timestamp_granularities[]"), ["word", "segment"]);
  assert.equal(form?.has("user"), false);
  const file = form?.get("file");
  assert.ok(file instanceof File);
  assert.equal(file.name, "speech.wav");
  assert.equal(file.type, "audio/wav");
  assert.deepEqual(await file.bytes(), await wav(9.5).bytes());
  assert.equal(call?.url, "https://upstream.test/v1/audio/transcriptions");
});

Deno.test("transcriptions: the hold is the length of the sound, and without it the answer is 402", async () => {
  using world = await paidWorld("0.0015");
  let held = "";
  world.upstream.once(async () => {
    held = (await world.balance("ada")).held;
    return Response.json({ text: "Hi" });
  });
  await (await hear(world)).text();
  assert.equal(held, "0.001");
  const refused = await hear(world);
  assert.equal(refused.status, 402);
  assert.match((await refused.json()).error.message, /https:\/\//);
});

Deno.test("transcriptions: tokens are charged by their classes", async () => {
  using world = await paidWorld();
  const details = { text_tokens: 4, audio_tokens: 100 };
  const usage = { type: "tokens", input_tokens: 104, output_tokens: 20, total_tokens: 124 };
  world.upstream.once(() =>
    Response.json({ text: "Hi", usage: { ...usage, input_token_details: details } })
  );
  await (await hear(world, { model: "gpt-4o-transcribe" })).text();
  world.upstream.once(() => Response.json({ text: "Hi", usage }));
  await (await hear(world, { model: "gpt-4o-transcribe" })).text();
  const [plain, detailed] = await usageOf(world);
  // 4 x 2.5 + 100 x 6 + 20 x 10 = 810 millionths; without details, 104 x 6 + 200
  assert.equal(detailed?.amount, "0.00081");
  assert.equal(plain?.amount, "0.000824");
  assert.equal(detailed?.usage.audioSeconds, 10);
  assert.deepEqual(await faultsOf(world), []);
});

Deno.test("transcriptions: without a report, the sound and the text are counted", async () => {
  using world = await paidWorld();
  world.upstream.once(() => text("Hello there", "text/plain"));
  await (await hear(world, { model: "gpt-4o-transcribe" })).text();
  const [entry] = await usageOf(world);
  assert.equal(entry?.usage.audioInputTokens, 120);
  assert.equal(entry?.usage.outputTokens, 2);
  assert.equal(entry?.usage.source, "estimated");
});

Deno.test("transcriptions: events pass on as they arrive, and their usage is charged", async () => {
  using world = await paidWorld();
  const usage = { type: "tokens", input_tokens: 14, output_tokens: 5, total_tokens: 19 };
  const events = [
    { type: "transcript.text.delta", delta: '"usage": {"input_tokens": 1}' },
    { type: "transcript.text.done", text: "Hi", usage },
  ];
  world.upstream.once(() => sse(events));
  const response = await hear(world, { model: "gpt-4o-transcribe", stream: "true" });
  assert.equal(response.headers.get("content-type"), "text/event-stream");
  assert.match(await response.text(), /transcript\.text\.done.*\n\ndata: \[DONE\]\n\n$/);
  assert.equal((await usageOf(world))[0]?.amount, "0.000134");
});

Deno.test("transcriptions: an error of the upstream costs nothing", async () => {
  using world = await paidWorld();
  const errors = [
    () => Response.json({ error: { message: "bad sound" } }, { status: 400 }),
    () => Response.json({ error: { message: "bad sound" } }),
    () => text("<html>", "text/html"),
    () => text("[1]", "application/json"),
    () => new Response(null, { status: 501 }),
    () => sse([{ error: { message: "overloaded" } }], { done: false }),
  ];
  for (const answer of errors) {
    world.upstream.once(answer);
    const response = await hear(world);
    assert.ok(response.status >= 400, String(response.status));
    await response.text();
  }
  assert.deepEqual(await usageOf(world), []);
});

const refusals: [string, Fields, string][] = [
  ["no model", { model: "" }, "model"],
  ["no file", { file: [] }, "file"],
  ["an empty file", { file: new Blob([]) }, "file"],
  ["two models", { model: ["whisper-1", "third"] }, "model"],
  ["a file in place of a text", { prompt: wav(1) }, "prompt"],
  ["an unknown field", { tempo: "1" }, "tempo"],
  ["a field in other letter case", { Model: "third" }, "Model"],
  ["a model without a price for sound", { model: "chat-only" }, "model"],
];
for (const [what, fields, param] of refusals) {
  Deno.test(`transcriptions: ${what} is refused with the field's name`, async () => {
    using world = await paidWorld();
    const response = await hear(world, fields);
    assert.equal(response.status, 400);
    assert.equal((await response.json()).error.param, param);
    assert.equal(world.upstream.calls.length, 0);
  });
}

const b = "--x\r\n";
const part = (head: string, content = "a") =>
  `${b}content-disposition: ${head}\r\n\r\n${content}\r\n`;
const malformed: [string, string][] = [
  ["empty", ""],
  ["no boundary", "hello"],
  ["no end", part('form-data; name="model"')],
  ["no name", `${part("form-data")}--x--`],
  ["no head", `${b}\r\n\r\n--x--`],
  ["only a start", "--x"],
  ["many parts", `${part('form-data; name="include[]"').repeat(200)}--x--`],
  ["text that is no UTF-8", `${part('form-data; name="model"', "\u00ff")}--x--`],
];
for (const [what, raw] of malformed) {
  Deno.test(`transcriptions: a form with ${what} is 400`, async () => {
    using world = await paidWorld();
    const bytes = Uint8Array.from(raw, (char) => char.charCodeAt(0));
    const headers = { "content-type": "multipart/form-data; boundary=x" };
    const response = await world.call(path, { raw: bytes, headers });
    assert.equal(response.status, 400, await response.text());
  });
}

Deno.test("transcriptions: JSON is 415, and a file beyond 25 MiB is 413", async () => {
  using world = await paidWorld();
  assert.equal((await world.call(path, { body: { model: "whisper-1" } })).status, 415);
  const noBoundary = { "content-type": "multipart/form-data" };
  assert.equal((await world.call(path, { raw: "x", headers: noBoundary })).status, 400);
  const file = new Blob([new Uint8Array(25 * 1024 * 1024 + 1)]);
  const response = await hear(world, { file });
  assert.equal(response.status, 413);
  assert.equal((await response.json()).error.param, "file");
});

Deno.test("transcriptions: what a file says cannot become a field of the form", async () => {
  using world = await paidWorld();
  world.upstream.reply(() => Response.json({ text: "Hi" }));
  await (await hear(world)).text();
  const type = world.upstream.calls[0]?.headers.get("content-type") ?? "";
  const boundary = type.slice(type.indexOf("=") + 1);
  const evil = `\r\n--${boundary}\r\ncontent-disposition: form-data; name="model"\r\n\r\nthird`;
  await (await hear(world, { file: new Blob([evil]), prompt: evil })).text();
  const form = await world.upstream.calls[1]?.form();
  assert.deepEqual(form?.getAll("model"), ["whisper-1"]);
  assert.equal(form?.get("prompt"), evil);
});

Deno.test("transcriptions: a repeated key gets the stored response, and another file is 422", async () => {
  using world = await paidWorld();
  world.upstream.reply(() => text("Hi", "text/plain"));
  const key = { "idempotency-key": "once" };
  assert.equal(await (await hear(world, {}, key)).text(), "Hi");
  const again = await hear(world, {}, key);
  assert.equal(again.headers.get("content-type"), "text/plain");
  assert.equal(again.headers.get("idempotent-replayed"), "true");
  assert.equal((await hear(world, { file: wav(3) }, key)).status, 422);
  assert.equal(world.upstream.calls.length, 1);
});

Deno.test("translations: they are charged alike", async () => {
  using world = await paidWorld();
  world.upstream.once(() => Response.json({ text: "Hi" }));
  const fields = { model: "whisper-1", file: wav(9.5), user: "ada" };
  await (await sendForm(world, "/v1/audio/translations", fields)).text();
  assert.equal((await usageOf(world))[0]?.amount, "0.001");
  assert.match(world.upstream.calls[0]?.url ?? "", /\/audio\/translations$/);
});

Deno.test("transcriptions: OpenAI's client works, and shows who must pay", async () => {
  using world = await paidWorld();
  const client = new OpenAI({
    apiKey: world.apiKey,
    baseURL: "http://localhost/v1/ada",
    fetch: async (input: string | URL | Request, init?: RequestInit) =>
      await world.app.fetch(new Request(input, init)),
  });
  world.upstream.once(() => Response.json({ text: "Hi" }));
  const file = new File([wav(2)], "Grüße.wav", { type: "audio/wav" });
  const request: Body & { file: File; model: string } = { file, model: "whisper-1" };
  assert.equal((await client.audio.transcriptions.create(request)).text, "Hi");
  const headers = { "x-service-user": "nobody" };
  await assert.rejects(
    client.audio.transcriptions.create(request, { headers }),
    (error: Error & { status?: number }) =>
      error.status === 402 && /https:\/\//.test(error.message),
  );
});

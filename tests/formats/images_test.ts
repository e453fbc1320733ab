import assert from "node:assert/strict";
import OpenAI from "openai";
import { usageOf } from "../support/chat.ts";
import { sse } from "../support/upstream.ts";
import { faultsOf } from "../support/media.ts";
import { edit, verify } from "../support/verify.ts";
import { entryKey } from "../../src/store/keys.ts";
import { type Body, createWorld, type World } from "../support/world.ts";

const path = "/v1/images/generations";
const none = { input: "0", output: "0" };
const dallE3 = {
  ...none,
  images: {
    "1024x1024": "0.04",
    "1792x1024": "0.08",
    "hd 1024x1024": "0.08",
    "hd 1792x1024": "0.12",
  },
};
const gptImage = { input: "5", imageInput: "10", output: "0", imageOutput: "40" };
const models = {
  "dall-e-3": dallE3,
  "gpt-image-1": gptImage,
  flat: { ...none, images: { "*": "0.03" } },
  sized: { ...none, images: { "512x512": "0.01", "1024x1024": "0.02", "hd": "0.07" } },
  "chat-only": { input: "1", output: "2" },
  "tts-1": { ...none, characters: "15" },
};

async function paidWorld(amount = "1", more: Body = {}): Promise<World> {
  const world = await createWorld({ project: { pricing: { models } }, ...more });
  if (amount !== "0") await world.deposit("ada", amount);
  return world;
}

const draw = (world: World, body: Body = {}, more: Body = {}) =>
  world.call(path, { body: { model: "dall-e-3", prompt: "Sea", user: "ada", ...body }, ...more });

const made = (count = 1, more: Body = {}) =>
  Response.json({
    created: 1_769_851_800,
    data: Array.from({ length: count }, () => ({ b64_json: "iVBORw0KGgo=" })),
    ...more,
  });

async function costOf(body: Body, answer: () => Response = () => made()): Promise<string> {
  using world = await paidWorld();
  world.upstream.reply(answer);
  const response = await draw(world, body);
  assert.equal(response.status, 200, await response.clone().text());
  await response.text();
  const [entry] = await usageOf(world);
  assert.equal(response.headers.get("x-service-cost"), entry?.amount);
  assert.deepEqual(await faultsOf(world), []);
  return entry?.amount;
}

const priced: [string, Body, string][] = [
  ["no size and no quality, by DALL-E's defaults", {}, "0.04"],
  ["a size", { size: "1792x1024" }, "0.08"],
  ["a quality", { quality: "hd" }, "0.08"],
  ["both", { quality: "hd", size: "1792x1024" }, "0.12"],
  ["auto", { size: "auto", quality: "auto" }, "0.04"],
  ["a quality that only a size prices", { quality: "standard", size: "1792x1024" }, "0.08"],
];
for (const [what, body, cost] of priced) {
  Deno.test(`images: ${what} costs what its price says`, async () => {
    assert.equal(await costOf(body), cost);
  });
}

Deno.test("images: each image that came is charged, and not more than were asked for", async () => {
  const flat = { model: "flat", n: 3 };
  assert.equal(await costOf(flat, () => made(3)), "0.09");
  assert.equal(await costOf(flat, () => made(2)), "0.06");
  assert.equal(await costOf(flat, () => made(30)), "0.09");
  assert.equal(await costOf(flat, () => made(0)), "0");
});

Deno.test("images: a size that the model chose is charged as its response says, else as the dearest", async () => {
  assert.equal(await costOf({ model: "sized" }), "0.07");
  const named = () => made(1, { size: "512x512", quality: "low" });
  assert.equal(await costOf({ model: "sized" }, named), "0.01");
});

Deno.test("images: what the model wrote is no field", async () => {
  const prompt = '"b64_json": "x", "url": "y", "size": "1024x1024"';
  const data = [{ url: "https://x.test/a", b64_json: null, revised_prompt: prompt }];
  assert.equal(
    await costOf({ model: "sized", size: "512x512", n: 4 }, () => made(0, { data })),
    "0.01",
  );
});

Deno.test("images: the entry has the images, and the price that applied", async () => {
  using world = await paidWorld();
  world.upstream.once(() => made(2));
  await (await draw(world, { quality: "hd", n: 2 })).text();
  const [entry] = await usageOf(world);
  assert.deepEqual(entry?.usage.images, { "hd 1024x1024": 2 });
  assert.equal(entry?.usage.price["images.hd 1024x1024"], "0.08");
  assert.equal(entry?.usage.source, "provider");
  assert.equal(entry?.usage.upstreamCost, undefined);
});

Deno.test("images: tokens are charged by their classes", async () => {
  using world = await paidWorld();
  world.upstream.once(() =>
    made(1, {
      usage: {
        input_tokens: 50,
        input_tokens_details: { text_tokens: 40, image_tokens: 10 },
        output_tokens: 1_056,
        total_tokens: 1_106,
      },
    })
  );
  const response = await draw(world, { model: "gpt-image-1", quality: "medium" });
  await response.text();
  const [entry] = await usageOf(world);
  // 40 x 5 + 10 x 10 + 1056 x 40 = 42,540 millionths
  assert.equal(entry?.amount, "0.04254");
  assert.equal(entry?.usage.imageOutputTokens, 1_056);
  assert.deepEqual(await faultsOf(world), []);
});

Deno.test("images: tokens that no one reports are charged as far as they were held", async () => {
  using world = await paidWorld();
  await (world.upstream.once(() => made()),
    draw(world, {
      model: "gpt-image-1",
      quality: "low",
      size: "1024x1024",
    })).then((response) => response.text());
  const [entry] = await usageOf(world);
  assert.equal(entry?.usage.imageOutputTokens, 272);
  assert.equal(entry?.usage.source, "estimated");
  assert.ok(Number(entry?.amount) >= 272 * 40 / 1e6);
});

Deno.test("images: the hold is the dearest that can come, and the rest gets 402", async () => {
  using world = await paidWorld("0.139");
  let held = "";
  world.upstream.once(async () => {
    held = (await world.balance("ada")).held;
    return made(2);
  });
  await (await draw(world, { model: "sized", n: 1 })).text();
  assert.equal(held, "0.07");
  const refused = await draw(world, { model: "sized", n: 1 });
  assert.equal(refused.status, 402);
  assert.match((await refused.json()).error.message, /https:\/\//);
  assert.equal(
    (await draw(world, { model: "sized", n: 1, size: "512x512", quality: "low" })).status,
    200,
  );
});

const refusals: [string, Body, string][] = [
  ["a size without a price", { size: "256x256" }, "size"],
  ["a model with prices of tokens of text alone", { model: "chat-only" }, "model"],
  ["a model with the price of another endpoint", { model: "tts-1" }, "model"],
  ["a wrong count", { n: 0 }, "n"],
  ["no prompt", { prompt: "" }, "prompt"],
];
for (const [what, body, param] of refusals) {
  Deno.test(`images: ${what} is refused with the field's name`, async () => {
    using world = await paidWorld();
    const response = await draw(world, body);
    assert.equal(response.status, 400);
    assert.equal((await response.json()).error.param, param);
    assert.equal(world.upstream.calls.length, 0);
  });
}

Deno.test("images: a model that is priced in images is no model for a chat", async () => {
  using world = await paidWorld();
  const body = { model: "flat", messages: [{ role: "user", content: "Hi" }], user: "ada" };
  const response = await world.call("/v1/chat/completions", { body });
  assert.equal(response.status, 400);
  assert.equal((await response.json()).error.param, "model");
});

Deno.test("images: an error of the upstream costs nothing", async () => {
  using world = await paidWorld();
  const refusal = { error: { message: "safety", code: "moderation_blocked" } };
  const answers = [
    () => Response.json(refusal, { status: 400 }),
    () => Response.json(refusal),
    () => new Response("<html>", { headers: { "content-type": "text/html" } }),
    () => new Response("nonsense", { headers: { "content-type": "application/json" } }),
    () => new Response("", { headers: { "content-type": "application/json" } }),
    () => new Response(null, { status: 500 }),
    () => sse([{ type: "error", error: { message: "overloaded" } }], { done: false }),
  ];
  for (const answer of answers) {
    world.upstream.once(answer);
    const response = await draw(world);
    assert.ok(response.status >= 400, String(response.status));
    await response.text();
  }
  assert.deepEqual(await usageOf(world), []);
  assert.deepEqual(await world.balance("ada"), { balance: "1", held: "0", available: "1" });
});

Deno.test("images: a stream passes on, and is charged by its last event", async () => {
  using world = await paidWorld();
  const usage = { input_tokens: 10, output_tokens: 300, total_tokens: 310 };
  const events = [
    { type: "image_generation.partial_image", b64_json: "AA==", partial_image_index: 0 },
    { type: "image_generation.completed", b64_json: "AAAA", usage },
  ];
  world.upstream.once(() => sse(events, { done: false }));
  const response = await draw(world, { model: "gpt-image-1", stream: true, partial_images: 1 }, {
    keepClock: true,
  });
  assert.equal(response.headers.get("content-type"), "text/event-stream");
  const text = await response.text();
  assert.equal(text.split("\n\n").filter((frame) => frame !== "").length, 2);
  const [entry] = await usageOf(world);
  assert.equal(entry?.amount, "0.01205");
  assert.deepEqual(entry?.usage.images, { "*": 1 });
  assert.equal(world.upstream.calls[0]?.body.stream, true);
});

Deno.test("images: a response too large to be kept passes on, and its images are charged", async () => {
  using world = await paidWorld("1", { env: { UPSTREAM_BODY_BYTES_MAX: "1024" } });
  const data = [1, 2].map(() => ({ b64_json: "A".repeat(100_000) }));
  const text = JSON.stringify({ created: 1, data, size: "512x512" });
  const bytes = new TextEncoder().encode(text);
  world.upstream.once(() => {
    let at = 0;
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        if (at >= bytes.length) return controller.close();
        controller.enqueue(bytes.subarray(at, at + 777));
        at += 777;
      },
    }, { highWaterMark: 0 });
    return new Response(body, { headers: { "content-type": "application/json" } });
  });
  const response = await draw(world, { model: "sized", n: 2 });
  assert.equal(await response.text(), text);
  const [entry] = await usageOf(world);
  assert.equal(entry?.amount, "0.02");
  assert.deepEqual(entry?.usage.images, { "512x512": 2 });
});

Deno.test("images: a planted wrong price is found by the verification", async () => {
  using world = await paidWorld();
  world.upstream.once(() => made());
  await (await draw(world)).text();
  assert.deepEqual(await faultsOf(world), []);
  const [entry] = await usageOf(world);
  await edit<Body>(world, entryKey(world.projectId, entry?.id), (stored) => ({
    ...stored,
    usage: { ...stored.usage, price: { ...stored.usage.price, "images.1024x1024": "0.05" } },
  }));
  const { faults } = await verify(world);
  assert.ok(faults.some((fault) => fault.includes(entry?.id)), faults.join("\n"));
});

Deno.test("images: OpenAI's client works, and shows who must pay", async () => {
  using world = await paidWorld();
  const client = new OpenAI({
    apiKey: world.apiKey,
    baseURL: "http://localhost/v1",
    fetch: async (input: string | URL | Request, init?: RequestInit) =>
      await world.app.fetch(new Request(input, init)),
  });
  world.upstream.once(() => made());
  const images = await client.images.generate({ model: "dall-e-3", prompt: "Sea", user: "ada" });
  assert.equal(images.data?.[0]?.b64_json, "iVBORw0KGgo=");
  await assert.rejects(
    client.images.generate({ model: "dall-e-3", prompt: "Sea", user: "nobody" }),
    (error: Error & { status?: number }) =>
      error.status === 402 && /https:\/\//.test(error.message),
  );
});

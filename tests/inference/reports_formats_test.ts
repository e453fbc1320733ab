import assert from "node:assert/strict";
import { parseAmount } from "../../src/base/money.ts";
import { usageOf } from "../support/chat.ts";
import { frameOf, type ModelFormat, modelFormats, modelName } from "../support/model_formats.ts";
import { chunk, completion, sse, sseBytes, usage, usageChunk } from "../support/upstream.ts";
import { type Body, createWorld, type World } from "../support/world.ts";

const price = { input: "1", output: "2", maxOutputTokens: 1_000 };
const chargeOf = async (world: World) => parseAmount((await usageOf(world))[0]?.amount) ?? -1n;

async function paidWorld(
  more: Body = {},
  models: Body = {},
  env: Parameters<typeof createWorld>[0] = {},
): Promise<World> {
  const pricing = { models: { [modelName]: price, ...models } };
  const world = await createWorld({ ...env, project: { pricing, ...more } });
  await world.deposit("ada", "1000000");
  return world;
}

/** The output that is reported, and twice the cap of 100 with the margin. */
const most = 2 * 100 + 32_768;
const counts = [1, 32_767, most, most + 1, 200_000, 1e21];

/** Asks once for each count, and checks what is charged for the output. */
async function checkCounts(
  world: World,
  ask: (count: number) => Promise<Response>,
  { perToken = 2_000n, bound = most, other = 9_000n } = {},
): Promise<void> {
  for (const count of counts) {
    const response = await ask(count);
    assert.equal(response.status, 200, await response.clone().text());
    await response.text();
    const wanted = BigInt(Math.min(count, bound)) * perToken + other;
    assert.equal(await chargeOf(world), wanted, `${count}`);
  }
}

const formatAt = (path: string): ModelFormat => {
  const found = modelFormats.find(([format]) => format.path === path);
  assert.ok(found);
  return found[0];
};

const text = "Hello";
/** What an upstream of another format answers. */
const others: Record<string, (stream: boolean, count: number) => Response> = {
  messages(stream, count) {
    const format = formatAt("/messages");
    const said = { id: "1", text, tokens: { input: 9, output: count } };
    const events = () => format.events(said, 1, false).map(frameOf).join("");
    return stream
      ? sseBytes([new TextEncoder().encode(events())])
      : Response.json(format.whole(said));
  },
  chat(stream, count) {
    const used = usage(9, count);
    return stream
      ? sse([chunk({ role: "assistant", content: text }), chunk({}, "stop"), usageChunk(used)])
      : completion({ usage: used });
  },
};

const bridges: [string, string][] = [
  ["/chat/completions", "messages"],
  ["/messages", "chat"],
  ["/responses", "chat"],
];
for (const [path, format] of bridges) {
  for (const stream of [false, true]) {
    Deno.test(`reports: over a bridge a larger one is never charged less: ${path}${stream ? ", streamed" : ""}`, async () => {
      const upstream = { url: "https://own.test/v1", apiKey: "sk-up", formats: [format] };
      using world = await paidWorld({ upstream });
      await checkCounts(world, (count) => {
        world.upstream.once(() => others[format]?.(stream, count) ?? Response.error());
        const body = formatAt(path).body({ user: "ada", stream, cap: 100 });
        return world.call(`/v1${path}`, { body, headers: { "x-service-user": "ada" } });
      });
    });
  }
}

for (const stream of [false, true]) {
  Deno.test(`reports: a larger one is never charged less: /completions${stream ? ", streamed" : ""}`, async () => {
    using world = await paidWorld();
    await checkCounts(world, (count) => {
      const used = usage(9, count);
      const choices = [{ index: 0, text, finish_reason: "stop" }];
      const whole = { id: "c", object: "text_completion", model: modelName, choices };
      world.upstream.once(() =>
        stream
          ? sse([whole, { ...whole, choices: [], usage: used }])
          : Response.json({ ...whole, usage: used })
      );
      const body = { model: modelName, prompt: "Hi", max_tokens: 100, user: "ada", stream };
      return world.call("/v1/completions", { body });
    });
  });
}

for (const stream of [false, true]) {
  Deno.test(`reports: of a response that is not parsed, a larger one is never charged less${stream ? ", streamed" : ""}`, async () => {
    using world = await paidWorld({}, {}, {
      env: { UPSTREAM_BODY_BYTES_MAX: "65536", UPSTREAM_EVENT_BYTES_MAX: "65536" },
    });
    await checkCounts(world, (count) => {
      const content = "word ".repeat(20_000);
      const used = usage(9, count);
      world.upstream.once(() =>
        stream ? sse([{ ...chunk({ content }, "stop"), usage: used }]) : completion({
          choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }],
          usage: used,
        })
      );
      const body = formatAt("/chat/completions").body({ user: "ada", stream, cap: 100 });
      return world.call("/v1/chat/completions", { body });
    });
  });
}

for (const n of [2, 5]) {
  Deno.test(`reports: of ${n} choices a larger one is never charged less`, async () => {
    using world = await paidWorld();
    const choices = Array.from({ length: n }, (_, index) => ({
      ...{ index, message: { role: "assistant", content: "" }, finish_reason: "stop" },
    }));
    await checkCounts(world, (count) => {
      world.upstream.once(() => completion({ choices, usage: usage(9, count) }));
      const body = formatAt("/chat/completions").body({ user: "ada", stream: false, cap: 100 });
      return world.call("/v1/chat/completions", { body: { ...body, n } });
    }, { bound: 2 * 100 * n + 32_768 });
  });
}

Deno.test("reports: tokens of speech are charged up to the bound", async () => {
  using world = await paidWorld({}, { speaks: { input: "1", output: "0", audioOutput: "2" } });
  // Five characters of eight tokens, and silence.
  const bound = 2 * (5 * 8 + 256) + 32_768;
  await checkCounts(world, (count) => {
    const used = { input_tokens: 9, output_tokens: count };
    world.upstream.once(() => sse([{ type: "speech.audio.done", usage: used }]));
    const body = { model: "speaks", input: "Hello", voice: "alloy", user: "ada" };
    return world.call("/v1/audio/speech", { body: { ...body, stream_format: "sse" } });
  }, { bound });
});

Deno.test("reports: tokens of images are charged up to the bound, and images up to those asked for", async () => {
  using world = await paidWorld({}, {
    draws: { input: "1", output: "0", imageOutput: "2" },
    counted: { input: "0", output: "0", images: { "*": "0.01" } },
  });
  const draw = (model: string, answer: Body) => {
    world.upstream.once(() => Response.json(answer));
    const body = { model, prompt: "Sea", user: "ada", size: "1024x1024", quality: "high", n: 2 };
    return world.call("/v1/images/generations", { body });
  };
  const data = [{ b64_json: "iVBORw0KGgo=" }];
  await checkCounts(
    world,
    (count) => draw("draws", { data, usage: { input_tokens: 9, output_tokens: count } }),
    { bound: 2 * 2 * 4_160 + 32_768 },
  );
  for (const [made, charged] of [[1, 1], [2, 2], [3, 2], [50, 2]] as const) {
    await (await draw("counted", { data: Array(made).fill(data[0]) })).text();
    assert.equal(await chargeOf(world), BigInt(charged) * 10_000_000n);
  }
});

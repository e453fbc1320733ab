import assert from "node:assert/strict";
import { parseAmount } from "../../src/base/money.ts";
import { chat, chatBody, usageOf } from "../support/chat.ts";
import { sendForm } from "../support/media.ts";
import { frameOf, modelFormats, modelName, wholeResponse } from "../support/model_formats.ts";
import { completion, sse, sseBytes, usage } from "../support/upstream.ts";
import { type Body, createWorld, type World } from "../support/world.ts";
import { pdf, wav } from "../pricing/files.ts";
import { mp4Sound, stbl } from "../pricing/sound_files.ts";
import { tag } from "../pricing/image_headers.ts";

const price = { input: "1", output: "2", maxOutputTokens: 1_000 };

async function paidWorld(more: Body = {}): Promise<World> {
  const models = { [modelName]: price, ...more };
  const world = await createWorld({ project: { pricing: { models } } });
  await world.deposit("ada", "1000000");
  return world;
}

const chargeOf = async (world: World) => parseAmount((await usageOf(world))[0]?.amount) ?? -1n;

/** Twice the cap of 100, and the margin. */
const outputMost = 2 * 100 + 32_768;
const counts = [1, 300, outputMost - 1, outputMost, outputMost + 1, 1e6, 2 ** 53 + 2, 1e21];

for (const [format] of modelFormats) {
  for (const stream of format.hasOutput ? [false, true] : [false]) {
    for (const side of format.hasOutput ? ["input", "output"] : ["input"]) {
      const how = `${format.path}${stream ? ", streamed" : ""}, ${side}`;
      Deno.test(`reports: a larger one is never charged less: ${how}`, async () => {
        using world = await paidWorld();
        let before = 0n;
        const charges: bigint[] = [];
        for (const count of counts) {
          const tokens = { input: 9, output: format.hasOutput ? 6 : 0, [side]: count };
          const said = { id: `${charges.length}`, text: "Hello", tokens };
          world.upstream.once(() =>
            stream
              ? sseBytes([
                new TextEncoder().encode(format.events(said, 1, false).map(frameOf).join("")),
              ])
              : wholeResponse(format, said)
          );
          const body = format.body({ user: "ada", stream, cap: 100 });
          const headers = { "x-service-user": "ada" };
          const response = await world.call(`/v1${format.path}`, { body, headers });
          assert.equal(response.status, 200, await response.clone().text());
          await response.text();
          const charged = await chargeOf(world);
          assert.ok(charged >= before, `${charged} < ${before} at ${count}`);
          before = charged;
          charges.push(charged);
        }
        assert.equal(charges.at(-1), charges.at(-3), "up to a bound");
        if (side === "input") return;
        const input = BigInt(9 * 1_000);
        const wanted = counts.map((count) => input + BigInt(Math.min(count, outputMost) * 2_000));
        assert.deepEqual(charges, wanted);
      });
    }
  }
}

const image = {
  type: "image_url",
  image_url: { url: "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAgAAAAI" },
};
const paper = (bytes: Uint8Array) => ({
  type: "file",
  file: { filename: "a.pdf", file_data: `data:application/pdf;base64,${bytes.toBase64()}` },
});

/** Three hundred pages whose type is an object of its own. */
const indirectPages = (() => {
  const ids = Array.from({ length: 300 }, (_, at) => 10 + at);
  const kids = ids.map((id) => `${id} 0 R`).join(" ");
  const parts = [
    "%PDF-1.7\n1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj\n",
    `2 0 obj << /Type 3 0 R /Kids [${kids}] /Count 300 >> endobj\n3 0 obj /Pages endobj\n`,
    "4 0 obj /Page endobj\n",
    ...ids.map((id) => `${id} 0 obj << /Type 4 0 R /Parent 2 0 R >> endobj\n`),
    "trailer << /Root 1 0 R >>\n%%EOF\n",
  ];
  return new TextEncoder().encode(parts.join(""));
})();

for (const [what, part] of [["an image", image], ["a document", paper(pdf({ pages: 1 }))]]) {
  Deno.test(`reports: of a prompt with ${what}, any up to the context window is charged`, async () => {
    using world = await paidWorld({ "gpt-4o": price });
    const content = [{ type: "text", text: "What is it?" }, part];
    const ask = async (model: string, count: number) => {
      world.upstream.once(() => completion({ model, usage: usage(count, 5) }));
      const body = chatBody({ model, messages: [{ role: "user", content }] });
      assert.equal((await world.call("/v1/chat/completions", { body })).status, 200);
      return await chargeOf(world) / 1_000n - 10n;
    };
    for (const count of [300, 100_000, 1_048_576]) {
      assert.equal(await ask(modelName, count), BigInt(count));
    }
    assert.equal(await ask(modelName, 2_000_000), 1_048_576n);
    assert.equal(await ask("gpt-4o", 128_000), 128_000n);
    assert.equal(await ask("gpt-4o", 2_000_000), 128_000n);
  });
}

Deno.test("reports: a document's pages are held, and its report is charged", async () => {
  using world = await paidWorld();
  const content = [paper(indirectPages)];
  let held = "";
  world.upstream.once(async () => {
    held = (await world.balance("ada")).held;
    return completion({ usage: usage(450_000, 5) });
  });
  const body = chatBody({ messages: [{ role: "user", content }] });
  await world.call("/v1/chat/completions", { body });
  assert.ok(Number(held) >= 0.45, held);
  assert.equal((await usageOf(world))[0]?.amount, "0.45001");
});

const data = new Uint8Array(400_000).fill(7);
const sounds: Record<string, Uint8Array> = {
  "MP4 with sizes before the codec, and a decoy": mp4Sound({
    tables: stbl({ frames: 43, order: ["stsz", "stsd", "stsz"] }),
    more: [...data],
  }),
  "MP4 whose tables list a second of it": mp4Sound({ frames: 43, more: [...data] }),
  "an extensible WAV with MP3 inside": wav({
    seconds: 1,
    rate: 48_000,
    channels: 2,
    bits: 32,
    format: 0xfffe,
    subformat: 0x55,
  }),
  "an AVI with a format at its top": Uint8Array.from([
    ...[...tag("RIFF"), 0, 0, 0, 0, ...tag("AVI fmt "), 16, 0, 0, 0, 1, 0, 2, 0],
    ...[0, 0xee, 2, 0, 0, 0xb8, 0x0b, 0, 4, 0, 16, 0],
    ...data,
  ]),
};
const heard = { whisper: { input: "0", output: "0", audioMinutes: "0.6" } };
for (const [what, file] of Object.entries(sounds)) {
  for (const path of ["transcriptions", "translations"]) {
    Deno.test(`reports: a provider's seconds are charged, whatever a file says: ${path} of ${what}`, async () => {
      using world = await paidWorld(heard);
      let before = 0n;
      for (const seconds of [0.4, 1, 600, 700, 800, 1e5, 1e6, 1e9]) {
        world.upstream.once(() =>
          seconds % 2 === 0
            ? Response.json({ text: "Hi", duration: seconds })
            : Response.json({ text: "Hi", usage: { type: "duration", seconds } })
        );
        const form = { model: "whisper", user: "ada", file: new Blob([new Uint8Array(file)]) };
        await (await sendForm(world, `/v1/audio/${path}`, form)).text();
        const charged = await chargeOf(world);
        assert.ok(charged >= before);
        before = charged;
        if (seconds === 600) assert.equal(charged, parseAmount("6"));
      }
      const most = Math.ceil(file.length / 500);
      assert.equal(before, BigInt(most) * 10_000_000n);
    });
  }
}

Deno.test("reports: a transcript's tokens are charged, whatever a file says", async () => {
  using world = await paidWorld({ hears: { input: "2", audioInput: "6", output: "10" } });
  const file = sounds["MP4 whose tables list a second of it"] ?? data;
  for (const stream of [false, true]) {
    const used = { type: "tokens", input_tokens: 7_500, output_tokens: 1_800 };
    const event = { type: "transcript.text.done", text: "Hi", usage: used };
    world.upstream.once(() => stream ? sse([event]) : Response.json({ text: "Hi", usage: used }));
    const form = { model: "hears", user: "ada", file: new Blob([new Uint8Array(file)]) };
    const more = stream ? { stream: "true" } : {};
    await (await sendForm(world, "/v1/audio/transcriptions", { ...form, ...more })).text();
    assert.equal((await usageOf(world))[0]?.amount, "0.063");
  }
});

Deno.test("reports: calls of tools and stated costs are charged up to a bound", async () => {
  using world = await paidWorld({
    searches: { ...price, toolCalls: { web_search: "0.01" } },
    stated: { ...price, priceFrom: "provider" },
  });
  let before = 0n;
  for (const calls of [1, 9_999, 10_000, 10_001, 1e9]) {
    const used = usage(10, 5, { server_tool_use: { web_search_requests: calls } });
    world.upstream.once(() => completion({ model: "searches", usage: used }));
    await world.call("/v1/chat/completions", { body: chatBody({ model: "searches" }) });
    const charged = await chargeOf(world);
    assert.equal(charged, BigInt(Math.min(calls, 10_000)) * 10_000_000n + 20_000n);
    assert.ok(charged >= before);
    before = charged;
  }
  for (const cost of [0.049, 0.05, 0.051, 1, 1e6, 1e7]) {
    world.upstream.once(() => completion({ model: "stated", usage: { ...usage(10, 5), cost } }));
    await world.call("/v1/chat/completions", { body: chatBody({ model: "stated" }) });
    assert.equal(await chargeOf(world), BigInt(Math.round(Math.min(cost, 0.05) * 1e9)));
  }
});

Deno.test("reports: an output above its bound is charged up to the bound", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const reports: [number, number][] = [
    [32_900, 32_900],
    [32_968, 32_968],
    [32_969, 32_968],
    [99_000_000, 32_968],
    [2 ** 53 + 2, 32_968],
    [1e21, 32_968],
  ];
  for (const [reported, charged] of reports) {
    world.upstream.once(() => completion({ usage: usage(10, reported) }));
    await chat(world, { max_tokens: 100 });
    assert.equal((await usageOf(world))[0]?.usage.outputTokens, charged);
    const logged = world.logged.filter(({ event }) => event === "usage_doubtful");
    assert.equal(logged.length > 0, reported !== charged);
  }
});

Deno.test("reports: a report above a bound never makes the bill fall", async () => {
  const models = { "test-model": { input: "0", output: "2000" } };
  using world = await createWorld({ project: { pricing: { models } } });
  await world.deposit("ada", "1000");
  const reports: [number, string][] = [[32_768, "65.536"], [32_770, "65.54"], [32_771, "65.54"]];
  for (const [reported, cost] of reports) {
    world.upstream.once(() => completion({ usage: usage(10, reported) }));
    const { body } = await chat(world, { max_tokens: 1 });
    assert.equal(body.usage.cost_exact, cost);
  }
});

Deno.test("reports: fractions of tokens are rounded up", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  world.upstream.once(() => completion({ usage: usage(10.5, 5.25) }));
  const { body } = await chat(world);
  assert.equal(body.usage.cost_exact, "0.000023");
});

Deno.test("reports: a prompt above its bound is charged up to the bound, and logged", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  // As from gateways that search, or add their own prompts.
  const used = usage(99_000_000, 700, { completion_tokens_details: { reasoning_tokens: 650 } });
  world.upstream.once(() => completion({ usage: used }));
  const { body } = await chat(world);
  // Twice the 79 bytes of the request, and 2,000.
  const counted = { prompt_tokens: 2_158, completion_tokens: 700, total_tokens: 2_858 };
  assert.deepEqual(body.usage, { ...used, ...counted, cost: 0.003558, cost_exact: "0.003558" }); // case 28
  const [entry] = await usageOf(world);
  const { source, outputTokens, reasoningTokens } = entry?.usage ?? {};
  assert.deepEqual([source, outputTokens, reasoningTokens], ["estimated", 700, 650]);
  const told = world.logged.find(({ event }) => event === "usage_doubtful");
  assert.equal(told?.promptTokens, 99_000_000);
});

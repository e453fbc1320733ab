import assert from "node:assert/strict";
import { readTranscriptionRequest } from "../../src/formats/audio/transcription_request.ts";
import { pdf } from "../pricing/files.ts";
import { sendForm, wav } from "../support/media.ts";
import { message } from "../support/messages.ts";
import { upstreamResponse } from "../support/responses.ts";
import { completion } from "../support/upstream.ts";
import { type Body, createWorld, type World } from "../support/world.ts";

const models = {
  "test-model": { input: "1", output: "2", maxOutputTokens: 1000, reasoning: false },
  free: { input: "0", output: "0" },
  "whisper-1": { input: "0", output: "0", audioMinutes: "0.006" },
};

async function mediaWorld(project: Body = {}): Promise<World> {
  const world = await createWorld({ project: { pricing: { models }, ...project } });
  world.upstream.reply(({ url }) => {
    if (url.endsWith("/messages")) return message();
    return url.endsWith("/responses") ? Response.json(upstreamResponse()) : completion();
  });
  return world;
}

const data = pdf({ pages: 30 }).toBase64();
const uri = `data:application/pdf;base64,${data}`;
const chatPart = { type: "file", file: { filename: "a.pdf", file_data: uri } };
const sound = { type: "input_audio", input_audio: { format: "wav", data: "UklGRg".repeat(500) } };
const source = { type: "base64", media_type: "application/pdf", data };
const image = {
  type: "image_url",
  image_url: { url: `data:image/png;base64,${"iVBO".repeat(400)}` },
};
const inputFile = { type: "input_file", filename: "a.pdf", file_data: uri };
const max_tokens = 20;
const user = (content: unknown) => [{ role: "user", content }];

const endpoints: [string, string, Body][] = [
  ["a chat with a PDF", "/v1/chat/completions", { messages: user([chatPart]) }],
  ["a chat with a sound", "/v1/chat/completions", { messages: user([sound]) }],
  ["a chat with an image", "/v1/chat/completions", { messages: user([image]) }],
  ["a message with a PDF", "/v1/messages", {
    max_tokens,
    messages: user([{ type: "document", source }]),
  }],
  ["a response with a PDF", "/v1/responses", { input: user([inputFile]) }],
];

/** How often content was decoded while `work` ran. */
async function decodings(work: () => Promise<unknown>): Promise<number> {
  const { fromBase64 } = Uint8Array;
  let count = 0;
  Uint8Array.fromBase64 = (...decoded: Parameters<typeof fromBase64>) => {
    count++;
    return fromBase64(...decoded);
  };
  try {
    await work();
  } finally {
    Uint8Array.fromBase64 = fromBase64;
  }
  return count;
}

const asUser = (name: string) => ({ "x-service-user": name });

for (const [what, path, fields] of endpoints) {
  const ask = (world: World, name: string, more: Body = {}) =>
    world.json(path, {
      body: { model: "test-model", ...fields, ...more },
      headers: asUser(name),
    });

  Deno.test(`money first: ${what} is not read for a user without money, and is for others`, async () => {
    using world = await mediaWorld();
    const refused = await decodings(async () => {
      const { status, response } = await ask(world, "bob");
      assert.equal(status, 200);
      assert.equal(response.headers.get("x-service-paywall"), "insufficient_funds");
    });
    assert.equal(refused, 0);
    await world.deposit("ada", "10");
    const read = await decodings(async () => {
      const { status, body, response } = await ask(world, "ada");
      assert.equal(status, 200, JSON.stringify(body));
      assert.equal(response.headers.get("x-service-paywall"), null);
    });
    assert.ok(read > 0);
    assert.equal(world.upstream.calls.length, 1);
  });

  Deno.test(`money first: ${what} is served without money where the model is free`, async () => {
    using world = await mediaWorld();
    const { status, body, response } = await ask(world, "bob", { model: "free" });
    assert.equal(status, 200, JSON.stringify(body));
    assert.equal(response.headers.get("x-service-paywall"), null);
    assert.equal(world.upstream.calls.length, 1);
  });

  Deno.test(`money first: ${what} is not read beyond a rate limit`, async () => {
    using world = await mediaWorld({ limits: { user: { requestsPerMinute: 1 } } });
    await world.deposit("ada", "10");
    await ask(world, "ada");
    assert.equal(await decodings(() => ask(world, "ada")), 0);
    assert.equal(world.upstream.calls.length, 1);
  });

  Deno.test(`money first: ${what} is not read where its route has several targets`, async () => {
    const upstreams = Object.fromEntries(
      ["one", "two"].map((name) => [name, { url: `https://${name}.test/v1` }]),
    );
    const targets = [{ upstream: "one" }, { upstream: "two" }];
    using world = await mediaWorld({
      upstreams,
      routes: { "*": { strategy: "cheapest", targets } },
    });
    assert.equal(await decodings(() => ask(world, "bob")), 0);
  });
}

Deno.test("money first: a user whose trial credit does not pay for the least is refused, one whose does goes on", async () => {
  using world = await mediaWorld({ trialCredits: "0.000001" });
  const body = { model: "test-model", messages: user([chatPart]) };
  const seen = await decodings(async () => {
    const { response } = await world.json("/v1/chat/completions", { body, headers: asUser("bob") });
    assert.equal(response.headers.get("x-service-paywall"), "insufficient_funds");
  });
  assert.equal(seen, 0);
});

Deno.test("money first: a fault of the request comes before its refusal", async () => {
  using world = await mediaWorld();
  const body = { model: "unknown", messages: user([chatPart]) };
  const { status } = await world.json("/v1/chat/completions", { body, headers: asUser("bob") });
  assert.equal(status, 404);
});

const seconds = 30;
const file = wav(seconds);

Deno.test("money first: a file of sound is measured by its call's second step", async () => {
  const bytes = new Uint8Array(await file.arrayBuffer());
  const form = { name: "a.wav", type: "audio/wav", bytes };
  const { measure, units, outputTokens } = readTranscriptionRequest({ model: "whisper-1" }, {
    bytes: 10,
    fields: { unknown: "refuse", allowed: [] },
    file: form,
  });
  assert.ok((units?.audioSeconds ?? 1) < 1);
  const measured = measure?.();
  assert.ok((measured?.units.audioSeconds ?? 0) >= seconds);
  assert.ok((measured?.outputTokens ?? 0) > (outputTokens ?? Infinity));
});

Deno.test("money first: transcripts are refused without money, and for money that pays for less", async () => {
  using world = await mediaWorld();
  await world.deposit("poor", "0.001");
  await world.deposit("ada", "0.01");
  world.upstream.reply(() => Response.json({ text: "Hi" }));
  for (const [name, status] of [["bob", 402], ["poor", 402], ["ada", 200]] as const) {
    for (const path of ["/v1/audio/transcriptions", "/v1/audio/translations"]) {
      if (name === "ada" && path.endsWith("translations")) continue;
      const response = await sendForm(world, path, { model: "whisper-1", file, user: name });
      await response.body?.cancel();
      assert.equal(response.status, status, `${name} ${path}`);
    }
  }
  assert.equal(world.upstream.calls.length, 1);
});

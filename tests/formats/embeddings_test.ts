import assert from "node:assert/strict";
import OpenAI from "openai";
import { usageOf } from "../support/chat.ts";
import { type Body, createWorld, type World } from "../support/world.ts";

const path = "/v1/embeddings";
const price = { input: "1", output: "0" };
const project = { pricing: { models: { "embed-3": price } } };

const answer = (more: Body = {}) => ({
  object: "list",
  data: [{ object: "embedding", index: 0, embedding: [0.0023064255, -0.009327292, 1e-7] }],
  model: "embed-3",
  usage: { prompt_tokens: 8, total_tokens: 8 },
  ...more,
});

const embed = (world: World, body: Body = {}, more: Body = {}) =>
  world.call(path, { body: { model: "embed-3", input: "Hello", user: "ada", ...body }, ...more });

async function paidWorld(more: Body = {}): Promise<World> {
  const world = await createWorld({ project, ...more });
  await world.deposit("ada", "1");
  return world;
}

const inputs: [string, unknown][] = [
  ["a text", "Hello"],
  ["texts", ["one", "two"]],
  ["token ids", [1, 2, 3]],
  ["lists of token ids", [[1, 2], [3]]],
];
for (const [what, input] of inputs) {
  for (const encoding of ["float", "base64", undefined]) {
    Deno.test(`embeddings: ${what} as ${encoding ?? "the default"} pass on, and are charged by their prompt`, async () => {
      using world = await paidWorld();
      const text = JSON.stringify(answer());
      world.upstream.once(() =>
        new Response(text, { headers: { "content-type": "application/json" } })
      );
      const response = await embed(world, { input, encoding_format: encoding });
      assert.equal(response.status, 200);
      assert.equal(await response.text(), text, "byte for byte");
      assert.equal(response.headers.get("x-service-cost"), "0.000008");
      assert.equal(response.headers.get("x-service-balance"), "0.999992");
      const [call] = world.upstream.calls;
      assert.equal(call?.url, "https://upstream.test/v1/embeddings");
      const sent = call?.body ?? assert.fail();
      assert.deepEqual([sent.input, sent.encoding_format], [input, encoding]);
      assert.equal("max_tokens" in sent || "max_completion_tokens" in sent, false);
      const [entry] = await usageOf(world);
      assert.deepEqual([entry?.usage.uncachedInputTokens, entry?.usage.source], [8, "provider"]);
    });
  }
}

const bad: [string, unknown][] = [
  ["nothing", undefined],
  ["an empty text", ""],
  ["no texts", []],
  ["an empty text among others", ["a", ""]],
  ["an empty list of ids", [[1], []]],
  ["a negative id", [-1]],
  ["a mixture", ["a", 1]],
  ["an object", { a: 1 }],
  ["too many", Array(2_049).fill("a")],
];
for (const [what, input] of bad) {
  Deno.test(`embeddings: ${what} is 400 and reaches no upstream`, async () => {
    using world = await paidWorld();
    const response = await embed(world, { input });
    assert.equal(response.status, 400);
    assert.equal((await response.json()).error.param, "input");
    assert.equal(world.upstream.calls.length, 0);
  });
}

Deno.test("embeddings: without money the answer is 402 with the message and the link", async () => {
  using world = await createWorld({ project });
  const response = await embed(world);
  assert.equal(response.status, 402);
  const { error } = await response.json();
  assert.equal(error.code, "insufficient_funds");
  assert.ok(error.message.includes(response.headers.get("x-service-paywall-url")));
  assert.equal(response.headers.get("x-service-paywall"), "insufficient_funds");
  assert.equal(world.upstream.calls.length, 0);
});

Deno.test("embeddings: the hold is bounded by the number of token ids, whatever their length", async () => {
  using world = await createWorld({ project });
  await world.deposit("ada", "0.00003");
  world.upstream.reply(() => Response.json(answer()));
  assert.equal((await embed(world, { input: Array(30).fill(100_000) })).status, 402);
  assert.equal((await embed(world, { input: Array(5).fill(100_000) })).status, 200);
});

Deno.test("embeddings: usage that is absent is counted, an error with status 200 is free, a rate limit is 429", async () => {
  using world = await paidWorld({
    project: { ...project, limits: { user: { requestsPerMinute: 2 }, reply: "message" } },
  });
  world.upstream.once(() => Response.json(answer({ usage: undefined })));
  assert.equal((await embed(world, { input: [1, 2, 3] })).status, 200);
  const [entry] = await usageOf(world);
  assert.deepEqual([entry?.usage.uncachedInputTokens, entry?.usage.source], [3, "estimated"]);
  world.upstream.once(() =>
    Response.json({ error: { message: "no", code: "context_length_exceeded" } })
  );
  assert.equal((await embed(world)).status, 400);
  assert.equal((await usageOf(world)).length, 1);
  assert.equal((await embed(world)).status, 429);
});

const halves: [string, Record<string, unknown>, number][] = [
  ["the total alone", { total_tokens: 40 }, 40],
  ["a prompt of zero, with the total", { prompt_tokens: 0, total_tokens: 40 }, 40],
  ["the prompt alone", { prompt_tokens: 40 }, 40],
  ["another name", { input_tokens: 40 }, 40],
  ["Google's total", { promptTokenCount: null, totalTokenCount: 40 }, 40],
  ["a response of zero", { prompt_tokens: 40, completion_tokens: 0, total_tokens: 40 }, 40],
];
for (const [what, used, tokens] of halves) {
  Deno.test(`embeddings: half a report counts: ${what}`, async () => {
    using world = await paidWorld({ project });
    world.upstream.once(() => Response.json(answer({ usage: used })));
    assert.equal((await embed(world, { input: [1, 2, 3] })).status, 200);
    const [entry] = await usageOf(world);
    assert.deepEqual([entry?.usage.uncachedInputTokens, entry?.usage.outputTokens], [tokens, 0]);
  });
}

Deno.test("embeddings: Cohere's own report counts", async () => {
  using world = await paidWorld({ project });
  const meta = { billed_units: { input_tokens: 40 } };
  world.upstream.once(() => Response.json(answer({ usage: undefined, meta })));
  assert.equal((await embed(world, { input: [1, 2, 3] })).status, 200);
  assert.equal((await usageOf(world))[0]?.usage.uncachedInputTokens, 40);
});

Deno.test("embeddings: a repeated request under its key is answered from the store, and charged once", async () => {
  using world = await paidWorld();
  world.upstream.reply(() => Response.json(answer()));
  const headers = { "idempotency-key": "k" };
  const first = await (await embed(world, {}, { headers })).text();
  const again = await embed(world, {}, { headers });
  assert.equal(await again.text(), first);
  assert.equal(again.headers.get("idempotent-replayed"), "true");
  assert.equal((await usageOf(world)).length, 1);
});

const notEmbeddings: [string, () => Response, number, string][] = [
  [
    "no such endpoint",
    () => new Response("Not Found", { status: 404 }),
    404,
    "endpoint_not_served",
  ],
  [
    "a stream",
    () => new Response("data: {}\n\n", { headers: { "content-type": "text/event-stream" } }),
    502,
    "upstream_error",
  ],
  ["a stream without its type", () => new Response("data: {}\n\n"), 502, "upstream_error"],
  [
    "a page",
    () => new Response("<html>", { headers: { "content-type": "text/html" } }),
    502,
    "upstream_error",
  ],
  ["a broken object", () => new Response('{"data":'), 502, "upstream_error"],
];
for (const [what, reply, status, code] of notEmbeddings) {
  Deno.test(`embeddings: ${what} of an upstream is ${status} ${code}, and free`, async () => {
    using world = await paidWorld();
    world.upstream.once(reply);
    const response = await embed(world);
    assert.deepEqual([response.status, (await response.json()).error.code], [status, code]);
    assert.equal((await usageOf(world)).length, 0);
    assert.equal((await world.balance("ada")).held, "0");
  });
}

Deno.test("embeddings: large responses pass as they arrive, and are charged by their usage", async () => {
  using world = await paidWorld({ env: { UPSTREAM_BODY_BYTES_MAX: "10000" } });
  const data = [{ object: "embedding", index: 0, embedding: "A".repeat(300_000) }];
  const text = JSON.stringify(answer({ data }));
  world.upstream.once(() => new Response(text));
  const response = await embed(world);
  assert.equal(await response.text(), text);
  assert.equal((await usageOf(world))[0]?.usage.uncachedInputTokens, 8);
});

Deno.test("embeddings: unknown fields are refused, the user may stand in the path, OpenAI's client works", async () => {
  using world = await paidWorld();
  assert.equal((await embed(world, { api_base: "https://evil.test" })).status, 400);
  world.upstream.reply(() => Response.json(answer()));
  const inPath = await world.call("/v1/ada/embeddings", { body: { model: "embed-3", input: "a" } });
  assert.equal(inPath.status, 200);
  const client = new OpenAI({
    apiKey: world.apiKey,
    baseURL: "http://localhost/v1",
    fetch: async (input: string | URL | Request, init?: RequestInit) =>
      await world.app.fetch(new Request(input, init)),
  });
  world.upstream.once(() =>
    Response.json(answer({ data: [{ index: 0, embedding: btoa("\x00\x00\x80\x3f") }] }))
  );
  const made = await client.embeddings.create({ model: "embed-3", input: "Hello", user: "ada" });
  assert.deepEqual(made.data[0]?.embedding, [1]);
  await assert.rejects(
    client.embeddings.create({ model: "embed-3", input: "Hello", user: "nobody" }),
    (error: Error & { status?: number }) => {
      assert.equal(error.status, 402);
      assert.match(error.message, /https:\/\//);
      return true;
    },
  );
});

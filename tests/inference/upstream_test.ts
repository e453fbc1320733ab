import assert from "node:assert/strict";
import { chat, chatStream, usageOf } from "../support/chat.ts";
import { completion, helloStream, readEvents } from "../support/upstream.ts";
import { createWorld, type World } from "../support/world.ts";

/** Nothing was charged, and nothing is held. */
async function assertFree(world: World): Promise<void> {
  assert.deepEqual(await world.balance("ada"), { balance: "1", held: "0", available: "1" });
  assert.deepEqual(await usageOf(world), []);
}

interface Refusal {
  name: string;
  status: number;
  error: unknown;
  retryAfter?: string;
  expected: { status: number; code: string | null; param?: string | null; type?: string };
  /** Whether the upstream's message reaches the caller. */
  told: boolean;
}

const said = { message: "said by the upstream", type: "invalid_request_error", param: null };
const unavailable = { status: 502, code: "upstream_unavailable" };

const refusals: Refusal[] = [
  {
    name: "a bad temperature", // case 13
    status: 400,
    error: { ...said, param: "temperature", code: "decimal_above_max_value" },
    expected: { status: 400, code: "decimal_above_max_value", param: "temperature" },
    told: true,
  },
  {
    name: "too long a prompt", // case 35
    status: 400,
    error: { ...said, param: "messages", code: "context_length_exceeded" },
    expected: { status: 400, code: "context_length_exceeded", param: "messages" },
    told: true,
  },
  {
    name: "a numeric code", // case 38
    status: 400,
    error: { ...said, code: 400 },
    expected: { status: 400, code: "400" },
    told: true,
  },
  {
    name: "an unknown model", // case 35
    status: 404,
    error: { ...said, code: "model_not_found" },
    expected: { status: 404, code: "model_not_found" },
    told: true,
  },
  { name: "413", status: 413, error: said, expected: { status: 413, code: null }, told: true }, // case 35
  {
    name: "422 with a bare text", // case 35
    status: 422,
    error: "said by the upstream",
    expected: { status: 422, code: null, type: "invalid_request_error" },
    told: true,
  },
  {
    name: "a rate limit", // case 35
    status: 429,
    error: { message: said.message },
    retryAfter: "7",
    expected: { status: 429, code: "rate_limit_exceeded", type: "rate_limit_error" },
    told: true,
  },
  {
    name: "the owner's quota",
    status: 429,
    error: { ...said, type: "insufficient_quota", code: "insufficient_quota" },
    expected: unavailable,
    told: false,
  },
  { name: "the owner's key", status: 401, error: said, expected: unavailable, told: false }, // case 35
  { name: "the owner's bill", status: 402, error: said, expected: unavailable, told: false },
  { name: "the owner's country", status: 403, error: said, expected: unavailable, told: false },
  {
    name: "a fault of its own", // case 35
    status: 500,
    error: said,
    expected: { status: 502, code: "upstream_error", type: "server_error" },
    told: false,
  },
  {
    name: "an overload", // case 35
    status: 503,
    error: said,
    retryAfter: "3",
    expected: { status: 502, code: "upstream_error", type: "server_error" },
    told: false,
  },
  {
    name: "a conflict, which clients would retry",
    status: 409,
    error: said,
    expected: { status: 502, code: "upstream_error" },
    told: false,
  },
  {
    name: "a redirect",
    status: 307,
    error: said,
    expected: { status: 502, code: "upstream_error" },
    told: false,
  },
];

for (const { name, status, error, retryAfter, expected, told } of refusals) {
  Deno.test(`chat upstream: ${name} (${status}) is ${expected.status} and free`, async () => {
    using world = await createWorld();
    await world.deposit("ada", "1");
    const headers: Record<string, string> = retryAfter ? { "retry-after": retryAfter } : {};
    world.upstream.reply(() => Response.json({ error }, { status, headers }));
    for (const stream of [false, true]) {
      const { status: answered, body, response } = await chat(world, { stream });
      assert.equal(answered, expected.status);
      assert.deepEqual(Object.keys(body.error), ["message", "type", "param", "code"]);
      const { code, param = null, type = body.error.type } = expected;
      assert.deepEqual(
        [body.error.code, body.error.param, body.error.type],
        [code, param, type],
      );
      assert.equal(response.headers.get("retry-after"), retryAfter ?? null);
      assert.equal(JSON.stringify(body).includes(said.message), told);
      await assertFree(world);
    }
    if (!told) assert.ok(JSON.stringify(world.logged).includes(said.message));
  });
}

Deno.test("chat upstream: a missing upstream is reported, and nothing is charged", async () => {
  using world = await createWorld({ env: { UPSTREAM_URL: "", UPSTREAM_API_KEY: "" } });
  await world.deposit("ada", "1");
  for (const stream of [false, true]) {
    const { status, body } = await chat(world, { stream });
    assert.equal(status, 502);
    assert.equal(body.error.code, "upstream_unavailable");
    assert.match(body.error.message, /^No upstream is configured for this project: .*UPSTREAM_URL/);
    await assertFree(world);
  }
  assert.ok(JSON.stringify(world.logged).includes("no UPSTREAM_URL, and no upstream"));
  assert.equal(world.upstream.calls.length, 0);
});

Deno.test("chat upstream: the operator's key is removed from what is passed on", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const message = "Incorrect: upstream-secret-key";
  world.upstream.once(() => Response.json({ error: { message } }, { status: 400 }));
  const { body } = await chat(world);
  assert.equal(body.error.message, "Incorrect: [redacted]");
});

const nonsense: [string, () => Response][] = [
  ["a page", () => html("<html>Welcome</html>")],
  ["nothing", () => new Response("")],
  ["a truncated answer", () => json('{"id":"x","choices":[{"index":0,"mess')],
  ["an answer without choices", () => json('{"id":"x"}')],
  ["an answer with an empty list of choices", () => json('{"id":"x","choices":[]}')],
  ["a list", () => json("[]")],
  ["an error with status 200", () => json('{"error":{"message":"busy","code":500},"choices":[]}')],
  [
    "an error with status 200, and choices beside it",
    () => json('{"error":{"message":"busy"},"choices":[{"message":{"content":"Hel"}}]}'),
  ],
  ["no content", () => new Response(null, { status: 204 })],
  ["bytes that are no text", () => new Response(new Uint8Array([0xff, 0xfe]))],
  ["an answer that breaks off", () => new Response(breaking())],
];

function html(text: string): Response {
  return new Response(text, { headers: { "content-type": "text/html" } });
}

function json(text: string): Response {
  return new Response(text, { headers: { "content-type": "application/json" } });
}

function breaking(): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      controller.enqueue(new TextEncoder().encode('{"choices":['));
    },
    pull: (controller) => controller.error(new TypeError("connection reset")),
  });
}

for (const [name, answer] of nonsense) {
  Deno.test(`chat upstream: ${name} is 502 and free`, async () => { // case 36
    using world = await createWorld();
    await world.deposit("ada", "1");
    world.upstream.reply(answer);
    for (const stream of [false, true]) {
      const { status, body, response } = await chat(world, { stream });
      assert.equal(status, 502);
      assert.equal(body.error.type, "server_error");
      assert.equal(body.error.code, "upstream_error");
      assert.equal(response.headers.get("content-type"), "application/json");
      await assertFree(world);
    }
  });
}

Deno.test("chat upstream: an endless body that is no response is 502, and free", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const part = new Uint8Array(1024 * 1024).fill(0x20);
  const endless = new ReadableStream({ pull: (controller) => controller.enqueue(part) });
  world.upstream.once(() => new Response(endless));
  assert.equal((await chat(world)).status, 502); // case 36
  await assertFree(world);
});

Deno.test("chat upstream: what a plain server leaves out is added", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const choices = [{ index: 0, message: { role: "assistant", content: "Hi" } }];
  world.upstream.once(() => Response.json({ choices }));
  const { body } = await chat(world);
  assert.match(body.id, /^chatcmpl-[0-9A-Z]{26}$/);
  assert.deepEqual([body.object, body.created, body.model], [
    "chat.completion",
    1767225600,
    "test-model",
  ]);
  const [choice] = body.choices;
  assert.deepEqual(choice.message, { role: "assistant", content: "Hi", refusal: null });
  assert.equal(choice.logprobs, null);
  assert.equal(body.usage.completion_tokens, 1);
});

function refuse(message: string, param: string | null, code: string | null): Response {
  return Response.json({ error: { message, type: "invalid_request_error", param, code } }, {
    status: 400,
  });
}

for (const status of [400, 422]) {
  Deno.test(`chat upstream: one that refuses stream_options (${status}) is called once more`, async () => {
    using world = await createWorld();
    await world.deposit("ada", "1");
    world.upstream.reply(({ body }) =>
      body.stream_options
        ? Response.json({ detail: "extra field stream_options not permitted" }, { status })
        : plainStream()
    );
    const events = await readEvents(await chatStream(world));
    assert.equal(events.at(-1), "[DONE]"); // case 43
    assert.equal(world.upstream.calls.length, 2);
    assert.equal(world.upstream.calls[1]?.body.stream_options, undefined);
    const [entry, ...more] = await usageOf(world);
    assert.deepEqual([entry?.usage.source, entry?.amount, more.length], [
      "estimated",
      "0.000012",
      0,
    ]);
    const again = await readEvents(
      await chatStream(world, { stream_options: { include_usage: true } }),
    );
    assert.equal(world.upstream.calls.length, 4);
    await readEvents(await chatStream(world));
    assert.equal(world.upstream.calls.length, 5, "the third request knows");
    assert.deepEqual(again.at(-2)?.usage, {
      prompt_tokens: 8,
      completion_tokens: 2,
      total_tokens: 10,
      cost: 0.000012,
      cost_exact: "0.000012",
    });
  });
}

/** A stream without usage, from a server that does not know stream_options. */
function plainStream(): Response {
  const text = ['{"choices":[{"index":0,"delta":{"content":"Hello there"}}]}', "[DONE]"]
    .map((data) => `data: ${data}\n\n`).join("");
  return new Response(text, { headers: { "content-type": "text/event-stream" } });
}

Deno.test("chat upstream: one caller's bad stream_options do not end others' exact usage", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  world.upstream.reply(({ body }) =>
    "bogus" in (body.stream_options ?? {})
      ? refuse("Unknown parameter: 'stream_options.bogus'.", "stream_options.bogus", "unknown")
      : helloStream()
  );
  const bogus = await chatStream(world, { stream_options: { bogus: 1 } });
  await bogus.body?.cancel();
  await readEvents(await chatStream(world));
  assert.deepEqual(world.upstream.calls.at(-1)?.body.stream_options, { include_usage: true }); // case 43
  assert.equal((await usageOf(world))[0]?.usage.source, "provider");
});

Deno.test("chat upstream: one that wants the newer field for the bound is called once more", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  world.upstream.reply(({ body }) =>
    body.max_tokens
      ? refuse("Unsupported parameter: 'max_tokens'", "max_tokens", "unsupported_parameter")
      : completion()
  );
  assert.equal((await chat(world, { max_tokens: 5 })).status, 200); // case 34
  assert.equal(world.upstream.calls[1]?.body.max_completion_tokens, 5);
  for (let calls = 0; calls < 2; calls++) await chat(world, { max_tokens: 5 });
  assert.equal(world.upstream.calls.length, 5, "the third request knows");
  assert.equal((await usageOf(world)).length, 3);
});

Deno.test("chat upstream: if the owner has set the field of the bound, no other is tried", async () => {
  const upstream = { url: "https://models.test/v1", maxTokensField: "max_tokens" };
  using world = await createWorld({ project: { upstream } });
  await world.deposit("ada", "1");
  world.upstream.reply(() =>
    refuse("Unsupported parameter: 'max_tokens'", "max_tokens", "unsupported_parameter")
  );
  assert.equal((await chat(world, { max_tokens: 5 })).status, 400);
  assert.deepEqual(world.upstream.calls.map(({ body }) => body.max_tokens), [5]);
});

Deno.test("chat upstream: a response that arrives in many chunks is complete", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const content = Array.from({ length: 2_000 }, (_, n) => `word ${n}`).join(" ");
  const choices = [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }];
  const bytes = new TextEncoder().encode(await completion({ choices }).text());
  const pieces = Array.from({ length: 9 }, (_, n) => bytes.slice(n * 3_000, (n + 1) * 3_000));
  world.upstream.once(() => new Response(ReadableStream.from(pieces)));
  const { body } = await chat(world);
  assert.equal(body.choices[0].message.content, content);
});

import assert from "node:assert/strict";
import { chat, chatStream, openReader, usageOf } from "../support/chat.ts";
import {
  chunk,
  completion,
  fedStream,
  helloStream,
  readEvents,
  sse,
  usage,
  usageChunk,
} from "../support/upstream.ts";
import { adminKey, createWorld } from "../support/world.ts";

// Facts about an upstream apply to all users, so no caller may teach it anything false.

const models = { "gpt-5": { input: "1", output: "2", maxOutputTokens: 1000 } };

function refuse(message: string, param: string | null, code: string | null): Response {
  const error = { message, type: "invalid_request_error", param, code };
  return Response.json({ error }, { status: 400 });
}

Deno.test("chat: a value that a server quotes does not end others' exact usage", async () => {
  using world = await createWorld({ project: { pricing: { models } } });
  await world.deposit("ada", "1");
  world.upstream.reply(({ body }) =>
    body.reasoning_effort === "stream_options"
      ? refuse("Invalid value: 'stream_options'. Supported: 'low', 'high'.", null, null)
      : helloStream()
  );
  const poison = { model: "gpt-5", reasoning_effort: "stream_options" };
  const { status, body } = await chatStream(world, poison);
  await body?.cancel();
  assert.equal(status, 400);
  await readEvents(await chatStream(world, { model: "gpt-5" }));
  assert.deepEqual(world.upstream.calls.at(-1)?.body.stream_options, { include_usage: true });
  assert.equal((await usageOf(world))[0]?.usage.source, "provider");
});

for (const param of ["max_completion_tokens_", "max_completion_tokens"]) {
  Deno.test(`chat: what a server says about ${param} in one request does not block a model for others`, async () => {
    using world = await createWorld({ project: { pricing: { models } } });
    await world.deposit("ada", "1");
    world.upstream.reply(({ body }) => {
      if ("bogus" in body) return refuse(`Unknown parameter: '${param}'.`, param, "unknown");
      if (!("max_tokens" in body)) return completion();
      return refuse("Unsupported parameter: 'max_tokens'.", "max_tokens", "unsupported_parameter");
    });
    assert.equal((await chat(world, { model: "gpt-5", bogus: 1 })).status, 400);
    const sent = world.upstream.calls.length;
    assert.equal((await chat(world, { model: "gpt-5" })).status, 200);
    assert.equal(world.upstream.calls.length, sent + 1, "and it is asked only once");
  });
}

Deno.test("chat: a server that changes its mind about the field of the bound is followed", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  for (
    const [refused, taken] of [["max_tokens", "max_completion_tokens"], [
      "max_completion_tokens",
      "max_tokens",
    ]]
  ) {
    world.upstream.reply(({ body }) =>
      String(refused) in body
        ? refuse(`Unsupported parameter: '${refused}'.`, String(refused), "unsupported_parameter")
        : completion()
    );
    for (let calls = 0; calls < 3; calls++) {
      assert.equal((await chat(world, { max_tokens: 5 })).status, 200);
      assert.equal(world.upstream.calls.at(-1)?.body[String(taken)], 5);
    }
    const before = world.upstream.calls.length;
    assert.equal((await chat(world, { max_tokens: 5 })).status, 200);
    assert.equal(world.upstream.calls.length - before, 1);
  }
});

Deno.test("chat: what was learned about a server survives a change of its project's settings", async () => {
  using world = await createWorld({ project: { upstream: { url: "https://models.test/v1" } } });
  await world.deposit("ada", "1");
  world.upstream.reply(({ body }) =>
    body.stream_options
      ? refuse("Unknown parameter: 'stream_options'.", "stream_options", "unknown_parameter")
      : helloStream()
  );
  for (let calls = 0; calls < 2; calls++) await readEvents(await chatStream(world));
  const path = `/v1/admin/projects/${world.projectId}`;
  const options = { method: "PATCH", key: adminKey, body: { name: "New" } };
  assert.equal((await world.json(path, options)).status, 200);
  await readEvents(await chatStream(world));
  const asked = world.upstream.calls.map(({ body }) => "stream_options" in body);
  assert.deepEqual(asked, [true, false, true, false, false]);
});

Deno.test("chat: a model that refuses stream_options does not end others' exact usage", async () => {
  const price = { input: "1", output: "2" };
  using world = await createWorld({ project: { pricing: { models: { old: price, new: price } } } });
  await world.deposit("ada", "1");
  world.upstream.reply(({ body }) =>
    body.model === "old" && body.stream_options
      ? refuse("Unknown parameter: 'stream_options'.", "stream_options", "unknown_parameter")
      : helloStream()
  );
  for (const model of ["new", "old", "old", "old", "new"]) {
    await readEvents(await chatStream(world, { model }));
  }
  const asked = world.upstream.calls.map(({ body }) => [body.model, "stream_options" in body]);
  assert.deepEqual(asked, [
    ["new", true],
    ["old", true],
    ["old", false],
    ["old", true],
    ["old", false],
    ["old", false],
    ["new", true],
  ]);
});

const tooLong: [string, string, string | null, number, boolean][] = [
  [
    "OpenAI",
    "max_tokens is too large: 16384. This model supports at most 4096 completion tokens, whereas you provided 16384.",
    "max_tokens",
    4096,
    true,
  ],
  [
    "DeepSeek",
    "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]",
    null,
    8192,
    true,
  ],
  [
    "vLLM",
    "This model's maximum context length is 4096 tokens. However, you requested 16400 tokens (16 in the messages, 16384 in the completion). Please reduce the length of the messages or completion.",
    null,
    4080,
    false,
  ],
  [
    "a newer vLLM",
    "'max_tokens' or 'max_completion_tokens' is too large: 16384. This model's maximum context length is 4096 tokens and your request has 16 input tokens (16384 > 4096 - 16).",
    null,
    4080,
    false,
  ],
];

/** The upstream refuses prompt and output together: the rest of the context is requested. */
const noRoom: [whose: string, message: (asked: number) => string, sent: number[]][] = [
  [
    "OpenAI, with tools",
    (asked) =>
      `This model's maximum context length is 8192 tokens. However, you requested ${
        asked + 42
      } tokens (12 in the messages, 30 in the functions, and ${asked} in the completion). Please reduce the length of the messages, functions, or completion.`,
    [16384, 8150],
  ],
  [
    "OpenRouter",
    (asked) =>
      `This endpoint's maximum context length is 8192 tokens. However, you requested about ${
        asked + 42
      } tokens (12 of text input, 30 of tool input, ${asked} in the output). Please reduce the length of either one.`,
    [16384, 8150],
  ],
  [
    "vLLM, which stops counting",
    (asked) =>
      `This model's maximum context length is 32768 tokens. However, you requested ${asked} output tokens and your prompt contains at least ${
        32768 - asked + 1
      } input tokens, for a total of at least 32769 tokens. Please reduce the length of the input prompt or the number of requested output tokens.`,
    [16384, 8192, 4096, 2048],
  ],
];

for (const [whose, message, sent] of noRoom) {
  Deno.test(`chat: ${whose} is asked for what is left beside the prompt`, async () => {
    for (const behind of [false, true]) {
      using world = await createWorld({ project: { pricing: { models: unbound } } });
      await world.deposit("ada", "1");
      const most = sent.at(-1) ?? 0;
      world.upstream.reply(({ body }) => {
        const asked = Number(body.max_tokens);
        if (asked <= most) return completion();
        if (!behind) return refuse(message(asked), null, null);
        const raw = JSON.stringify({ error: { message: message(asked) } });
        const error = { message: "Provider returned error", code: 400, metadata: { raw } };
        return Response.json({ error }, { status: 400 });
      });
      assert.equal((await chat(world)).status, 200);
      assert.deepEqual(world.upstream.calls.map(({ body }) => body.max_tokens), sent);
    }
  });
}

const unbound = { "test-model": { input: "1", output: "2" } };

for (
  const [words, sent, status] of [
    [20_000, [16_384, 10_744], 200],
    [29_000, [16_384, 844], 200],
    [40_000, [16_384], 400],
  ] as const
) {
  Deno.test(`chat: beside ${words} words that vLLM does not count, our own count tells what is left`, async () => {
    using world = await createWorld({ project: { pricing: { models: unbound } } });
    await world.deposit("ada", "1");
    world.upstream.reply(({ body }) => {
      const asked = Number(body.max_tokens);
      if (words + asked <= 32_768) return completion();
      const least = 32_768 - asked + 1;
      return refuse(
        `This model's maximum context length is 32768 tokens. However, you requested ${asked} output tokens and your prompt contains at least ${least} input tokens, for a total of at least 32769 tokens.`,
        null,
        null,
      );
    });
    const messages = [{ role: "user", content: " word".repeat(words) }];
    assert.equal((await chat(world, { messages })).status, status);
    const asked = world.upstream.calls.map(({ body }) => Number(body.max_tokens));
    assert.deepEqual(asked, sent);
  });
}

for (const [whose, message, param, most, remembers] of tooLong) {
  Deno.test(`chat: where no one set a bound, ${whose}'s "too long" leads to a shorter one`, async () => {
    using world = await createWorld({ project: { pricing: { models: unbound } } });
    await world.deposit("ada", "1");
    world.upstream.reply(({ body }) =>
      body.max_tokens > most ? refuse(message, param, null) : completion()
    );
    for (const calls of [2, 2, remembers ? 1 : 2]) {
      const before = world.upstream.calls.length;
      assert.equal((await chat(world)).status, 200);
      assert.equal(world.upstream.calls.length - before, calls);
      assert.equal(world.upstream.calls.at(-1)?.body.max_tokens, most);
    }
    const own = await chat(world, { max_tokens: 12_000 });
    assert.equal(own.status, 400, "what a caller asks for is not lowered by what was learned");
    assert.equal(world.upstream.calls.at(-1)?.body.max_tokens, 12_000);
  });
}

Deno.test("chat: what a server leaves for output beside one prompt does not bound others", async () => {
  using world = await createWorld({ project: { pricing: { models: unbound } } });
  await world.deposit("ada", "1");
  world.upstream.reply(({ body }) => {
    const room = 16_000 - JSON.stringify(body.messages).length;
    if (body.max_tokens <= room) return completion();
    return refuse(`max_tokens must be at most ${room} beside this prompt`, "max_tokens", null);
  });
  const bounds: number[] = [];
  for (const length of [9_000, 10]) {
    const messages = [{ role: "user", content: "x".repeat(length) }];
    assert.equal((await chat(world, { messages })).status, 200);
    bounds.push(world.upstream.calls.at(-1)?.body.max_tokens);
  }
  const [long = 0, short = 0] = bounds;
  assert.ok(long < 7_000 && short > 15_000, bounds.join());
});

Deno.test("chat: a prompt that is too long by itself is the caller's error, and is sent once", async () => {
  using world = await createWorld({ project: { pricing: { models: unbound } } });
  await world.deposit("ada", "1");
  const message = "This model's maximum context length is 4096 tokens. However, you requested " +
    "21384 tokens (5000 in the messages, 16384 in the completion).";
  world.upstream.reply(() => refuse(message, "messages", "context_length_exceeded"));
  const { status, body } = await chat(world);
  assert.deepEqual([status, body.error.code], [400, "context_length_exceeded"]);
  assert.equal(world.upstream.calls.length, 1);
});

const extra = { type: "extra_forbidden", msg: "Extra inputs are not permitted" };
const refusals: [string, unknown][] = [
  ["FastAPI's", { detail: [{ ...extra, loc: ["body", "stream_options"] }] }],
  ["Mistral's", {
    message: { detail: [{ ...extra, loc: ["body", "stream_options", "include_usage"] }] },
    type: "invalid_request_error",
    param: null,
  }],
];

for (const [whose, told] of refusals) {
  Deno.test(`chat: a refusal of stream_options in ${whose} format is understood, and learned`, async () => {
    using world = await createWorld();
    await world.deposit("ada", "1");
    world.upstream.reply(({ body }) =>
      body.stream_options ? Response.json(told, { status: 422 }) : helloStream()
    );
    for (const calls of [2, 2, 1]) {
      const before = world.upstream.calls.length;
      assert.equal((await readEvents(await chatStream(world))).at(-1), "[DONE]");
      assert.equal(world.upstream.calls.length - before, calls);
    }
  });
}

Deno.test("chat: errors of FastAPI servers are passed on, with the field", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const detail = [{ loc: ["body", "top_k"], msg: "Input should be a valid integer" }];
  world.upstream.once(() => Response.json({ detail }, { status: 422 }));
  const { status, body } = await chat(world, { top_k: "many" });
  assert.equal(status, 422);
  assert.deepEqual([body.error.param, body.error.message], [
    "top_k",
    "top_k: Input should be a valid integer",
  ]);
});

for (const name of ["Model", "N", "MAX_TOKENS", "max_token\u017f", "Service_Tier"]) {
  Deno.test(`chat: '${name}', which some servers read like its lower-case form, is refused`, async () => {
    using world = await createWorld();
    await world.deposit("ada", "1");
    const { status, body } = await chat(world, { [name]: 60 });
    assert.deepEqual([status, body.error.param], [400, name]);
    assert.equal(world.upstream.calls.length, 0);
  });
}

Deno.test("chat: reasoning that is sent under two names is counted once", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const thought = (text: string) => chunk({ reasoning: text, reasoning_content: text });
  const thoughts = Array.from({ length: 300 }, () => thought(" word"));
  const answer = [chunk({ content: "42" }), chunk({}, "stop"), usageChunk(usage(10, 302))];
  world.upstream.once(() => sse([...thoughts, ...answer]));
  const events = await readEvents(await chatStream(world, { max_tokens: 400 }));
  assert.ok(JSON.stringify(events).includes('"content":"42"'));
  assert.equal((await usageOf(world))[0]?.usage.outputTokens, 302);
});

Deno.test("chat: reasoning beside an empty text of the other name is counted", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const thought = chunk({ reasoning: " a thought of seven words in a row", reasoning_content: "" });
  world.upstream.once(() => sse([thought, chunk({}, "stop")]));
  await readEvents(await chatStream(world));
  const { source, outputTokens } = (await usageOf(world))[0]?.usage ?? {};
  assert.deepEqual([source, outputTokens], ["estimated", 8]);
});

Deno.test("chat: reasoning in parts, as Mistral sends it, is paid for by a caller who disconnects", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const fed = fedStream();
  world.upstream.once(() => fed.response);
  const reader = openReader(await chatStream(world));
  const thinking = [{ type: "text", text: " a thought of seven words in a row" }];
  fed.send(chunk({ content: [{ type: "thinking", thinking }] }));
  await reader.read();
  await reader.leave();
  assert.equal((await usageOf(world))[0]?.usage.outputTokens, 8);
});

const text = "The quick brown fox jumps over the lazy dog. ".repeat(2_000);
const besides: Record<string, unknown>[] = [
  { documents: [{ title: "t", text }] },
  { prediction: { type: "content", content: text } },
  { instructions: text },
];

for (const fields of besides) {
  Deno.test(`chat: ${Object.keys(fields)} are a part of the prompt, and must be paid for`, async () => {
    using world = await createWorld({ project: { unknownFields: "pass" } });
    await world.deposit("ada", "0.002");
    const { body } = await chat(world, fields);
    assert.equal(body.paywall?.reason, "insufficient_funds");
    assert.equal(world.upstream.calls.length, 0);
  });
}

for (
  const off of [{ thinking: { type: "disabled" } }, { reasoning: { enabled: false } }, {
    reasoning: { effort: "none" },
  }]
) {
  Deno.test(`chat: ${JSON.stringify(off)} disables reasoning, so a short response is worth starting`, async () => {
    using world = await createWorld();
    await world.deposit("ada", "0.0005");
    assert.equal((await chat(world, off)).body.paywall, undefined);
    assert.equal(world.upstream.calls.length, 1);
  });
}

for (const model of ["gpt-4o-search-preview", "gpt-4o-mini-search-preview"]) {
  Deno.test(`chat: the catalogue does not serve ${model}, whose searches it has no price for`, async () => {
    using world = await createWorld({ project: { pricing: { catalogue: true, models: {} } } });
    await world.deposit("ada", "1");
    assert.equal((await chat(world, { model })).status, 404);
    assert.equal((await chat(world, { model: "gpt-4o-mini" })).status, 200);
  });
}

import assert from "node:assert/strict";
import { chat, chatBody, chatStream, completionsPath, usageOf } from "../support/chat.ts";
import { adminKey, createWorld, testPricing } from "../support/world.ts";
import { completion, helloStream, usage } from "../support/upstream.ts";

/** 10 tokens in at 0.000001 and 5 out at 0.000002. */
const helloCost = "0.00002";

Deno.test("chat: a response is OpenAI's, and costs exactly what the price states", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const { status, body, response } = await chat(world);
  assert.equal(status, 200);
  assert.deepEqual(body, { // case 25
    id: "chatcmpl-up",
    object: "chat.completion",
    created: 1767225600,
    model: "test-model",
    choices: [{
      index: 0,
      message: { role: "assistant", content: "Hello there", refusal: null },
      logprobs: null,
      finish_reason: "stop",
    }],
    usage: {
      prompt_tokens: 10,
      completion_tokens: 5,
      total_tokens: 15,
      cost: 0.00002,
      cost_exact: helloCost,
    },
  });
  const [entry, ...more] = await usageOf(world);
  assert.deepEqual(more, []);
  assert.equal(entry?.amount, helloCost);
  assert.equal(entry?.delta, `-${helloCost}`);
  assert.equal(entry?.shortfall, "0");
  assert.equal(entry?.usage.source, "provider");
  assert.deepEqual(await world.balance("ada"), {
    balance: "0.99998",
    held: "0",
    available: "0.99998",
  });
  assert.equal(response.headers.get("x-service-cost"), helloCost);
  assert.equal(response.headers.get("x-service-balance"), "0.99998");
  assert.equal(response.headers.get("x-service-activity-id"), entry?.id);
  assert.match(response.headers.get("x-request-id") ?? "", /^req_[0-9A-Z]{26}$/);
});

Deno.test("chat: the upstream gets its own key and none of the caller's headers", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  await chat(world, {}, {
    headers: { "x-request-id": "mine-1", cookie: "a=b", "openai-beta": "x=1", "x-other": "y" },
  });
  const [call] = world.upstream.calls;
  assert.equal(call?.url, "https://upstream.test/v1/chat/completions");
  assert.equal(call?.headers.get("authorization"), "Bearer upstream-secret-key");
  assert.match(call?.headers.get("x-request-id") ?? "", /^req_[0-9A-Z]{26}$/);
  assert.equal(call?.headers.get("openai-beta"), "x=1");
  assert.equal((await chat(world, {}, { headers: { "openai-beta": "caf\xe9" } })).status, 200);
  assert.equal(world.upstream.calls.at(-1)?.headers.get("openai-beta"), null, "it cannot be sent");
  assert.equal(call?.headers.get("accept-encoding"), "identity");
  for (const name of ["cookie", "x-other", "x-service-user"]) {
    assert.equal(call?.headers.get(name), null);
  }
});

Deno.test("chat: while it runs, the hold is the prompt's bytes and the whole output", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  let during = {};
  world.upstream.once(async () => {
    during = await world.balance("ada");
    return completion();
  });
  await chat(world, { max_tokens: 100 });
  const bytes = JSON.stringify(chatBody({ max_tokens: 100 })).length;
  const held = (bytes + 200) / 1e6;
  assert.deepEqual(during, {
    balance: "1",
    held: held.toFixed(6),
    available: (1 - held).toFixed(6),
  });
});

const messages = [
  { role: "system", content: "Be kind." },
  { role: "developer", content: [{ type: "text", text: "Be brief. \u00e9\ud83d\ude42" }] },
  { role: "user", name: "ada", content: [{ type: "text", text: "Hi", vendor: { a: [1.5] } }] },
  {
    role: "assistant",
    content: null,
    tool_calls: [{ id: "c1", type: "function", function: { name: "f", arguments: '{"a": 1}' } }],
  },
  { role: "tool", tool_call_id: "c1", content: "42" },
  {
    role: "assistant",
    tool_calls: [{ id: "c2", type: "custom", custom: { name: "g", input: "x" } }],
  },
  { role: "tool", tool_call_id: "c2", content: [{ type: "text", text: "43" }] },
  { role: "assistant", refusal: "No.", content: [{ type: "refusal", refusal: "No." }] },
  { role: "function", name: "old", content: "44" },
];

Deno.test("chat: messages of every role and shape are passed on byte for byte", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const { status } = await chat(world, { messages });
  assert.equal(status, 200);
  const text = world.upstream.calls[0]?.text ?? "";
  assert.ok(text.includes(`"messages":${JSON.stringify(messages)}`), text); // case 15
});

Deno.test("chat: fields that Farebox does not use are passed on unchanged", async () => {
  using world = await createWorld({ project: { allowedFields: ["provider"] } });
  await world.deposit("ada", "1");
  const fields = [
    `"seed":12345678901234567890`,
    `"top_k":1e400`,
    `"temperature":0.30000000000000004`,
    `"chat_template_kwargs":{"enable_thinking":false,"deep":[null,{"a":""}]}`,
    `"provider":{"order":["a"]}`,
    `"logit_bias":{"50256":-100}`,
    `"safety_identifier":"s"`,
  ];
  const raw = `{"model":"test-model","user":"ada","messages":[{"role":"user","content":"Hi"}],` +
    `${fields.join(",")}}`;
  const { status } = await world.json(completionsPath, { raw });
  assert.equal(status, 200);
  const text = world.upstream.calls[0]?.text ?? "";
  for (const field of fields) assert.ok(text.includes(field), `${field} in ${text}`); // case 16
});

Deno.test("chat: unknown fields of the response are returned unchanged", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const extra = { service_tier: "default", system_fingerprint: "fp", vendor: { trace: [1] } };
  const choices = [{
    index: 0,
    finish_reason: "stop",
    logprobs: { content: [] },
    message: { role: "assistant", content: "Hi", refusal: "no", annotations: [], thinking: "hm" },
  }];
  world.upstream.once(() => completion({ ...extra, choices }));
  const { body } = await chat(world);
  assert.deepEqual({ ...body, usage: null }, {
    id: "chatcmpl-up",
    object: "chat.completion",
    created: 1767225600,
    model: "test-model",
    choices,
    ...extra,
    usage: null,
  });
});

Deno.test("chat: a content part of an unknown type is passed on, and bounded by its bytes", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  let held = 0;
  world.upstream.once(async () => {
    held = Number((await world.balance("ada")).held);
    return completion();
  });
  const content = [{ type: "text", text: "Hi" }, { type: "hologram", data: "x".repeat(5_000) }];
  const messages = [{ role: "user", content }];
  assert.equal((await chat(world, { messages, max_tokens: 1 })).status, 200);
  assert.ok(held >= 0.005, String(held)); // case 17
});

const pricedMedia = {
  pricing: {
    models: {
      "test-model": { ...testPricing.models["test-model"], mediaTokens: { hologram: 500 } },
    },
  },
};

Deno.test("chat: a part with a bound holds its bound, not its bytes", async () => {
  using world = await createWorld({ project: pricedMedia });
  await world.deposit("ada", "1");
  let held = "";
  world.upstream.once(async () => {
    held = (await world.balance("ada")).held;
    return completion();
  });
  const part = { type: "hologram", data: "x".repeat(100_000) };
  const asked = { max_tokens: 100, messages: [{ role: "user", content: [part] }] };
  assert.equal((await chat(world, asked)).status, 200);
  // The part's own texts are not counted by their bytes; the JSON around them still is.
  const bytes = JSON.stringify(chatBody(asked)).length - "hologram".length - part.data.length;
  assert.equal(held, ((bytes + 500 + 200) / 1e6).toFixed(6)); // case 17
});

Deno.test("chat: numbers in a part do not make the hold smaller than the text needs", async () => {
  using world = await createWorld({ project: pricedMedia });
  await world.deposit("ada", "1");
  let held = 0;
  world.upstream.once(async () => {
    held = Number((await world.balance("ada")).held);
    return completion();
  });
  const numbers = `[${Array(2_000).fill("1e20").join(",")}]`;
  const text = "many words ".repeat(2_000);
  const raw = `{"model":"test-model","user":"ada","max_tokens":1,"messages":[{"role":"user",` +
    `"content":[{"type":"text","text":"${text}"},{"type":"hologram","data":${numbers}}]}]}`;
  const { status } = await world.json(completionsPath, { raw });
  assert.equal(status, 200);
  assert.ok(held >= (text.length + 500 + 2) / 1e6, `held ${held}`); // case 17
});

const bounds: [string, Record<string, unknown>, Record<string, unknown>][] = [
  ["no bound: the model's", {}, { max_tokens: 1000 }],
  ["the caller's", { max_tokens: 50 }, { max_tokens: 50 }],
  // Servers that ignore the newer field read this one: without it they would write without a cap.
  ["the newer field", { max_completion_tokens: 50 }, { max_tokens: 50 }],
  ["both: the newer", { max_completion_tokens: 40, max_tokens: 50 }, { max_tokens: 40 }],
  ["llama.cpp's", { n_predict: 50 }, { max_tokens: 50 }],
  ["llama.cpp's besides", { max_tokens: 50, n_predict: 1e5 }, { max_tokens: 50 }],
  ["newer null", { max_completion_tokens: null, max_tokens: 50 }, { max_tokens: 50 }],
  ["null means none", { max_tokens: null, max_completion_tokens: null }, { max_tokens: 1000 }],
  ["more than the model's", { max_tokens: 1e9 }, { max_tokens: 1000 }],
];

for (const [name, asked, sent] of bounds) {
  Deno.test(`chat: the output is always bounded upstream: ${name}`, async () => { // case 34
    using world = await createWorld();
    await world.deposit("ada", "1");
    const { status } = await chat(world, asked);
    assert.equal(status, 200);
    const { max_tokens, max_completion_tokens, n_predict } = world.upstream.calls[0]?.body ?? {};
    const none = { max_tokens: undefined, max_completion_tokens: undefined, n_predict: undefined };
    assert.deepEqual({ max_tokens, max_completion_tokens, n_predict }, { ...none, ...sent });
  });
}

const noBounds: [string, Record<string, unknown>, string, number][] = [
  ...["max_tokens", "max_completion_tokens", "n_predict"].flatMap((field) =>
    [0, -1, -50].map((
      value,
    ): typeof noBounds[number] => ["/v1/chat/completions", { [field]: value }, field, value])
  ),
  [
    "/v1/chat/completions",
    { max_completion_tokens: 0, max_tokens: 50 },
    "max_completion_tokens",
    0,
  ],
  ["/v1/chat/completions", { max_completion_tokens: 50, max_tokens: -1 }, "max_tokens", -1],
  ["/v1/responses", { max_output_tokens: 0, input: "Hi" }, "max_output_tokens", 0],
  ["/v1/responses", { max_output_tokens: -1, input: "Hi" }, "max_output_tokens", -1],
  ["/v1/completions", { max_tokens: -1, prompt: "Hi" }, "max_tokens", -1],
  ["/v1/messages", { max_tokens: -1 }, "max_tokens", -1],
];
for (const [path, fields, param, value] of noBounds) {
  Deno.test(`chat: an output bound that is none is 400: ${path} ${JSON.stringify(fields)}`, async () => {
    using world = await createWorld();
    await world.deposit("ada", "1");
    const { messages, ...rest } = chatBody(fields);
    const asks = path.endsWith("/chat/completions") || path.endsWith("/messages");
    const body = asks ? { messages, ...rest } : rest;
    const headers = { "x-service-user": "ada" };
    const answer = await world.json(path, { body, headers });
    assert.deepEqual([answer.status, answer.body.error.param], [400, param], `${value}`);
    assert.match(answer.body.error.message, /at least|>=/);
    assert.equal(world.upstream.calls.length, 0);
    assert.equal((await world.balance("ada")).balance, "1");
  });
}

Deno.test("chat: tool calls and a JSON format are passed through whole", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const tool_calls = [{
    id: "call_1",
    type: "function",
    function: { name: "weather", arguments: '{"city": "\\u00d6rebro", "n": 1.0}' },
  }];
  const choices = [{
    index: 0,
    message: { role: "assistant", content: null, tool_calls },
    finish_reason: "tool_calls",
  }];
  world.upstream.once(() => completion({ choices }));
  const tools = [{ type: "function", function: { name: "weather", parameters: {} } }];
  const called = await chat(world, { tools, tool_choice: "required" });
  assert.equal(called.body.choices[0].finish_reason, "tool_calls"); // case 32
  assert.deepEqual(called.body.choices[0].message.tool_calls, tool_calls);

  const content = '{"city":"Oslo"}';
  world.upstream.once(() =>
    completion({ choices: [{ index: 0, message: { content }, finish_reason: "stop" }] })
  );
  const response_format = {
    type: "json_schema",
    json_schema: { name: "place", strict: true, schema: { type: "object" } },
  };
  const formatted = await chat(world, { response_format });
  assert.deepEqual(world.upstream.calls[1]?.body.response_format, response_format); // case 33
  assert.deepEqual(JSON.parse(formatted.body.choices[0].message.content), { city: "Oslo" });
});

/** The response of a server that compresses although it was not asked to. */
function compressed(response: Response, encoding: "gzip" | "deflate"): Response {
  const headers = {
    "content-type": response.headers.get("content-type") ?? "",
    "content-encoding": encoding,
    "content-length": "7",
    "transfer-encoding": "chunked",
    "set-cookie": "up=1",
    "x-ratelimit-limit-requests": "9",
  };
  return new Response(response.body?.pipeThrough(new CompressionStream(encoding)), { headers });
}

for (const encoding of ["gzip", "deflate"] as const) {
  Deno.test(`chat: an upstream response in ${encoding} is passed on plain, without its headers`, async () => {
    using world = await createWorld();
    await world.deposit("ada", "1");
    world.upstream.once(() => compressed(completion(), encoding));
    const { status, body, response } = await chat(world);
    assert.equal(status, 200); // case 39
    assert.equal(body.choices[0].message.content, "Hello there");
    for (const name of ["content-encoding", "content-length", "set-cookie"]) {
      assert.equal(response.headers.get(name), null, name);
    }
    world.upstream.once(() => compressed(helloStream(), encoding));
    assert.match(await (await chatStream(world)).text(), /Hello[^]*there[^]*\[DONE\]/);
    assert.equal((await world.balance("ada")).held, "0");
  });
}

Deno.test("chat: a compressed response that inflates into no response is 502, and free", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const bomb = new ReadableStream<Uint8Array<ArrayBuffer>>({
    pull: (controller) => controller.enqueue(new Uint8Array(1024 * 1024)),
  }, { highWaterMark: 0 });
  world.upstream.once(() => compressed(new Response(bomb), "gzip"));
  assert.equal((await chat(world)).status, 502);
  assert.deepEqual(await world.balance("ada"), {
    balance: "1",
    held: "0",
    available: "1",
  });
});

Deno.test("chat: the price at admission is the price charged", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  world.upstream.once(async () => {
    const changed = await world.json(`/v1/admin/projects/${world.projectId}`, {
      method: "PATCH",
      key: adminKey,
      body: { pricing: { models: { "test-model": { input: "100", output: "200" } } } },
    });
    assert.equal(changed.status, 200);
    return completion();
  });
  const before = await chat(world);
  assert.equal(before.body.usage.cost_exact, helloCost); // case 65
  const after = await chat(world);
  assert.equal(after.body.usage.cost_exact, "0.002");
  assert.equal((await world.balance("ada")).balance, "0.99798");
});

Deno.test("chat: a request whose prices change during admission pays the new ones", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  await chat(world);
  const path = `/v1/admin/projects/${world.projectId}`;
  const models = { "test-model": { input: "100", output: "200" } };
  const [changed, ...asked] = await Promise.all([
    world.json(path, { method: "PATCH", key: adminKey, body: { pricing: { models } } }),
    chat(world),
    chat(world),
  ]);
  assert.equal(changed.status, 200);
  const costs = asked.map(({ body }) => body.usage.cost_exact);
  for (const cost of costs) assert.ok([helloCost, "0.002"].includes(cost), cost); // case 65
  const charged = (await usageOf(world)).map(({ amount }) => amount);
  assert.deepEqual(charged.sort(), [helloCost, ...costs].sort());
});

Deno.test("chat: an archived project takes no new chats, and its running call settles", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  world.upstream.once(async () => {
    const path = `/v1/admin/projects/${world.projectId}/archive`;
    assert.equal((await world.json(path, { method: "POST", key: adminKey })).status, 200);
    return completion({ usage: usage(10, 5) });
  });
  assert.equal((await chat(world)).status, 200);
  const { status, body } = await chat(world);
  assert.equal(status, 403);
  assert.equal(body.error.code, "project_archived");
  assert.equal((await world.balance("ada")).balance, "0.99998");
  assert.equal(world.upstream.calls.length, 1);
});

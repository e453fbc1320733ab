import assert from "node:assert/strict";
import { providers } from "../../src/projects/providers.ts";
import { operate } from "../support/webhooks.ts";
import { chat, chatStream, until } from "../support/chat.ts";
import { completion, helloStream } from "../support/upstream.ts";
import { messageObject } from "../support/messages.ts";
import { upstreamResponse } from "../support/responses.ts";
import { createWorld, type World } from "../support/world.ts";

const price = { input: "1", output: "2" };

async function worldWith(upstream: Record<string, unknown>): Promise<World> {
  const world = await createWorld({
    project: {
      upstreams: { it: { apiKey: "its-key", ...upstream } },
      routes: { "*": { targets: [{ upstream: "it" }] } },
      pricing: { models: { "*": price } },
    },
  });
  await world.deposit("ada", "1");
  return world;
}

const all = ["chat", "responses", "messages"] as const;
const paths = { chat: "/chat/completions", responses: "/responses", messages: "/messages" };
const bearer = "authorization";

/** What providers document: their base URL, formats, the header of the key, the output bound. */
const documented: Record<string, readonly [string, readonly string[], string, string?]> = {
  openai: [
    "https://api.openai.com/v1",
    ["chat", "responses"],
    bearer,
    "max_completion_tokens",
  ],
  anthropic: ["https://api.anthropic.com/v1", ["messages"], "x-api-key"],
  google: ["https://generativelanguage.googleapis.com/v1beta/openai", ["chat"], bearer],
  azure: ["https://my.openai.azure.com/openai/v1", ["chat", "responses"], "api-key"],
  openrouter: ["https://openrouter.ai/api/v1", all, bearer],
  groq: ["https://api.groq.com/openai/v1", ["chat", "responses"], bearer],
  mistral: ["https://api.mistral.ai/v1", ["chat"], bearer],
  deepseek: ["https://api.deepseek.com/v1", ["chat"], bearer],
  xai: ["https://api.x.ai/v1", ["chat", "responses"], bearer],
  together: ["https://api.together.xyz/v1", ["chat"], bearer],
  fireworks: ["https://api.fireworks.ai/inference/v1", all, bearer],
  cerebras: ["https://api.cerebras.ai/v1", ["chat"], bearer],
  ollama: ["http://127.0.0.1:11434/v1", all, bearer],
  vllm: ["http://127.0.0.1:8000/v1", all, bearer],
  "llama.cpp": ["http://127.0.0.1:8080/v1", all, bearer],
};

/** A call of each format, and a response of it. */
const calls = {
  chat: { body: { messages: [{ role: "user", content: "Hi" }] }, response: () => completion() },
  responses: { body: { input: "Hi" }, response: () => Response.json(upstreamResponse()) },
  messages: {
    body: { messages: [{ role: "user", content: "Hi" }], max_tokens: 64 },
    response: () => Response.json(messageObject()),
  },
};

const formatAt = (url: string) => all.find((format) => url.endsWith(paths[format])) ?? "chat";

Deno.test("providers: each is in the table of these tests", () => {
  assert.deepEqual(Object.keys(documented).sort(), Object.keys(providers).sort());
});

for (const [name, [base, spoken, keyHeader, field = "max_tokens"]] of Object.entries(documented)) {
  Deno.test(`providers: ${name} gets each call at its URL, in its format, with its key`, async () => {
    const own = name === "azure" ? { url: "https://my.openai.azure.com" } : {};
    using world = await worldWith({ provider: name, ...own });
    world.upstream.reply(({ url }) => calls[formatAt(url)].response());
    for (const format of all) {
      world.upstream.calls.length = 0;
      const { status } = await send(world, `/v1${paths[format]}`, calls[format].body);
      assert.equal(status, 200, format);
      const [call, ...more] = world.upstream.calls;
      assert(call);
      assert.deepEqual(more, [], `${format} takes one attempt`);
      const written = all.find((other) => other === format && spoken.includes(other)) ??
        (spoken.includes("chat") ? "chat" : "messages");
      assert.equal(call.url, base + paths[written], format);
      const bound = written === "chat"
        ? field
        : written === "messages"
        ? "max_tokens"
        : "max_output_tokens";
      assert(call.body[bound] > 0, `${format} has ${bound}`);
      assert.equal(call.body.model, "m");
      requireKey(call.headers, { keyHeader, written });
    }
    assert.doesNotMatch(JSON.stringify(world.logged), /its-key/);
  });
}

function requireKey(headers: Headers, { keyHeader, written }: Record<string, string>): void {
  const key = keyHeader === bearer ? "Bearer its-key" : "its-key";
  assert.equal(headers.get(keyHeader ?? ""), key);
  if (keyHeader !== bearer) assert.equal(headers.get(bearer), null);
  if (written === "messages") assert.equal(headers.get("anthropic-version"), "2023-06-01");
  assert.equal(headers.get("content-type"), "application/json");
  assert.equal(headers.get("accept"), "application/json");
  assert.match(headers.get("x-request-id") ?? "", /^req_/);
}

function send(world: World, path: string, body: Record<string, unknown>) {
  return world.json(path, {
    body: { model: "m", ...body },
    headers: { "x-service-user": "ada" },
  });
}

Deno.test("providers: a target that speaks another format than the caller is asked in its own", async () => {
  const world = await createWorld({
    project: {
      upstreams: {
        first: { provider: "anthropic" },
        second: { provider: "openai" },
      },
      routes: { "*": { targets: [{ upstream: "first" }, { upstream: "second" }] } },
      pricing: { models: { "*": price } },
    },
  });
  using _ = world;
  await world.deposit("ada", "1");
  world.upstream.reply(({ url }) => calls[formatAt(url)].response());
  const { response } = await send(world, "/v1/responses", calls.responses.body);
  assert.equal(response.headers.get("x-service-upstream"), "first");
  assert.deepEqual(world.upstream.calls.map(({ url }) => url), [
    "https://api.anthropic.com/v1/messages",
  ]);
});

const begun = [{ role: "user", content: "Hi" }, { role: "assistant", content: "{" }];
const continuing: [string, string, Record<string, unknown> | null][] = [
  ["deepseek", "https://api.deepseek.com/beta", {
    messages: [begun[0], { ...begun[1], prefix: true }],
  }],
  ["vllm", "http://vllm.test/v1", {
    messages: begun,
    continue_final_message: true,
    add_generation_prompt: false,
  }],
  ["openai", "https://api.openai.com/v1", null],
  ["ollama", "http://127.0.0.1:8000/v1", null],
];
for (const [provider, url, expected] of continuing) {
  Deno.test(`providers: a message that is begun is ${expected ? "" : "not "}continued by ${provider}`, async () => {
    using world = await worldWith({ provider, url, formats: ["chat"] });
    world.upstream.reply(() => completion());
    const { status, body } = await send(world, "/v1/messages", { messages: begun, max_tokens: 64 });
    if (!expected) {
      assert.deepEqual([status, body.error.type], [400, "invalid_request_error"]);
      return assert.deepEqual(world.upstream.calls, []);
    }
    assert.equal(status, 200);
    const sent = world.upstream.calls[0]?.body ?? {};
    assert.deepEqual({ ...sent, ...expected }, sent);
  });
}

for (const name of Object.keys(documented)) {
  Deno.test(`providers: a key that ${name} repeats in an error is neither shown nor logged`, async () => {
    const own = name === "azure" ? { url: "https://my.openai.azure.com" } : {};
    using world = await worldWith({ provider: name, ...own });
    for (const status of [400, 401, 500]) {
      world.upstream.reply(() =>
        Response.json({ error: { message: "Wrong key its-key", code: "its-key" } }, { status })
      );
      const asked = send(world, "/v1/chat/completions", calls.chat.body);
      const { body } = await until(world, asked);
      assert(body.error.message);
      assert.doesNotMatch(JSON.stringify([body, world.logged]), /its-key/, `${status}`);
    }
  });
}

Deno.test("providers: Mistral gets no field that it refuses", async () => {
  using world = await worldWith({ provider: "mistral" });
  world.upstream.reply(() => helloStream());
  const response = await chatStream(world, {
    model: "m",
    store: false,
    user: "ada",
    safety_identifier: "ada",
    stream_options: { include_usage: true },
  });
  assert.match(await response.text(), /"usage"/);
  const [call, ...more] = world.upstream.calls;
  assert.deepEqual(more, []);
  assert.deepEqual(Object.keys(call?.body).sort(), ["max_tokens", "messages", "model", "stream"]);
});

Deno.test("providers: another server with a provider's prices is asked as any server", async () => {
  using world = await worldWith({ provider: "openai", url: "https://mine.example/v1" });
  world.upstream.reply(() => completion());
  await chat(world, { model: "m" });
  const { body } = world.upstream.calls[0] ?? {};
  assert(body.max_tokens > 0);
  assert.equal(body.max_completion_tokens, undefined);
});

Deno.test("providers: a provider's server is known by its URL alone, also that of UPSTREAM_URL", async () => {
  const url = "https://api.openai.com";
  const pricing = { models: { "*": price } };
  using world = await createWorld({ env: { UPSTREAM_URL: url }, project: { pricing } });
  await world.deposit("ada", "1");
  await chat(world, { model: "m" });
  await operate(world, "", { method: "PATCH", body: { upstream: { url } } });
  await chat(world, { model: "m" });
  const bounds = world.upstream.calls.map(({ body }) => body.max_completion_tokens > 0);
  assert.deepEqual(bounds, [true, true]);
});

for (
  const [provider, url, base] of [
    ["google", "https://generativelanguage.googleapis.com", documented.google?.[0]],
    ["groq", "https://api.groq.com/", documented.groq?.[0]],
    ["openrouter", "https://eu.openrouter.ai", "https://eu.openrouter.ai/api/v1"],
    ["openai", "https://eu.api.openai.com", "https://eu.api.openai.com/v1"],
    ["google", "https://generativelanguage.googleapis.com/v1beta/openai/", documented.google?.[0]],
    [undefined, "https://it.example", "https://it.example/v1"],
  ] as const
) {
  Deno.test(`providers: ${provider} at ${url} is called below ${base}`, async () => {
    using world = await worldWith({ ...(provider ? { provider } : {}), url });
    world.upstream.reply(() => completion());
    await chat(world, { model: "m" });
    assert.equal(world.upstream.calls[0]?.url, `${base}/chat/completions`);
  });
}

for (
  const [url, path, expected] of [
    ["https://my.openai.azure.com", "/chat/completions", "/deployments/my%20gpt"],
    ["https://my.openai.azure.com/openai/", "/embeddings", "/deployments/my%20gpt"],
    ["https://my.openai.azure.com/openai/v1", "/responses", ""],
    ["https://my.openai.azure.com/openai/v1/", "/chat/completions", "/deployments/my%20gpt"],
  ] as const
) {
  Deno.test(`Azure's dated API: ${path} below ${url}`, async () => {
    using world = await worldWith({ provider: "azure", url, apiVersion: "2024-10-21" });
    world.upstream.reply(() => new Response("", { status: 400 }));
    const body = { model: "my gpt", user: "ada", input: "Hi", messages: [] };
    const { input, messages, ...rest } = body;
    const asked = path === "/chat/completions"
      ? { ...rest, messages: [{ role: "user", content: "Hi" }] }
      : { ...rest, input };
    assert.deepEqual(messages, []);
    await world.json(`/v1${path}`, { body: asked });
    assert.equal(
      world.upstream.calls[0]?.url,
      `https://my.openai.azure.com/openai${expected}${path}?api-version=2024-10-21`,
    );
  });
}

Deno.test("Azure's v1 API: a version without a date is only added to the address", async () => {
  const url = "https://my.openai.azure.com/openai/v1";
  using world = await worldWith({ provider: "azure", url, apiVersion: "preview" });
  world.upstream.reply(() => completion());
  await chat(world, { model: "my gpt" });
  const [call] = world.upstream.calls;
  assert.equal(call?.url, `${url}/chat/completions?api-version=preview`);
  assert.equal(call?.body.model, "my gpt");
});

Deno.test("Azure's dated API: one without responses answers them by chat", async () => {
  const url = "https://my.openai.azure.com";
  using world = await worldWith({ provider: "azure", url, apiVersion: "2024-10-21" });
  world.upstream.reply(({ url }) =>
    url.includes("/chat/")
      ? completion()
      : Response.json({ error: { code: "404", message: "Resource not found" } }, { status: 404 })
  );
  for (const attempts of [2, 2, 1]) {
    world.upstream.calls.length = 0;
    const { status } = await send(world, "/v1/responses", calls.responses.body);
    assert.equal(status, 200);
    assert.equal(world.upstream.calls.length, attempts);
  }
});

for (
  const [settings, field] of [
    [{ url: "https://it.example/v1", apiVersion: "2024-10-21" }, "apiVersion"],
    [{ provider: "azure", url: "https://my.openai.azure.com", models: "upstream" }, "models"],
    [{ provider: "azure" }, "url"],
  ] as const
) {
  Deno.test(`an upstream with ${Object.keys(settings)} is refused for '${field}'`, async () => {
    using world = await createWorld();
    const body = { upstreams: { it: settings } };
    const { status, body: told } = await operate(world, "", { method: "PATCH", body });
    assert.equal(status, 400);
    assert.equal(told.error.param, `upstreams.it.${field}`);
  });
}

Deno.test("an upstream's own headers are sent, and replace none of the service's", async () => {
  const url = "https://it.example/v1";
  using world = await worldWith({ url, headers: { "HTTP-Referer": "https://my.app" } });
  await chat(world, { model: "m" });
  const headers = world.upstream.calls[0]?.headers;
  assert.equal(headers?.get("http-referer"), "https://my.app");
  for (const name of ["Host", "authorization", "Content-Length", "X-Request-Id", "proxy-any"]) {
    const upstreams = { it: { url, headers: { [name]: "x" } } };
    const { status, body } = await operate(world, "", { method: "PATCH", body: { upstreams } });
    assert.equal(status, 400, name);
    assert.match(body.error.param, /^upstreams\.it\.headers/);
  }
});

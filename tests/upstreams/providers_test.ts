import assert from "node:assert/strict";
import { providers } from "../../src/projects/providers.ts";
import { operate } from "../support/webhooks.ts";
import { chat } from "../support/chat.ts";
import { completion } from "../support/upstream.ts";
import { messageObject } from "../support/messages.ts";
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

for (const [name, { url, keyHeader, formats }] of Object.entries(providers)) {
  Deno.test(`providers: a call reaches ${name} at its URL, with the key in its header`, async () => {
    const own = url === null ? { url: "https://my.openai.azure.com" } : {};
    using world = await worldWith({ provider: name, ...own });
    const speaksChat = formats?.includes("chat") ?? true;
    world.upstream.reply(() => speaksChat ? completion() : Response.json(messageObject()));
    const { status } = await chat(world, { model: "m" });
    assert.equal(status, 200);
    const [call, ...more] = world.upstream.calls;
    assert.deepEqual(more, []);
    const base = url ?? "https://my.openai.azure.com/openai/v1";
    assert.equal(call?.url, `${base}${speaksChat ? "/chat/completions" : "/messages"}`);
    const key = keyHeader === "authorization" ? "Bearer its-key" : "its-key";
    assert.equal(call?.headers.get(keyHeader), key);
    if (keyHeader !== "authorization") assert.equal(call?.headers.get("authorization"), null);
    if (!speaksChat) assert.equal(call?.headers.get("anthropic-version"), "2023-06-01");
    assert.equal(call?.body.model, "m");
    assert.doesNotMatch(JSON.stringify(world.logged), /its-key/);
  });
}

for (
  const [url, path, expected] of [
    ["https://my.openai.azure.com", "/chat/completions", "/deployments/my%20gpt"],
    ["https://my.openai.azure.com/openai/", "/embeddings", "/deployments/my%20gpt"],
    ["https://my.openai.azure.com/openai/v1", "/responses", ""],
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

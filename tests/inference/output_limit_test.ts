import assert from "node:assert/strict";
import { sse } from "../support/upstream.ts";
import { formatOf, frameOf, wholeResponse } from "../support/model_formats.ts";
import { adminKey, type Body, createWorld, type World } from "../support/world.ts";

const free = { input: "0", output: "0", reasoning: false };
const priced = { input: "0", output: "10", reasoning: false };

/** How a call is sent, and in which format its upstream is asked. */
interface Way {
  path: string;
  field: string;
  prompt: Body;
  upstream: "chat" | "messages" | "responses" | "completions";
}

const messages = [{ role: "user", content: "Hi" }];
const chat = { path: "/v1/chat/completions", field: "max_tokens", prompt: { messages } };
const response = { path: "/v1/responses", field: "max_output_tokens", prompt: { input: "Hi" } };
const message = { path: "/v1/messages", field: "max_tokens", prompt: { messages } };
const ways: Way[] = [
  { ...chat, upstream: "chat" },
  { ...chat, field: "max_completion_tokens", upstream: "chat" },
  { ...response, upstream: "responses" },
  { ...message, upstream: "messages" },
  {
    path: "/v1/completions",
    field: "max_tokens",
    prompt: { prompt: "Hi" },
    upstream: "completions",
  },
  { ...chat, upstream: "messages" },
  { ...response, upstream: "chat" },
  { ...message, upstream: "chat" },
];

const isFormat = (upstream?: string) => upstream !== undefined && upstream !== "completions";

async function worldWith(project: Body, upstream?: string): Promise<World> {
  const url = "https://upstream.test/v1";
  const world = await createWorld({
    project: {
      ...project,
      ...(isFormat(upstream) ? { upstream: { url, formats: [upstream] } } : {}),
    },
  });
  world.upstream.reply(({ url, body }) => answerOf(url, body.stream === true));
  return world;
}

function answerOf(url: string, stream: boolean): Response {
  if (/(?<!chat)\/completions$/.test(url)) {
    const choices = [{ index: 0, text: "Hi", finish_reason: "stop" }];
    const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
    return stream ? sse([{ choices, usage }]) : Response.json({ choices, usage });
  }
  const said = { id: "1", text: "Hi", tokens: { input: 3, output: 2 } };
  const format = formatOf(url);
  if (!stream) return wholeResponse(format, said);
  const frames = format.events(said, 1, false).map(frameOf).join("");
  return new Response(frames, { headers: { "content-type": "text/event-stream" } });
}

async function ask(world: World, { path, prompt }: Way, fields: Body) {
  const body = { model: "m", ...prompt, ...fields };
  const response = await world.call(path, { body, headers: { "x-service-user": "ada" } });
  const text = await response.text();
  assert.equal(response.status, 200, text);
  const { body: sent } = world.upstream.calls.at(-1) ?? assert.fail("nothing was sent");
  return {
    header: response.headers.get("x-service-output-limit"),
    sent: sent as Body,
    bound: sent.max_tokens ?? sent.max_completion_tokens ?? sent.max_output_tokens,
  };
}

for (const way of ways) {
  for (const stream of [false, true]) {
    const kind = `${way.path} ${way.field} asked as ${way.upstream}${stream ? ", streamed" : ""}`;
    const asking = (tokens: number) => ({ [way.field]: tokens, ...(stream ? { stream } : {}) });

    Deno.test(`output limit: ${kind}: a new project lowers nothing that is asked for`, async () => {
      using world = await worldWith({ pricing: { models: { m: free } } }, way.upstream);
      for (const tokens of [100, 64_000, 128_000, 1_000_000]) {
        const { header, bound } = await ask(world, way, asking(tokens));
        assert.deepEqual([bound, header], [tokens, null]);
      }
    });

    Deno.test(`output limit: ${kind}: the header says what lowers it`, async () => {
      const models = {
        m: free,
        "gpt-4o": free,
        "p": priced,
        own: { ...free, maxOutputTokens: 9_000 },
      };
      using world = await worldWith({ pricing: { models } }, way.upstream);
      const byModel = await ask(world, way, { ...asking(64_000), model: "gpt-4o" });
      assert.deepEqual([byModel.bound, byModel.header], [16_384, "16384; by=model"]);
      const byPrice = await ask(world, way, { ...asking(64_000), model: "own" });
      assert.deepEqual([byPrice.bound, byPrice.header], [9_000, "9000; by=project"]);
      await world.deposit("ada", "0.1");
      const byBalance = await ask(world, way, { ...asking(64_000), model: "p" });
      assert.equal(byBalance.header, `${byBalance.bound}; by=balance`);
      assert.ok(byBalance.bound < 10_000);
      const within = await ask(world, way, { ...asking(100), model: "p" });
      assert.deepEqual([within.bound, within.header], [100, null]);
      const limited = await world.json(`/v1/admin/projects/${world.projectId}`, {
        method: "PATCH",
        key: adminKey,
        body: { maxOutputTokens: 16_384, limits: { user: { spendPerDay: "0.05" } } },
      });
      assert.equal(limited.status, 200);
      const byProject = await ask(world, way, asking(64_000));
      assert.deepEqual([byProject.bound, byProject.header], [16_384, "16384; by=project"]);
      await world.deposit("ada", "10");
      const byLimit = await ask(world, way, { ...asking(64_000), model: "p" });
      assert.equal(byLimit.header, `${byLimit.bound}; by=limit`);
    });
  }
}

const unasked: [model: string, bound: number][] = [
  ["m", 16_384],
  ["gpt-4.1", 32_768],
  ["gpt-4.1-mini-2025-04-14", 32_768],
  ["openai/gpt-4o-mini", 16_384],
  ["gpt-4-turbo", 4_096],
  ["gpt-4", 8_192],
  ["o3-mini", 100_000],
  ["gpt-5-mini", 128_000],
  ["claude-sonnet-4-5-20250929", 64_000],
  ["us.anthropic.claude-opus-4-1-20250805-v1:0", 32_000],
  ["gemini-2.5-flash", 65_536],
];
for (const [model, bound] of unasked) {
  Deno.test(`output limit: without a bound, ${model} gets ${bound} tokens`, async () => {
    using world = await worldWith({ pricing: { models: { [model]: free, own: free } } });
    for (const [way] of [[ways[0]], [ways[2]]]) {
      const got = await ask(world, way ?? assert.fail(), { model });
      assert.deepEqual([got.bound, got.header], [bound, null]);
    }
    await world.json(`/v1/admin/projects/${world.projectId}`, {
      method: "PATCH",
      key: adminKey,
      body: { maxOutputTokens: 1_000 },
    });
    const got = await ask(world, ways[0] ?? assert.fail(), { model });
    assert.deepEqual([got.bound, got.header], [1_000, "1000; by=project"]);
  });
}

const budget = { type: "enabled", budget_tokens: 30_000 };
const thinking: [label: string, way: number, fields: Body, sent: (body: Body) => unknown][] = [
  ["a chat", 0, { thinking: budget, max_tokens: 32_000 }, ({ thinking }) => thinking],
  ["a chat without a bound", 0, { thinking: budget }, ({ thinking }) => thinking],
  ["a chat as OpenRouter has it", 0, { reasoning: { max_tokens: 30_000 } }, ({ reasoning }) => ({
    ...budget,
    budget_tokens: reasoning.max_tokens,
  })],
  ["a message", 3, { thinking: budget, max_tokens: 32_000 }, ({ thinking }) => thinking],
  ["a message of 64,000", 3, { thinking: budget, max_tokens: 64_000 }, ({ thinking }) => thinking],
];
for (const [label, at, fields, sentOf] of thinking) {
  Deno.test(`output limit: thinking of 30,000 tokens is not lowered: ${label}`, async () => {
    using world = await worldWith({ pricing: { models: { m: free } } }, ways[at]?.upstream);
    for (const stream of [false, true]) {
      const got = await ask(world, ways[at] ?? assert.fail(), { ...fields, stream });
      assert.deepEqual(sentOf(got.sent), budget);
      assert.ok(got.bound > 30_000);
      assert.equal(got.header, null);
      if (fields.max_tokens) assert.equal(got.bound, fields.max_tokens);
    }
  });
}

Deno.test("output limit: a project of 0.9.0 keeps the limit that it stored, which null lifts", async () => {
  using world = await worldWith({ maxOutputTokens: 16_384, pricing: { models: { m: free } } });
  const [way = assert.fail()] = ways;
  assert.equal((await ask(world, way, { max_tokens: 64_000 })).header, "16384; by=project");
  const path = `/v1/admin/projects/${world.projectId}`;
  const lifted = { method: "PATCH", key: adminKey, body: { maxOutputTokens: null } };
  const { body } = await world.json(path, lifted);
  assert.equal(body.project.maxOutputTokens, null);
  assert.deepEqual((await ask(world, way, { max_tokens: 64_000 })).bound, 64_000);
});

const concurrent: [setting: RegExp, limits: Body][] = [
  [/'limits\.user\.concurrent'/, { user: { concurrent: 1 } }],
  [/'limits\.users'/, { users: { ada: { concurrent: 1 } } }],
  [/'limits\.key\.concurrent'/, { key: { concurrent: 1 } }],
];
for (const [setting, limits] of concurrent) {
  Deno.test(`limits: the 429 of a request too many names the setting ${setting.source}`, async () => {
    using world = await worldWith({ pricing: { models: { m: free } }, limits });
    const started = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    world.upstream.reply(async () => {
      started.resolve();
      await released.promise;
      return answerOf("/v1/chat/completions", false);
    });
    const call = { body: { model: "m", user: "ada", messages } };
    const first = world.call("/v1/chat/completions", call);
    await started.promise;
    const { status, body } = await world.json("/v1/chat/completions", call);
    assert.deepEqual([status, body.error.code], [429, "concurrency_limit"]);
    assert.match(body.error.message, setting);
    released.resolve();
    await (await first).text();
  });
}

Deno.test("limits: a new project allows a user 64 requests at once, one with a number has that", async () => {
  using world = await createWorld();
  for (const [limits, most] of [[{}, 64], [{ user: { concurrent: 16 } }, 16]] as const) {
    const { projectId } = await world.makeProject({ limits });
    const { body } = await world.json(`/v1/admin/projects/${projectId}`, { key: adminKey });
    assert.equal(body.project.limits.user.concurrent, most);
  }
});

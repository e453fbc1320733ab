import assert from "node:assert/strict";
import { usageOf } from "../support/chat.ts";
import {
  claudeUsage,
  closed,
  ended,
  messageObject,
  messageStream,
  opened,
  said,
  start,
  stopped,
} from "../support/messages.ts";
import { chunk, completion, sse, usage, usageChunk } from "../support/upstream.ts";
import { reportedModel, reportedRoutes } from "../support/usage_reports.ts";
import { verify } from "../support/verify.ts";
import { type Body, createWorld, type World } from "../support/world.ts";

async function refusingWorld(format: string): Promise<World> {
  const upstream = { url: "https://own.test/v1", apiKey: "sk-up", formats: [format] };
  const own = { input: "3", output: "15", minimum: "0.001", maxOutputTokens: 4_096 };
  const pricing = { requestFee: "0.01", models: { [reportedModel]: own } };
  const world = await createWorld({ project: { pricing, upstream } });
  await world.deposit("ada", "10");
  return world;
}

async function ask(world: World, path: string, body: Body) {
  const response = await world.call(path, { body, headers: { "x-service-user": "ada" } });
  const text = await response.text();
  assert.equal(response.status, 200, text);
  const [entry] = await usageOf(world);
  assert.ok(entry);
  assert.deepEqual((await verify(world)).faults, []);
  return { entry, text };
}

const empty = { type: "text", text: "" };
/** Refusals of Anthropic before any output, as a whole and as the events of a stream. */
const refusals: Record<string, [Body, Body[]]> = {
  "no output tokens": [
    { content: [], usage: claudeUsage(1000, 0) },
    [start({ usage: claudeUsage(1000, 0) }), ended("refusal", { output_tokens: 0 }), stopped],
  ],
  "one output token, as Anthropic reports it": [
    { content: [], usage: claudeUsage(1000, 1) },
    [start({ usage: claudeUsage(1000, 1) }), ended("refusal", { output_tokens: 1 }), stopped],
  ],
  "an empty text": [
    { content: [empty], usage: claudeUsage(1000, 3) },
    [start(), opened(0), closed(0), ended("refusal", claudeUsage(1000, 3)), stopped],
  ],
  "no report": [
    { content: [], usage: undefined },
    [start({ usage: undefined }), ended("refusal", null), stopped],
  ],
  "a written cache, and a tool": [
    {
      content: [],
      usage: claudeUsage(10, 0, {
        cache_creation_input_tokens: 5000,
        server_tool_use: { web_search_requests: 1 },
      }),
    },
    [
      start({ usage: claudeUsage(10, 1, { cache_creation_input_tokens: 5000 }) }),
      { type: "ping" },
      ended("refusal", { output_tokens: 0, server_tool_use: { web_search_requests: 1 } }),
      stopped,
    ],
  ],
};

for (const route of ["messages", "chat over messages"]) {
  const { path, body } = reportedRoutes[route] ?? assert.fail();
  for (const [what, [whole, events]] of Object.entries(refusals)) {
    Deno.test(`unbilled: a refusal before any output is free: ${what}: ${route}`, async () => {
      using world = await refusingWorld("messages");
      world.upstream.once(() =>
        Response.json(messageObject({ stop_reason: "refusal", model: reportedModel, ...whole }))
      );
      for (const stream of [false, true, false]) {
        const { entry, text } = await ask(world, path, body(20, stream ? { stream } : {}));
        assert.equal(entry.amount, "0", text);
        assert.ok(["0", undefined].includes(entry.usage.upstreamCost), "no upstream cost");
        assert.match(text, /refusal|content_filter/);
        // The last one is put together from events.
        world.upstream.once(() => messageStream(events));
      }
      assert.equal((await world.balance("ada")).balance, "10");
    });
  }

  Deno.test(`unbilled: a refusal after output is billed: ${route}`, async () => {
    using world = await refusingWorld("messages");
    const report = claudeUsage(1000, 20);
    const answers = [
      () => Response.json(messageObject({ stop_reason: "refusal", usage: report })),
      () =>
        messageStream([
          start({ usage: claudeUsage(1000, 1) }),
          opened(0),
          said(0, "Hello"),
          closed(0),
          ended("refusal", { output_tokens: 20 }),
          stopped,
        ]),
      () =>
        messageStream([
          start({ usage: claudeUsage(1000, 1) }),
          opened(0, { type: "thinking", thinking: "", signature: "" }),
          closed(0),
          ended("refusal", { output_tokens: 20 }),
          stopped,
        ]),
    ];
    for (const [index, answer] of answers.entries()) {
      world.upstream.once(answer);
      const { entry } = await ask(world, path, body(20, index > 0 ? { stream: true } : {}));
      assert.equal(entry.amount, "0.0133");
    }
  });
}

for (const route of ["chat", "messages over chat", "responses over chat"]) {
  Deno.test(`unbilled: a chat server bills the prompt of what it filters: ${route}`, async () => {
    using world = await refusingWorld("chat");
    const { path, body } = reportedRoutes[route] ?? assert.fail();
    const message = { role: "assistant", content: "" };
    const choices = [{ index: 0, message, finish_reason: "content_filter" }];
    world.upstream.once(() => completion({ choices, usage: usage(1000, 0) }));
    assert.equal((await ask(world, path, body(20))).entry.amount, "0.003");
    world.upstream.once(() =>
      sse([
        chunk({ role: "assistant", content: "" }),
        chunk({}, "content_filter"),
        usageChunk(usage(1000, 0)),
      ])
    );
    assert.equal((await ask(world, path, body(20, { stream: true }))).entry.amount, "0.003");
  });
}

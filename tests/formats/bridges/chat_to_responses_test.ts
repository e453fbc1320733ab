import assert from "node:assert/strict";
import { chatToResponses } from "../../../src/formats/bridges/chat_to_responses/bridge.ts";
import { responseEvents } from "../../../src/formats/responses/stream_events.ts";
import { usageOf } from "../../support/chat.ts";
import { asAda } from "../../support/messages.ts";
import {
  functionCall,
  message,
  openAiClient,
  tokens,
  upstreamResponse,
} from "../../support/responses.ts";
import { sseBytes } from "../../support/upstream.ts";
import { type Body, createWorld, type World } from "../../support/world.ts";
import { framesOf, optionsOf, translated, wholeOf } from "./support.ts";

const price = { input: "1", output: "10", cachedInput: "0.1", cacheWrite: "2" };
const project = {
  pricing: { models: { "test-model": { ...price, maxOutputTokens: 1000 } } },
  upstream: { url: "https://own.test/v1", apiKey: "sk-up", formats: ["responses"] },
};
const thought = { id: "rs_1", type: "reasoning", summary: [{ type: "summary_text", text: "Hm." }] };
const used = tokens(140, 5, {
  input_tokens_details: { cached_tokens: 100, cache_write_tokens: 0 },
  output_tokens_details: { reasoning_tokens: 2 },
});
/** 40 × 1 + 100 × 0.1 + 5 × 10, for a million each. */
const cost = 0.0001;
const called = upstreamResponse({
  output: [thought, message("Hello"), functionCall()],
  usage: used,
});
const cut = {
  status: "incomplete",
  incomplete_details: { reason: "max_output_tokens" },
  output: [message("Hel", { status: "incomplete" })],
};

/** Legacy completions are tried first at every upstream. */
const notServed = () => Response.json({ error: { message: "Not Found" } }, { status: 404 });

function answer(world: World, response: Body = called): void {
  world.upstream.reply(({ url, body: { stream } }) =>
    url.endsWith("/v1/completions")
      ? notServed()
      : stream
      ? new Response(framesOf([...responseEvents(response)]), {
        headers: { "content-type": "text/event-stream" },
      })
      : Response.json(response)
  );
}

async function paidWorld(balance = "1"): Promise<World> {
  const world = await createWorld({ project });
  if (balance !== "0") await world.deposit("ada", balance);
  answer(world);
  return world;
}

const hi = [{ role: "user", content: "Hi" }];
const paths: Record<string, { path: string; body: Body }> = {
  chat: { path: "/v1/chat/completions", body: { messages: hi, user: "ada" } },
  messages: { path: "/v1/messages", body: { messages: hi, max_tokens: 50 } },
  completions: { path: "/v1/completions", body: { prompt: "Hi", user: "ada" } },
};

const ask = (world: World, caller: string, more: Body = {}) => {
  const { path, body } = paths[caller] ?? assert.fail();
  return world.call(path, {
    body: { model: "test-model", ...body, ...more },
    headers: caller === "messages" ? asAda : {},
    keepClock: true,
  });
};

const tools = [{ type: "function", function: { name: "weather", parameters: { type: "object" } } }];

for (const stream of [false, true]) {
  const how = stream ? "streamed" : "whole";
  Deno.test(`chat to responses: an answer with reasoning and a call, ${how}, and the turn after it`, async () => {
    using world = await paidWorld();
    const openai = openAiClient(world);
    // deno-lint-ignore no-explicit-any -- the client's types of tools are stricter than needed
    const body = { model: "test-model", messages: hi, tools, user: "ada", max_tokens: 50 } as any;
    const completion: Body = stream
      ? await openai.chat.completions.stream({ ...body, stream_options: { include_usage: true } })
        .finalChatCompletion()
      : await openai.chat.completions.create(body);
    const [choice] = completion.choices;
    assert.equal(choice.finish_reason, "tool_calls");
    assert.equal(choice.message.content, "Hello");
    assert.equal(choice.message.reasoning_content, "Hm.");
    const [call] = choice.message.tool_calls;
    assert.deepEqual([call.id, call.type, call.function.name, call.function.arguments], [
      ...["call_1", "function", "weather", '{"city":"Paris"}'],
    ]);
    const { prompt_tokens, completion_tokens, total_tokens, cost: charged } = completion.usage;
    assert.deepEqual([prompt_tokens, completion_tokens, total_tokens, charged], [
      140,
      5,
      145,
      cost,
    ]);
    assert.ok(!("input_tokens" in completion.usage));
    const [sent] = world.upstream.calls;
    assert.equal(sent?.url, "https://own.test/v1/responses");
    assert.deepEqual(sent?.body, {
      model: "test-model",
      user: "ada",
      input: hi,
      max_output_tokens: 50,
      ...(stream ? { stream } : {}),
      store: false,
      tools: [{
        type: "function",
        name: "weather",
        parameters: { type: "object" },
        strict: false,
      }],
    });
    const result = { role: "tool", tool_call_id: "call_1", content: "ok" };
    await openai.chat.completions.create({ ...body, messages: [...hi, choice.message, result] });
    assert.deepEqual(world.upstream.calls[1]?.body.input, [
      ...hi,
      { role: "assistant", content: "Hello" },
      {
        type: "function_call",
        call_id: "call_1",
        name: "weather",
        arguments: '{"city":"Paris"}',
      },
      { type: "function_call_output", call_id: "call_1", output: "ok" },
    ]);
    const [entry] = await usageOf(world);
    assert.equal(entry?.usage.source, "provider");
  });

  Deno.test(`messages to responses: an answer with a call, ${how}`, async () => {
    using world = await paidWorld();
    const response = await ask(world, "messages", {
      stream,
      system: "Be kind",
      tools: [{ name: "weather", input_schema: { type: "object" } }],
      tool_choice: { type: "any" },
    });
    const text = await response.text();
    assert.equal(response.status, 200, text);
    for (const part of ["Hello", "tool_use", "call_1", "weather", "Paris"]) {
      assert.ok(text.includes(part), text);
    }
    const { body } = world.upstream.calls[0] ?? assert.fail();
    assert.deepEqual(body.input, [{ role: "system", content: "Be kind" }, ...hi]);
    assert.deepEqual([body.max_output_tokens, body.tool_choice], [50, "required"]);
    assert.equal((await usageOf(world))[0]?.amount, `${cost}`);
  });

  Deno.test(`completions to responses: an answer, ${how}`, async () => {
    using world = await paidWorld();
    answer(world, upstreamResponse());
    const response = await ask(world, "completions", { stream });
    const text = await response.text();
    assert.equal(response.status, 200, text);
    assert.ok(text.includes("text_completion") && text.includes("Hello there"), text);
    assert.deepEqual(world.upstream.calls[1]?.body.input, hi);
  });

  for (const caller of Object.keys(paths)) {
    Deno.test(`${caller} to responses: an answer that is cut by length, ${how}, says so`, async () => {
      using world = await paidWorld();
      answer(world, upstreamResponse(cut));
      const text = await (await ask(world, caller, { stream })).text();
      assert.ok(text.includes(caller === "messages" ? '"max_tokens"' : '"length"'), text);
    });

    Deno.test(`${caller} to responses: an error and a failed response keep their status, ${how}`, async () => {
      using world = await paidWorld();
      const error = { code: "invalid_prompt", message: "Bad.", type: "invalid_request_error" };
      for (
        const failed of [
          () => Response.json({ error }, { status: 400 }),
          () => Response.json(upstreamResponse({ status: "failed", error, output: [] })),
        ]
      ) {
        world.upstream.reply(failed);
        const response = await ask(world, caller, { stream });
        const body = await response.json();
        assert.deepEqual([response.status, body.error.message], [400, "Bad."]);
      }
      assert.equal((await usageOf(world)).length, 0);
    });

    Deno.test(`${caller} to responses: a refused user gets the link, ${how}`, async () => {
      using world = await paidWorld("0");
      const response = await ask(world, caller, { stream });
      assert.equal(response.status, 200);
      assert.ok((await response.text()).includes("https://"));
      assert.equal(world.upstream.calls.length, 0);
    });
  }
}

for (const stream of [false, true]) {
  Deno.test(`responses: ${stream ? "JSON for a stream" : "a stream for JSON"} is read over bridges too`, async () => {
    using world = await paidWorld();
    const events = new TextEncoder().encode(framesOf([...responseEvents(upstreamResponse())]));
    world.upstream.reply(({ url }) => {
      if (url.endsWith("/v1/completions")) return notServed();
      return stream ? Response.json(upstreamResponse()) : sseBytes([events]);
    });
    for (const caller of Object.keys(paths)) {
      const response = await ask(world, caller, { stream });
      const text = await response.text();
      assert.ok(response.status === 200 && text.includes("Hello"), text);
    }
    const charged = await usageOf(world);
    assert.deepEqual(charged.map(({ usage }) => usage.source), Array(3).fill("provider"));
  });
}

Deno.test("chat to responses: a stream that breaks off is charged for what was sent", async () => {
  using world = await paidWorld();
  const [created, ...rest] = [...responseEvents(upstreamResponse())].slice(0, -4);
  world.upstream.reply(() =>
    sseBytes([new TextEncoder().encode(framesOf([created ?? {}, ...rest]))])
  );
  const text = await (await ask(world, "chat", { stream: true })).text();
  assert.ok(text.includes("Hello") && text.includes("error"), text);
  const [entry] = await usageOf(world);
  assert.equal(entry?.usage.source, "estimated");
});

const chat = (more: Body): Body => ({ model: "m", messages: hi, ...more });

/** The pieces of a stream's chunks, joined as clients do. */
function assembled(events: readonly unknown[], body: Body = chat({})): Body {
  const result: Body = { content: "", reasoning: "", refusal: "", calls: [], reasons: [] };
  for (const { data } of translated(chatToResponses, events, optionsOf(body))) {
    if (data === "[DONE]") result.isDone = true;
    else {
      const { choices, usage } = JSON.parse(data);
      if (usage) result.usage = usage;
      for (const { delta, finish_reason: reason } of choices) {
        result.content += delta.content ?? "";
        result.reasoning += delta.reasoning_content ?? "";
        result.refusal += delta.refusal ?? "";
        if (reason) result.reasons.push(reason);
        for (const { index, id, function: called, custom } of delta.tool_calls ?? []) {
          const call = result.calls[index] ??= { id: "", name: "", text: "" };
          call.id += id ?? "";
          call.name += called?.name ?? custom?.name ?? "";
          call.text += called?.arguments ?? custom?.input ?? "";
        }
        const { function_call: legacy } = delta;
        if (legacy) result.legacy = `${result.legacy ?? ""}${legacy.name ?? ""}${legacy.arguments}`;
      }
    }
  }
  return result;
}

const delta = (more: Body) => ({ type: "response.output_text.delta", delta: "Hello", ...more });
const completed = (more: Body = {}) => ({
  type: "response.completed",
  response: upstreamResponse(more),
});
const custom = { type: "custom_tool_call", id: "ctc_1", call_id: "c1", name: "c", input: "abc" };
const streams: [string, unknown[], Body][] = [
  ["only its last event", [completed()], { content: "Hello there", reasons: ["stop"] }],
  ["deltas without items", [delta({}), delta({ delta: " there" }), completed({ output: [] })], {
    content: "Hello there",
    reasons: ["stop"],
  }],
  ["a beginning, and the rest in the last event", [
    delta({ output_index: 0, content_index: 0 }),
    completed(),
  ], { content: "Hello there", reasons: ["stop"] }],
  ["two messages", [completed({ output: [message("One", { id: "m1" }), message("Two")] })], {
    content: "One\n\nTwo",
  }],
  ["a refusal", [
    completed({ output: [message("", { content: [{ type: "refusal", refusal: "No." }] })] }),
  ], { content: "", refusal: "No.", reasons: ["stop"] }],
  ["a custom call, whole at its end", [
    { type: "response.output_item.done", output_index: 0, item: custom },
    completed({ output: [custom] }),
  ], { calls: [{ id: "c1", name: "c", text: "abc" }], reasons: ["tool_calls"] }],
  ["a filter", [
    completed({ status: "incomplete", incomplete_details: { reason: "content_filter" } }),
  ], { reasons: ["content_filter"] }],
  ["[DONE] for its last event", [delta({}), "[DONE]"], { content: "Hello", reasons: ["stop"] }],
  ["nothing", ["[DONE]"], { reasons: [], isDone: true }],
  ["no end", [delta({})], { content: "Hello", reasons: [], isDone: undefined }],
];
for (const [what, events, expected] of streams) {
  Deno.test(`chat to responses: a stream of ${what}`, () => {
    const result = assembled(events);
    for (const [name, value] of Object.entries(expected)) {
      assert.deepEqual(result[name], value, name);
    }
  });
}

Deno.test("chat to responses: the one call of older functions", () => {
  const body = chat({ functions: [{ name: "weather" }] });
  const output = [functionCall()];
  const { legacy, reasons } = assembled([completed({ output })], body);
  assert.deepEqual([legacy, reasons], ['weather{"city":"Paris"}', ["function_call"]]);
  const whole = wholeOf(chatToResponses, upstreamResponse({ output }), optionsOf(body));
  assert.deepEqual(whole.choices[0].message.function_call.name, "weather");
  assert.equal(whole.choices[0].finish_reason, "function_call");
});

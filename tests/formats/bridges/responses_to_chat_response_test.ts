import assert from "node:assert/strict";
import fc from "fast-check";
import OpenAI from "openai";
import { ApiError } from "../../../src/base/errors.ts";
import { isObject, parseJson } from "../../../src/base/json.ts";
import { readReportedExtras, readUsage } from "../../../src/pricing/usage.ts";
import { responsesToChat } from "../../../src/formats/bridges/responses_to_chat/bridge.ts";
import { usageFromChat } from "../../../src/formats/bridges/responses_to_chat/usage.ts";
import { always, jsonText, wellFormedText } from "../../support/property.ts";
import { chunk, usageChunk } from "../../support/upstream.ts";
import {
  bridgeOptions,
  chatStreamText,
  completionOf,
  eventsOf,
  type Parsed,
  wholeResponseOf,
} from "../../support/responses_bridge.ts";

Deno.test("responses to chat: a whole response has every field that clients rely on", () => {
  const tools = [{ type: "function", name: "f", description: null, parameters: {}, strict: true }];
  const asked = {
    instructions: "Be kind",
    metadata: { a: "b" },
    temperature: 0.5,
    tools,
    text: { verbosity: "low" },
    store: true,
  };
  const message = { content: "Hello", reasoning: "Think" };
  const response = wholeResponseOf(completionOf(message, { service_tier: "flex" }), asked);
  const { output, ...rest } = response;
  assert.deepEqual(output.map(({ id, type }: Parsed) => [id, type]), [
    ["rs_01ABC_0", "reasoning"],
    ["msg_01ABC_1", "message"],
  ]);
  assert.equal(output[0].encrypted_content, "chat.reasoning:Think");
  assert.deepEqual(output[1].content, [
    { type: "output_text", text: "Hello", annotations: [], logprobs: [] },
  ]);
  assert.deepEqual(rest, {
    id: "resp_01ABC",
    object: "response",
    created_at: 1_767_225_600,
    status: "completed",
    completed_at: null,
    background: false,
    error: null,
    incomplete_details: null,
    instructions: "Be kind",
    max_output_tokens: null,
    max_tool_calls: null,
    metadata: { a: "b" },
    model: "served-model",
    parallel_tool_calls: true,
    previous_response_id: null,
    prompt_cache_key: null,
    reasoning: { effort: null, summary: null },
    safety_identifier: null,
    service_tier: "flex",
    store: true,
    temperature: 0.5,
    text: { format: { type: "text" }, verbosity: "low" },
    tool_choice: "auto",
    tools,
    top_logprobs: 0,
    top_p: 1,
    presence_penalty: 0,
    frequency_penalty: 0,
    truncation: "disabled",
    usage: { input_tokens: 10, output_tokens: 5, total_tokens: 15 },
    user: null,
    access_programs: null,
  });
});

Deno.test("responses to chat: Mistral's parts are text and reasoning that does not go back", () => {
  const content = [
    { type: "thinking", thinking: [{ type: "text", text: "Think" }] },
    { type: "text", text: "Hello" },
  ];
  const [reasoning, message] = wholeResponseOf(completionOf({ content })).output;
  assert.deepEqual([reasoning.content[0].text, reasoning.encrypted_content], ["Think", null]);
  assert.equal(message.content[0].text, "Hello");
});

Deno.test("responses to chat: a response cut short is incomplete, with the call that it cut", () => {
  const tool_calls = [{ id: "1", type: "function", function: { name: "f", arguments: '{"x' } }];
  const cut = completionOf({ content: null, tool_calls }, { finish_reason: "length" });
  const { status, incomplete_details, output } = wholeResponseOf(cut);
  assert.deepEqual([status, incomplete_details], ["incomplete", { reason: "max_output_tokens" }]);
  assert.deepEqual([output[0].status, output[0].arguments], ["incomplete", '{"x']);
});

const invalid: [string, string, number][] = [
  ["a page", "<html>", 502],
  ["a list", "[]", 502],
  ["no choices", '{"choices":[]}', 502],
  ["a choice without a message", '{"choices":[{}]}', 502],
  ["an error with status 200", '{"error":{"message":"no"}}', 502],
  ["an error that stands for a status", '{"error":{"message":"no","code":"rate_limit"}}', 429],
  ["too deep a nesting", '{"choices":' + "[".repeat(5_000) + "]".repeat(5_000) + "}", 502],
];
for (const [what, text, status] of invalid) {
  Deno.test(`responses to chat: ${what} is ${status}`, () => {
    const bytes = new TextEncoder().encode(text);
    assert.throws(
      () => responsesToChat.translateWhole(bytes, bridgeOptions()),
      (error) => error instanceof ApiError && error.status === status,
    );
  });
}

const text = wellFormedText.filter((value) => value !== "");
const calls = fc.array(
  fc.record({ id: fc.uuid(), name: fc.constantFrom("f", "patch", "crm__find"), args: text }),
  { maxLength: 3 },
);
const message = fc.record({
  reasoning_content: fc.option(text),
  content: fc.option(text),
  refusal: fc.option(text),
  calls,
});
const asked = {
  tools: [
    { type: "custom", name: "patch" },
    { type: "namespace", name: "crm", tools: [{ type: "function", name: "find" }] },
  ],
};

/** A text in pieces, none of which is half of a character. */
function piecesOf(whole: string, size: number): string[] {
  const points = [...whole];
  const pieces = [];
  for (let at = 0; at < points.length; at += size) {
    pieces.push(points.slice(at, at + size).join(""));
  }
  return pieces;
}

Deno.test("responses to chat: a stream in any pieces says the same as the whole response", async () => {
  const cases = fc.tuple(
    message,
    fc.integer({ min: 1, max: 40 }),
    fc.integer({ min: 1, max: 300 }),
    fc.constantFrom("stop", "length"),
  );
  await always(
    200,
    fc.property(cases, ([{ calls, ...said }, size, cut, reason]) => {
      const tool_calls = calls.map(({ id, name, args }) => ({
        id,
        type: "function",
        function: { name, arguments: args },
      }));
      const whole = wholeResponseOf(
        completionOf({ ...said, tool_calls }, { finish_reason: reason, model: "test-model" }),
        asked,
      );
      const fields = ["reasoning_content", "content", "refusal"] as const;
      const chunks = [
        ...fields.flatMap((field) =>
          piecesOf(said[field] ?? "", size).map((piece) => chunk({ [field]: piece }))
        ),
        ...tool_calls.flatMap(({ id, function: { name, arguments: args } }, index) => [
          chunk({ tool_calls: [{ index, id, function: { name, arguments: "" } }] }),
          ...piecesOf(args, size).map((piece) =>
            chunk({ tool_calls: [{ index, function: { arguments: piece } }] })
          ),
        ]),
        chunk({}, reason),
        usageChunk(),
      ];
      const events = eventsOf(piecesOf(chatStreamText(chunks), cut), asked);
      assert.deepEqual(events.at(-1).response, whole);
      assertOrdered(events, whole.output);
    }),
  );
});

/** Every item begins, ends as the output has it, and its deltas are what it says. */
function assertOrdered(events: readonly Parsed[], output: readonly Parsed[]): void {
  for (const [index, item] of output.entries()) {
    const own = events.filter((event) => event.output_index === index);
    assert.equal(own[0].type, "response.output_item.added");
    assert.equal(own.at(-1).type, "response.output_item.done");
    assert.deepEqual(own.at(-1).item, item);
    const deltas = own.filter(({ type }) => type.endsWith(".delta")).map(({ delta }) => delta);
    const parts = (item.content ?? []).map((part: Parsed) => part.text ?? part.refusal).join("");
    assert.equal(deltas.join(""), item.arguments ?? item.input ?? parts);
  }
  assert.deepEqual(events.map((event) => event.sequence_number), [...events.keys()]);
}

Deno.test("responses to chat: whatever an upstream streams, no event breaks the format", async () => {
  await always(
    300,
    fc.property(
      fc.array(fc.tuple(jsonText, fc.constantFrom("", "error")), { maxLength: 6 }),
      (sent) => {
        const frames = sent.map(([value, event]) => {
          const delta = `{"choices":[{"index":0,"delta":${value},"finish_reason":null}]}`;
          return `${event && `event: ${event}\n`}data: ${event ? value : delta}\n\n`;
        });
        const events = eventsOf([...frames, chatStreamText([chunk({}, "stop")])]);
        assert.deepEqual(events.map((each) => each.sequence_number), [...events.keys()]);
        assert.match(events.at(-1).type, /^(error|response\.completed)$/);
      },
    ),
  );
});

Deno.test("responses to chat: usage is priced as its upstream reported it", async () => {
  const names = [
    ...["prompt_tokens", "input_tokens", "completion_tokens", "output_tokens", "total_tokens"],
    ...["promptTokenCount", "candidatesTokenCount", "totalTokenCount", "cached_tokens"],
    ...["cache_read_input_tokens", "cache_creation_input_tokens", "prompt_cache_hit_tokens"],
    ...["reasoning_tokens", "citation_tokens", "num_sources_used"],
  ];
  const details = ["cached_tokens", "cache_write_tokens", "audio_tokens", "reasoning_tokens"];
  const count = fc.oneof(fc.nat(50), fc.nat(50), fc.constantFrom(null, -1, "5", 1.5));
  const detailed = [
    ...["prompt_tokens_details", "input_tokens_details"],
    ...["completion_tokens_details", "output_tokens_details"],
  ];
  const counts = (list: readonly string[]) => fc.dictionary(fc.constantFrom(...list), count);
  const usage = fc.tuple(
    counts(names),
    fc.dictionary(fc.constantFrom(...detailed), fc.oneof(counts(details), fc.constant(null))),
  ).map(([plain, nested]) => parseJson(JSON.stringify({ ...plain, ...nested })));
  await always(
    3_000,
    fc.property(usage, (raw) => {
      assert.ok(isObject(raw));
      const translated = usageFromChat(raw);
      const [read, wanted] = [readUsage(translated), readUsage(raw)];
      // The names of responses have whole numbers only.
      assert.deepEqual(read && { ...read, isExact: wanted?.isExact }, wanted);
      assert.deepEqual(readReportedExtras(translated), readReportedExtras(raw));
    }),
  );
});

Deno.test("responses to chat: OpenAI's client reads the stream, with calls and reasoning", async () => {
  const chunks = [
    chunk({ reasoning_content: "Think" }),
    chunk({ content: "Let me look." }),
    chunk({ tool_calls: [{ index: 0, id: "1", function: { name: "f", arguments: "{}" } }] }),
    chunk({ tool_calls: [{ index: 1, id: "2", function: { name: "f", arguments: "" } }] }),
    chunk({}, "tool_calls"),
    usageChunk(),
  ];
  const frames = eventsOf([chatStreamText(chunks)]).map((event) =>
    `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`
  );
  const client = new OpenAI({
    apiKey: "k",
    fetch: () =>
      Promise.resolve(
        new Response(frames.join(""), { headers: { "content-type": "text/event-stream" } }),
      ),
  });
  const response = await client.responses.stream({ model: "test-model", input: "Hi" })
    .finalResponse();
  assert.equal(response.output_text, "Let me look.");
  assert.deepEqual(response.output.map(({ type }) => type), [
    "reasoning",
    "message",
    "function_call",
    "function_call",
  ]);
});

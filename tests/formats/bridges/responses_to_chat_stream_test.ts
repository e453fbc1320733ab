import assert from "node:assert/strict";
import { chunk, usageChunk } from "../../support/upstream.ts";
import {
  chatStreamText,
  eventsOf,
  type Parsed,
  upstreamKey,
} from "../../support/responses_bridge.ts";

/** The events of a stream of these chunks. */
const stream = (chunks: readonly unknown[], body: object = {}, done = true) =>
  eventsOf([chatStreamText(chunks, done)], body);

const typesOf = (events: readonly Parsed[]) =>
  events.map(({ type }) => type.replace(/^response\./, ""));
const lastOf = (events: readonly Parsed[]) => events.at(-1).response;
const outputOf = (events: readonly Parsed[]) => lastOf(events).output;
const callPiece = (index: number, fields: object, more: object = {}) =>
  chunk({ tool_calls: [{ index, ...more, function: fields }] });

Deno.test("responses to chat: a text is streamed by every event of the format, in order", () => {
  const events = stream([
    chunk({ role: "assistant", content: "" }),
    chunk({ content: "Hel" }),
    chunk({ content: "lo" }),
    chunk({}, "stop"),
    usageChunk(),
  ]);
  assert.deepEqual(typesOf(events), [
    "created",
    "in_progress",
    "output_item.added",
    "content_part.added",
    "output_text.delta",
    "output_text.delta",
    "output_text.done",
    "content_part.done",
    "output_item.done",
    "completed",
  ]);
  assert.deepEqual(events.map(({ sequence_number }) => sequence_number), [...events.keys()]);
  const [created, , added, , delta, , done, part, item] = events;
  assert.deepEqual([created.response.status, created.response.usage], ["in_progress", null]);
  const place = { item_id: "msg_01ABC_0", output_index: 0, content_index: 0 };
  assert.deepEqual(added.item, {
    id: place.item_id,
    type: "message",
    status: "in_progress",
    role: "assistant",
    content: [],
  });
  assert.deepEqual(delta, {
    type: "response.output_text.delta",
    ...place,
    delta: "Hel",
    logprobs: [],
    sequence_number: 4,
  });
  assert.deepEqual([done.text, part.part.text, item.item.content[0].text], Array(3).fill("Hello"));
  const response = lastOf(events);
  assert.deepEqual(response.output, [item.item]);
  assert.deepEqual([response.id, response.model, response.status, response.store], [
    "resp_01ABC",
    "test-model",
    "completed",
    true,
  ]);
  assert.deepEqual(response.usage, { input_tokens: 10, output_tokens: 5, total_tokens: 15 });
});

Deno.test("responses to chat: reasoning is an item of its own, and its text can be sent back", () => {
  const chunks = [
    chunk({ reasoning_content: "Think" }),
    chunk({ reasoning_content: "ing" }),
    chunk({ content: "Hi" }),
    chunk({}, "stop"),
  ];
  const events = stream(chunks);
  assert.deepEqual(typesOf(events).slice(2, 9), [
    "output_item.added",
    "content_part.added",
    "reasoning_text.delta",
    "reasoning_text.delta",
    "reasoning_text.done",
    "content_part.done",
    "output_item.done",
  ]);
  const [reasoning, message] = outputOf(events);
  assert.deepEqual(reasoning, {
    id: "rs_01ABC_0",
    type: "reasoning",
    status: "completed",
    summary: [],
    content: [{ type: "reasoning_text", text: "Thinking" }],
    encrypted_content: "chat.reasoning_content:Thinking",
  });
  assert.equal(message.id, "msg_01ABC_1");
  const summarized = stream(chunks, { reasoning: { summary: "auto" } });
  assert.deepEqual(typesOf(summarized).slice(2, 9), [
    "output_item.added",
    "reasoning_summary_part.added",
    "reasoning_summary_text.delta",
    "reasoning_summary_text.delta",
    "reasoning_summary_text.done",
    "reasoning_summary_part.done",
    "output_item.done",
  ]);
  assert.deepEqual(outputOf(summarized)[0].summary, [{ type: "summary_text", text: "Thinking" }]);
});

Deno.test("responses to chat: calls whose pieces alternate are items with events of their own", () => {
  const events = stream([
    chunk({ content: "Let me look." }),
    callPiece(0, { name: "a", arguments: "" }, { id: "call_a" }),
    callPiece(1, { name: "b", arguments: '{"x"' }, { id: "call_b" }),
    callPiece(0, { arguments: '{"y":1}' }),
    callPiece(1, { arguments: ":2}" }),
    chunk({}, "tool_calls"),
  ]);
  assert.deepEqual(
    outputOf(events).slice(1).map((item: Parsed) => [
      item.id,
      item.type,
      item.status,
      item.call_id,
      item.name,
      item.arguments,
    ]),
    [
      ["fc_01ABC_1", "function_call", "completed", "call_a", "a", '{"y":1}'],
      ["fc_01ABC_2", "function_call", "completed", "call_b", "b", '{"x":2}'],
    ],
  );
  const ofSecond = events.filter((event) => event.item_id === "fc_01ABC_2");
  assert.deepEqual(typesOf(ofSecond), [
    "function_call_arguments.delta",
    "function_call_arguments.delta",
    "function_call_arguments.done",
  ]);
  assert.deepEqual(ofSecond.at(-1).arguments, '{"x":2}');
});

const calls: [string, unknown[], [string, string, string][]][] = [
  ["whole in one chunk", [
    chunk({
      tool_calls: [
        { index: 0, id: "1", function: { name: "a", arguments: "{}" } },
        { index: 1, id: "2", function: { name: "b", arguments: "{}" } },
      ],
    }),
  ], [["1", "a", "{}"], ["2", "b", "{}"]]],
  ["without an index", [
    chunk({ tool_calls: [{ id: "1", function: { name: "a", arguments: '{"x' } }] }),
    chunk({ tool_calls: [{ function: { arguments: '":1}' } }] }),
    chunk({ tool_calls: [{ id: "2", function: { name: "b", arguments: "{}" } }] }),
  ], [["1", "a", '{"x":1}'], ["2", "b", "{}"]]],
  ["without an index, in turns", [
    chunk({ tool_calls: [{ id: "1", function: { name: "a", arguments: '{"x' } }] }),
    chunk({ tool_calls: [{ id: "2", function: { name: "b", arguments: '{"y' } }] }),
    chunk({ tool_calls: [{ id: "1", function: { arguments: '":1}' } }] }),
    chunk({ tool_calls: [{ id: "2", function: { arguments: '":2}' } }] }),
  ], [["1", "a", '{"x":1}'], ["2", "b", '{"y":2}']]],
  ["all with the index 0", [
    callPiece(0, { name: "a", arguments: "{}" }, { id: "1" }),
    callPiece(0, { name: "b", arguments: "{}" }, { id: "2" }),
  ], [["1", "a", "{}"], ["2", "b", "{}"]]],
  ["with another id in each piece", [
    callPiece(0, { name: "a", arguments: '{"x' }, { id: "1" }),
    callPiece(0, { arguments: '":1}' }, { id: "2" }),
  ], [["1", "a", '{"x":1}']]],
  ["with its name after its arguments", [
    callPiece(0, { arguments: '{"x"' }, { id: "1" }),
    callPiece(0, { name: "a", arguments: ":1}" }),
  ], [["1", "a", '{"x":1}']]],
  ["without an id", [callPiece(0, { name: "a", arguments: null })], [["call_01ABC_0", "a", "{}"]]],
  ["with an object as arguments", [callPiece(0, { name: "a", arguments: { x: 1 } }, { id: "1" })], [
    ["1", "a", '{"x":1}'],
  ]],
  ["as older servers know them", [
    chunk({ function_call: { name: "a", arguments: '{"x"' } }),
    chunk({ function_call: { name: "a", arguments: ":1}" } }, "function_call"),
  ], [["call_01ABC_0", "a", '{"x":1}']]],
];
for (const [what, chunks, expected] of calls) {
  Deno.test(`responses to chat: calls ${what} are read`, () => {
    const output = outputOf(stream([...chunks, chunk({}, "tool_calls")]));
    assert.deepEqual(
      output.map((item: Parsed) => [item.call_id, item.name, item.arguments]),
      expected,
    );
  });
}

Deno.test("responses to chat: calls of custom tools and of groups have the caller's names", () => {
  const tools = [
    { type: "custom", name: "patch" },
    { type: "namespace", name: "crm", tools: [{ type: "function", name: "find" }] },
  ];
  const events = stream([
    callPiece(0, { name: "patch", arguments: '{"input":"a' }, { id: "1" }),
    callPiece(0, { arguments: '\\nb"}' }),
    callPiece(1, { name: "crm__find", arguments: "{}" }, { id: "2" }),
    callPiece(2, { name: "patch", arguments: "not JSON" }, { id: "3" }),
    callPiece(3, { name: "unknown", arguments: "{}" }, { id: "4" }),
    chunk({}, "tool_calls"),
  ], { tools });
  const [custom, grouped, raw, unknown] = outputOf(events);
  assert.deepEqual([custom.type, custom.id, custom.name, custom.input], [
    "custom_tool_call",
    "ctc_01ABC_0",
    "patch",
    "a\nb",
  ]);
  assert.deepEqual([grouped.type, grouped.name, grouped.namespace], [
    "function_call",
    "find",
    "crm",
  ]);
  assert.equal(raw.input, "not JSON");
  assert.deepEqual([unknown.name, unknown.namespace], ["unknown", undefined]);
  const ofCustom = events.filter((event) => event.item_id === custom.id);
  assert.deepEqual(typesOf(ofCustom), [
    "custom_tool_call_input.delta",
    "custom_tool_call_input.done",
  ]);
});

const ends: [string, unknown[], boolean, string, string | null][] = [
  ["by length", [chunk({ content: "a" }, "length")], true, "incomplete", "max_output_tokens"],
  [
    "by a filter",
    [chunk({ content: "a" }, "content_filter")],
    true,
    "incomplete",
    "content_filter",
  ],
  ["without [DONE]", [chunk({ content: "a" }), chunk({}, "stop")], false, "completed", null],
  ["with its text", [chunk({ content: "a" }, "stop")], true, "completed", null],
  ["before its text", [chunk({}, "stop"), chunk({ content: "a" })], true, "completed", null],
  ["without a reason", [chunk({ content: "a" })], true, "completed", null],
  ["with an unknown reason", [chunk({ content: "a" }, "eos")], true, "completed", null],
  [
    "with nulls and no choices",
    [
      { ...chunk({}), choices: [] },
      chunk({ content: null, tool_calls: null, refusal: null, reasoning_content: null }),
      "not JSON",
      "null",
      { choices: null },
      chunk({ content: "a" }),
      chunk({}, ""),
      chunk({ content: null }, "stop"),
    ],
    true,
    "completed",
    null,
  ],
];
for (const [what, chunks, done, status, reason] of ends) {
  Deno.test(`responses to chat: a stream that ends ${what} is ${status}`, () => {
    const events = stream(chunks, {}, done);
    const response = lastOf(events);
    assert.equal(events.at(-1).type, `response.${status}`);
    assert.deepEqual([response.status, response.incomplete_details], [
      status,
      reason && { reason },
    ]);
    assert.equal(response.output[0].content[0].text, "a");
    assert.equal(response.output[0].status, status);
  });
}

Deno.test("responses to chat: a stream that breaks off has no end", () => {
  assert.equal(typesOf(stream([chunk({ content: "a" })], {}, false)).at(-1), "output_text.delta");
  assert.throws(() => stream([], {}, true));
  assert.deepEqual(stream([], {}, false), []);
});

Deno.test("responses to chat: an empty answer is an empty message, which no client asks for again", () => {
  const [message] = outputOf(stream([chunk({ content: "" }), chunk({}, "stop")]));
  assert.deepEqual(message.content, [
    { type: "output_text", text: "", annotations: [], logprobs: [] },
  ]);
  assert.deepEqual(outputOf(stream([chunk({}, "length")])), []);
});

Deno.test("responses to chat: usage is found wherever servers put it, the largest counts", () => {
  const used = (more: object) =>
    lastOf(stream([chunk({ content: "a" }, "stop", { ...more })])).usage;
  assert.equal(used({ usage: null }), null);
  assert.deepEqual(used({ x_groq: { usage: { prompt_tokens: 1, completion_tokens: 2 } } }), {
    input_tokens: 1,
    output_tokens: 2,
    total_tokens: 3,
  });
  const several = stream([
    chunk({ content: "a" }, null, { usage: { prompt_tokens: 9, completion_tokens: 1 } }),
    chunk({ content: "b" }, "stop", { usage: { prompt_tokens: 9, completion_tokens: 2 } }),
    usageChunk({ prompt_tokens: 0, completion_tokens: 0 }),
  ]);
  assert.equal(lastOf(several).usage.output_tokens, 2);
});

Deno.test("responses to chat: usage after the end is sent with the last event again", () => {
  const text = chatStreamText([chunk({ content: "a" }, "stop"), "[DONE]", usageChunk()]);
  const events = eventsOf([text]);
  assert.deepEqual(typesOf(events).slice(-2), ["completed", "completed"]);
  assert.deepEqual([events.at(-2).response.usage, lastOf(events).usage.input_tokens], [null, 10]);
});

Deno.test("responses to chat: an error within the stream is the last event, without the key", () => {
  const error = { message: `no ${upstreamKey}`, type: "rate_limit", code: 429, param: "x" };
  const events = stream([chunk({ content: "a" }), { error }, chunk({ content: "b" }, "stop")]);
  const { sequence_number: _, ...last } = events.at(-1);
  assert.deepEqual(last, {
    type: "error",
    code: "429",
    message: "no [redacted]",
    param: "x",
    error: { ...error, message: "no [redacted]" },
  });
  const [first] = eventsOf([`event: error\ndata: broken ${upstreamKey}\n\n`]);
  assert.deepEqual([first.type, first.message], ["error", "broken [redacted]"]);
});

Deno.test("responses to chat: refusals, citations and log probabilities are carried", () => {
  const logprob = { token: "a", logprob: -0.5, bytes: [97], top_logprobs: [] };
  const cited = { url: "https://x.test", title: "X", start_index: 0, end_index: 1 };
  const events = stream([
    chunk({ content: "a" }, null, {
      choices: [{ index: 0, delta: { content: "a" }, logprobs: { content: [logprob, {}] } }],
    }),
    chunk({ annotations: [{ type: "url_citation", url_citation: cited }, "x"] }),
    chunk({ refusal: "No" }),
    chunk({}, "stop"),
  ]);
  const annotation = { type: "url_citation", ...cited };
  assert.deepEqual(outputOf(events)[0].content, [
    { type: "output_text", text: "a", annotations: [annotation], logprobs: [logprob] },
    { type: "refusal", refusal: "No" },
  ]);
  assert.ok(typesOf(events).includes("output_text.annotation.added"));
  assert.deepEqual(typesOf(events).slice(-5), [
    "refusal.delta",
    "refusal.done",
    "content_part.done",
    "output_item.done",
    "completed",
  ]);
});

Deno.test("responses to chat: other choices than the first are left out", () => {
  const events = stream([
    chunk({ content: "a" }),
    { ...chunk({}), choices: [{ index: 1, delta: { content: "b" }, finish_reason: "stop" }] },
    chunk({}, "stop"),
  ]);
  assert.equal(outputOf(events)[0].content[0].text, "a");
});

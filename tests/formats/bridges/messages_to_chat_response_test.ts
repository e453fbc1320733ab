import assert from "node:assert/strict";
import { ApiError } from "../../../src/base/errors.ts";
import fc from "fast-check";
import { messagesToChat } from "../../../src/formats/bridges/messages_to_chat/bridge.ts";
import { chunk, usage, usageChunk } from "../../support/upstream.ts";
import { always, anyText, jsonText } from "../../support/property.ts";
import type { Body } from "../../support/world.ts";
import { assembleMessage, optionsOf, translated, wholeOf, written } from "./support.ts";

const thinks = { thinking: { type: "adaptive" } };
const whole = (message: Body, finish: unknown = "stop", more: Body = {}, body: Body = thinks) =>
  wholeOf(messagesToChat, {
    model: "m-1",
    choices: [{ index: 0, message, finish_reason: finish }],
    usage: usage(10, 5),
    ...more,
  }, optionsOf(body));
const streamed = (events: unknown[], body: Body = thinks) =>
  translated(messagesToChat, events, optionsOf(body));
const typesOf = (events: { data: string }[]) => events.map(({ data }) => JSON.parse(data).type);
const call = (name: string, args: unknown, more: Body = {}) => ({
  id: "c1",
  type: "function",
  function: { name, arguments: args },
  ...more,
});

Deno.test("messages to chat: a completion is a message with its text, its end and its usage", () => {
  assert.deepEqual(whole({ role: "assistant", content: "Hello" }), {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "m-1",
    content: [{ type: "text", text: "Hello" }],
    stop_reason: "end_turn",
    stop_sequence: null,
    usage: {
      input_tokens: 10,
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: 0,
      cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
      output_tokens: 5,
    },
  });
});

const contents: [string, Body, unknown[]][] = [
  ["reasoning is a thinking block", { reasoning_content: "hm", content: "A" }, [
    { type: "thinking", thinking: "hm", signature: "reasoning_content" },
    { type: "text", text: "A" },
  ]],
  ["reasoning by its other name too", { reasoning: "hm", content: null }, [
    { type: "thinking", thinking: "hm", signature: "reasoning" },
  ]],
  ["Mistral's parts are thinking and text", {
    content: [{ type: "thinking", thinking: [{ type: "text", text: "hm" }] }, {
      type: "text",
      text: "A",
    }],
  }, [{ type: "thinking", thinking: "hm", signature: "" }, { type: "text", text: "A" }]],
  ["a refusal is text", { content: null, refusal: "No." }, [{ type: "text", text: "No." }]],
  ["a call is a tool_use with its input", { content: null, tool_calls: [call("f", '{"a":1}')] }, [
    { type: "tool_use", id: "c1", name: "f", input: { a: 1 } },
  ]],
  ["a call without arguments has an empty input", { tool_calls: [call("f", "")] }, [
    { type: "tool_use", id: "c1", name: "f", input: {} },
  ]],
  ["arguments that are an object stay one", { tool_calls: [call("f", { a: 1 })] }, [
    { type: "tool_use", id: "c1", name: "f", input: { a: 1 } },
  ]],
  ["arguments that are not an object are kept as text", { tool_calls: [call("f", '{"a":')] }, [
    {
      type: "tool_use",
      id: "c1",
      name: "f",
      input: { __unparsedToolInput: { raw: '{"a":', len: 5 } },
    },
  ]],
  ["a call without an id gets one", { tool_calls: [call("f", "{}", { id: undefined })] }, [
    { type: "tool_use", id: "call_1_0", name: "f", input: {} },
  ]],
];
for (const [what, message, content] of contents) {
  Deno.test(`messages to chat: ${what}`, () => assert.deepEqual(whole(message).content, content));
}

Deno.test("messages to chat: a caller who did not ask for thinking gets text alone", () => {
  const message = { reasoning_content: "hm", content: "A" };
  for (
    const body of [{}, { thinking: { type: "disabled" } }, {
      thinking: { type: "adaptive", display: "omitted" },
    }]
  ) {
    assert.deepEqual(whole(message, "stop", {}, body).content, [{ type: "text", text: "A" }]);
    const events = streamed(
      [chunk({ reasoning_content: "hm" }), chunk({ content: "A" }, "stop")],
      body,
    );
    assert.deepEqual(assembleMessage(events).content, [{ type: "text", text: "A" }]);
    assert.ok(typesOf(events).includes("ping"), "and signs of life meanwhile");
  }
});

const offered = { tools: [{ name: "f", input_schema: { type: "object" } }] };
const forms: [string, Body, Body][] = [
  ["who did not ask has it beside the call", {}, {
    thinking: "hmm",
    signature: "reasoning_content",
  }],
  ["who refused it has it beside the call", { thinking: { type: "disabled" } }, {
    thinking: "hmm",
    signature: "reasoning_content",
  }],
  ["who wants no text of it has it in the signature", {
    thinking: { type: "adaptive", display: "omitted" },
  }, { thinking: "", signature: "reasoning_content:hmm" }],
];
for (const [what, sent, block] of forms) {
  const body = { ...offered, ...sent };
  Deno.test(`messages to chat: of a model that thinks, a caller with tools ${what}, and gives it back`, () => {
    const message = {
      content: "Hi",
      reasoning_content: "hmm",
      tool_calls: [call("f", "{}")],
    };
    const { content } = whole(message, "tool_calls", {}, body);
    const events = streamed([
      chunk({ reasoning_content: "h" }),
      chunk({ reasoning_content: "mm" }),
      chunk({ content: "Hi" }),
      chunk({ tool_calls: [{ index: 0, ...call("f", "{}") }] }, "tool_calls"),
    ], body);
    for (const answer of [content, assembleMessage(events).content]) {
      const kinds = answer.map(({ type }: Body) => type);
      assert.deepEqual(kinds, ["text", "thinking", "tool_use"]);
      assert.deepEqual(answer[1], { type: "thinking", ...block });
      const results = [{ type: "tool_result", tool_use_id: answer[2].id, content: "ok" }];
      const messages = [
        { role: "user", content: "Hi" },
        { role: "assistant", content: answer },
        { role: "user", content: results },
        { role: "assistant", content: "Done" },
        { role: "user", content: "More" },
      ];
      const [, turn] = written(messagesToChat, { model: "m", ...body, messages }).messages;
      assert.deepEqual([turn.content, turn.reasoning_content], ["Hi", "hmm"]);
    }
    const text = whole({ content: "A", reasoning_content: "hm" }, "stop", {}, body);
    assert.deepEqual(text.content, [{ type: "text", text: "A" }], "an answer has text alone");
  });
}

const stops: [unknown, Body, Body, string, string | null][] = [
  ["stop", {}, {}, "end_turn", null],
  ["length", {}, {}, "max_tokens", null],
  ["content_filter", {}, {}, "refusal", null],
  ["tool_calls", { tool_calls: [call("f", "{}")] }, {}, "tool_use", null],
  ["stop", { tool_calls: [call("f", "{}")] }, {}, "tool_use", null],
  ["tool_calls", {}, {}, "end_turn", null],
  [null, {}, {}, "end_turn", null],
  ["", {}, {}, "end_turn", null],
  ["eos", {}, {}, "end_turn", null],
  ["stop", {}, { stop_reason: "END" }, "stop_sequence", "END"],
  ["stop", {}, { stop_reason: "other" }, "end_turn", null],
  ["stop", {}, { stop_reason: 128 }, "end_turn", null],
];
for (const [finish, message, choice, reason, sequence] of stops) {
  Deno.test(`messages to chat: ${finish} with ${JSON.stringify({ ...message, ...choice }).slice(0, 40)} is ${reason}`, () => {
    const body = { stop_sequences: ["END"] };
    const made = wholeOf(messagesToChat, {
      choices: [{ message, finish_reason: finish, ...choice }],
      usage: usage(1, 1),
    }, optionsOf(body));
    assert.deepEqual([made.stop_reason, made.stop_sequence], [reason, sequence]);
    if (finish === null || finish === "") return;
    const last = { ...chunk(message, String(finish)) };
    Object.assign(last.choices[0] ?? {}, choice);
    const assembled = assembleMessage(streamed([last], body));
    assert.deepEqual([assembled.stop_reason, assembled.stop_sequence], [reason, sequence]);
  });
}

const invalid: [string, unknown, number][] = [
  ["a page", "<html>", 502],
  ["a list", "[]", 502],
  ["no choices", { choices: [] }, 502],
  ["usage without a choice", { choices: [], usage: usage(3, 0) }, 502],
  ["a choice without a message", { choices: [{}] }, 502],
  [
    "a rate limit with status 200",
    { error: { message: "slow", code: "rate_limit_exceeded" } },
    429,
  ],
  ["an error with status 200", { error: { message: "no" } }, 502],
];
for (const [what, response, status] of invalid) {
  Deno.test(`messages to chat: ${what} is ${status}`, () => {
    assert.throws(
      () => wholeOf(messagesToChat, response, optionsOf({})),
      (error: Body) => error.status === status,
    );
  });
}

Deno.test("messages to chat: absent usage is left out", () => {
  assert.equal("usage" in whole({ content: "A" }, "stop", { usage: null }), false);
});

Deno.test("messages to chat: the end waits for usage, and for [DONE] or the stream's end", () => {
  const hello = [
    chunk({ role: "assistant", content: "" }),
    chunk({ content: "Hello" }),
    chunk({}, "stop"),
  ];
  const begun = ["message_start", "content_block_start", "content_block_delta"];
  const end = ["content_block_stop", "message_delta", "message_stop"];
  const translator = messagesToChat.createTranslator(optionsOf({}));
  const take = (event: unknown) =>
    translator.take({ data: typeof event === "string" ? event : JSON.stringify(event) });
  assert.deepEqual(typesOf(hello.flatMap(take)), begun);
  assert.deepEqual(typesOf(take(usageChunk())), []);
  const ending = take("[DONE]");
  assert.deepEqual(typesOf(ending), end);
  assert.equal(JSON.parse(ending[1]?.data ?? "").usage.output_tokens, 5);
  assert.deepEqual(translator.end(), []);
  assert.deepEqual(typesOf(streamed([...hello, usageChunk()])), [...begun, ...end]);
  assert.deepEqual(
    typesOf(streamed(hello.slice(0, 2))),
    begun,
    "a stream that breaks off has no end",
  );
  assert.throws(() => streamed(["[DONE]"]), "nothing at all is no message");
  const late = streamed([...hello, "[DONE]", usageChunk()]);
  assert.deepEqual(typesOf(late).slice(-2), ["message_stop", "message_delta"]);
  assert.equal(assembleMessage(late).usage.output_tokens, 5);
});

Deno.test("messages to chat: parallel calls that arrive at once become blocks one after the other", () => {
  const piece = (index: number, args: string, more: Body = {}) =>
    chunk({ tool_calls: [{ index, ...more, function: { arguments: args, ...more.function } }] });
  const events = streamed([
    chunk({ content: "I call " }),
    piece(0, "", { id: "a", type: "function", function: { name: "f", arguments: "" } }),
    piece(1, '{"x"', { id: "b", type: "function", function: { name: "g", arguments: '{"x"' } }),
    piece(0, '{"y":'),
    chunk({ content: "meanwhile" }),
    piece(1, ":1}"),
    piece(0, "2}"),
    chunk({}, "tool_calls"),
  ]);
  assert.deepEqual(assembleMessage(events).content, [
    { type: "text", text: "I call " },
    { type: "tool_use", id: "a", name: "f", input: { y: 2 } },
    { type: "tool_use", id: "b", name: "g", input: { x: 1 } },
    { type: "text", text: "meanwhile" },
  ]);
});

Deno.test("messages to chat: calls that a server numbers alike, or not at all, stay apart", () => {
  const one = (id: string) => chunk({ tool_calls: [call("f", `{"id":"${id}"}`, { id })] });
  const { content } = assembleMessage(streamed([one("a"), one("b"), chunk({}, "stop")]));
  assert.deepEqual(content.map((block: Body) => [block.id, block.input.id]), [["a", "a"], [
    "b",
    "b",
  ]]);
});

const errors: [unknown, number][] = [
  [{ error: { message: "slow down", code: "rate_limit_exceeded" } }, 429],
  [{ error: { message: "busy", code: 503 } }, 502],
  [{ error: { message: "long", code: "context_length_exceeded" } }, 400],
  [{ error: { message: "secret account", code: "insufficient_quota" } }, 502],
  [chunk({ content: "" }, "error"), 502],
];
for (const [event, status] of errors) {
  Deno.test(`messages to chat: ${JSON.stringify(event).slice(0, 60)} in a stream is a ${status}`, () => {
    const translator = messagesToChat.createTranslator(optionsOf({}));
    assert.throws(
      () => translator.take({ data: JSON.stringify(event) }),
      (error: Body) => error.status === status && !error.message.includes("secret"),
    );
  });
}

const words = fc.array(anyText.map((text) => text.toWellFormed()), { maxLength: 3 });
const calls = fc.array(
  fc.record({
    name: fc.constantFrom("f", "g"),
    args: fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 3 }),
  }),
  { maxLength: 3 },
);
Deno.test("messages to chat: a stream is the message that the whole response is", () =>
  always(
    300,
    fc.property(
      words,
      words,
      calls,
      fc.infiniteStream(fc.nat(9)),
      (thoughts, texts, made, dice) => {
        const tool_calls = made.map(({ name, args }, index) =>
          call(name, JSON.stringify(args), { id: `c${index}` })
        );
        const message = {
          reasoning_content: thoughts.join(""),
          content: texts.join(""),
          ...(made.length > 0 ? { tool_calls } : {}),
        };
        const finish = made.length > 0 ? "tool_calls" : "stop";
        const pieces: unknown[] = [
          ...thoughts.map((text) => chunk({ reasoning_content: text })),
          ...texts.map((text) => chunk({ content: text })),
          ...made.map(({ name }, index) =>
            chunk({ tool_calls: [{ index, id: `c${index}`, function: { name, arguments: "" } }] })
          ),
        ];
        const left = tool_calls.map((call) => String(call.function.arguments));
        while (left.some((text) => text !== "")) {
          const at = dice.next().value % left.length;
          const length = 1 + dice.next().value;
          const part = left[at]?.slice(0, length) ?? "";
          left[at] = left[at]?.slice(length) ?? "";
          if (part !== "") {
            pieces.push(chunk({ tool_calls: [{ index: at, function: { arguments: part } }] }));
          }
        }
        const events = [
          chunk({ role: "assistant" }),
          ...pieces,
          chunk({}, finish),
          usageChunk(),
          "[DONE]",
        ];
        const expected = whole(message, finish, { model: "test-model" });
        assert.deepEqual(assembleMessage(streamed(events)), expected);
      },
    ),
  ));

const anyChunk = fc.oneof(
  jsonText,
  anyText,
  fc.constant("[DONE]"),
  fc.record({
    choices: fc.array(
      fc.record({
        index: fc.constantFrom(0, 1, null),
        delta: fc.record({
          content: fc.oneof(anyText, fc.jsonValue()),
          reasoning: fc.oneof(anyText, fc.jsonValue()),
          tool_calls: fc.array(
            fc.record({
              index: fc.oneof(fc.nat(2), fc.jsonValue()),
              id: fc.oneof(fc.constantFrom("a", "b", ""), fc.jsonValue()),
              function: fc.oneof(
                fc.record({ name: anyText, arguments: fc.oneof(anyText, fc.jsonValue()) }),
                fc.jsonValue(),
              ),
            }, { requiredKeys: [] }),
            { maxLength: 2 },
          ),
        }, { requiredKeys: [] }),
        finish_reason: fc.constantFrom("stop", null, "length", 5),
      }, { requiredKeys: [] }),
      { maxLength: 2 },
    ),
    usage: fc.jsonValue(),
  }, { requiredKeys: [] }).map((value) => JSON.stringify(value)),
);
Deno.test("messages to chat: whatever a server sends, the events stay in Anthropic's order", () =>
  always(
    500,
    fc.property(fc.array(anyChunk, { maxLength: 8 }), (events) => {
      let sent: ReturnType<typeof streamed>;
      try {
        sent = streamed(events);
      } catch (error) {
        assert.ok(error instanceof ApiError, "an error, or an end without output");
        return;
      }
      if (sent.some(({ event }) => event === "message_start")) assembleMessage(sent);
    }),
  ));

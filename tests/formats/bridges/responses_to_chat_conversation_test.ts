import assert from "node:assert/strict";
import { chatRequest } from "../../support/responses_bridge.ts";

const user = (content: unknown) => ({ role: "user", content });
const fn = (name: string, more: object = {}) => ({ type: "function", name, ...more });
const call = (call_id: string, more: object = {}) => ({
  type: "function_call",
  call_id,
  name: "f",
  arguments: "{}",
  ...more,
});
const output = (call_id: string, output: unknown = "done") => ({
  type: "function_call_output",
  call_id,
  output,
});
const chatCall = (id: string, name = "f", args = "{}") => ({
  id,
  type: "function",
  function: { name, arguments: args },
});
const toolMessage = (tool_call_id: string, content: unknown = "done") => ({
  role: "tool",
  tool_call_id,
  content,
});
const own = (text: string, field = "reasoning_content") => ({
  type: "reasoning",
  id: "rs_1",
  summary: [],
  encrypted_content: `chat.${field}:${text}`,
});

const conversations: [string, object, unknown[]][] = [
  ["a text", { input: "Hi" }, [user("Hi")]],
  ["instructions lead as a system message", { instructions: "Be kind" }, [
    { role: "system", content: "Be kind" },
    user("Hi"),
  ]],
  ["every system and developer message joins the first", {
    instructions: "A",
    input: [
      { type: "message", role: "developer", content: [{ type: "input_text", text: "B" }] },
      user("Hi"),
      { role: "system", content: "C" },
    ],
  }, [{ role: "system", content: "A\n\nB\n\nC" }, user("Hi")]],
  ["one text part is a text, several stay parts", {
    input: [
      user([{ type: "input_text", text: "one" }]),
      user([{ type: "input_text", text: "one" }, { type: "input_text", text: "two" }]),
    ],
  }, [user("one"), user([{ type: "text", text: "one" }, { type: "text", text: "two" }])]],
  ["images, sounds and files", {
    input: [user([
      { type: "input_image", image_url: "https://x.test/a.png", detail: "high" },
      { type: "input_image", image_url: "data:image/png;base64,AA", detail: "auto" },
      { type: "input_audio", input_audio: { data: "AA", format: "wav" } },
      { type: "input_file", filename: "a.pdf", file_data: "data:application/pdf;base64,AA" },
    ])],
  }, [user([
    { type: "image_url", image_url: { url: "https://x.test/a.png", detail: "high" } },
    { type: "image_url", image_url: { url: "data:image/png;base64,AA" } },
    { type: "input_audio", input_audio: { data: "AA", format: "wav" } },
    { type: "file", file: { filename: "a.pdf", file_data: "data:application/pdf;base64,AA" } },
  ])]],
  ["earlier answers and refusals are the assistant's text", {
    input: [
      user("a"),
      {
        type: "message",
        id: "msg_1",
        status: "completed",
        role: "assistant",
        content: [{ type: "output_text", text: "b", annotations: [] }],
      },
      user("c"),
      { role: "assistant", content: [{ type: "refusal", refusal: "no" }] },
      user("d"),
    ],
  }, [
    user("a"),
    { role: "assistant", content: "b" },
    user("c"),
    { role: "assistant", content: "no" },
    user("d"),
  ]],
  ["several calls beside a text are one message, before their outputs", {
    input: [
      user("a"),
      { role: "assistant", content: "Let me look." },
      call("1"),
      call("2"),
      output("2"),
      output("1", [{ type: "input_text", text: "x" }, { type: "input_text", text: "y" }]),
    ],
  }, [
    user("a"),
    {
      role: "assistant",
      content: "Let me look.",
      tool_calls: [chatCall("1"), chatCall("2")],
    },
    toolMessage("2"),
    toolMessage("1", "x\ny"),
  ]],
  ["calls one after the other are messages of their own", {
    input: [user("a"), call("1"), output("1"), call("2"), output("2")],
  }, [
    user("a"),
    { role: "assistant", content: null, tool_calls: [chatCall("1")] },
    toolMessage("1"),
    { role: "assistant", content: null, tool_calls: [chatCall("2")] },
    toolMessage("2"),
  ]],
  ["an output follows its call, also when a message came between", {
    input: [user("a"), call("1"), user("b"), output("1")],
  }, [
    user("a"),
    { role: "assistant", content: null, tool_calls: [chatCall("1")] },
    toolMessage("1"),
    user("b"),
  ]],
  ["images and files of outputs are a user's message behind all outputs", {
    input: [
      call("1"),
      call("2"),
      output("1", [{ type: "input_text", text: "x" }, {
        type: "input_image",
        image_url: "data:x",
        detail: "auto",
      }]),
      output("2", [{ type: "input_file", file_data: "data:y", filename: "y.pdf" }]),
      call("3"),
    ],
  }, [
    { role: "assistant", content: null, tool_calls: [chatCall("1"), chatCall("2")] },
    toolMessage("1", "x"),
    toolMessage("2", ""),
    {
      role: "user",
      content: [
        { type: "text", text: "[result of 1]" },
        { type: "image_url", image_url: { url: "data:x" } },
        { type: "text", text: "[result of 2]" },
        { type: "file", file: { filename: "y.pdf", file_data: "data:y" } },
      ],
    },
    { role: "assistant", content: null, tool_calls: [chatCall("3")] },
  ]],
  ["they are part of the message that the user sends next, also of custom tools", {
    input: [
      { type: "custom_tool_call", call_id: "1", name: "f", input: "x" },
      {
        type: "custom_tool_call_output",
        call_id: "1",
        output: [{ type: "input_image", image_url: "data:x" }],
      },
      user("a"),
    ],
  }, [
    { role: "assistant", content: null, tool_calls: [chatCall("1", "f", '{"input":"x"}')] },
    toolMessage("1", ""),
    {
      role: "user",
      content: [
        { type: "text", text: "[result of 1]" },
        { type: "image_url", image_url: { url: "data:x" } },
        { type: "text", text: "a" },
      ],
    },
  ]],
  ["custom calls and calls in a group, by their names upstream", {
    tools: [
      { type: "custom", name: "patch" },
      { type: "namespace", name: "crm", description: "CRM", tools: [fn("find")] },
    ],
    input: [
      { type: "custom_tool_call", call_id: "1", name: "patch", input: 'a "b"' },
      call("2", { name: "find", namespace: "crm" }),
      call("3", { name: "gone", namespace: "old" }),
      { type: "custom_tool_call_output", call_id: "1", output: "ok" },
    ],
  }, [
    {
      role: "assistant",
      content: null,
      tool_calls: [
        chatCall("1", "patch", '{"input":"a \\"b\\""}'),
        chatCall("2", "crm__find"),
        chatCall("3", "old__gone"),
      ],
    },
    toolMessage("1", "ok"),
  ]],
  ["our own reasoning goes back by its own name, of the current turn and beside every call", {
    input: [
      user("a"),
      own("old"),
      call("1"),
      output("1"),
      call("0"),
      output("0"),
      own("of a text"),
      { role: "assistant", content: "x" },
      user("b"),
      own("new"),
      call("2"),
    ],
  }, [
    user("a"),
    { role: "assistant", content: null, reasoning_content: "old", tool_calls: [chatCall("1")] },
    toolMessage("1"),
    { role: "assistant", content: null, reasoning_content: "", tool_calls: [chatCall("0")] },
    toolMessage("0"),
    { role: "assistant", content: "x" },
    user("b"),
    {
      role: "assistant",
      content: null,
      reasoning_content: "new",
      tool_calls: [chatCall("2")],
    },
  ]],
  ["that of all turns, where the request asks for it", {
    reasoning: { context: "all_turns" },
    input: [user("a"), own("old", "reasoning"), { role: "assistant", content: "x" }, user("b")],
  }, [user("a"), { role: "assistant", content: "x", reasoning: "old" }, user("b")]],
  ["other servers' reasoning is left out", {
    input: [
      user("a"),
      { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "gAAAA" },
      { type: "reasoning", id: "rs_2", summary: [{ type: "summary_text", text: "x" }] },
      { role: "assistant", content: "b" },
    ],
  }, [user("a"), { role: "assistant", content: "b" }]],
];
for (const [what, body, messages] of conversations) {
  Deno.test(`responses to chat: ${what}`, () => {
    assert.deepEqual(chatRequest(body).messages, messages);
  });
}

import assert from "node:assert/strict";
import { ApiError } from "../../../src/base/errors.ts";
import { chatRequest } from "../../support/responses_bridge.ts";

const user = (content: unknown) => ({ role: "user", content });
const fn = (name: string, more: object = {}) => ({ type: "function", name, ...more });
const call = { type: "function_call", call_id: "1", name: "f", arguments: "{}" };
const output = { type: "function_call_output", call_id: "1", output: "done" };
const tools = [fn("a")];

const refused: [string, object, string][] = [
  ["a previous response", { previous_response_id: "resp_1" }, "previous_response_id"],
  ["a previous response of an output", {
    previous_response_id: "resp_1",
    input: [output],
  }, "previous_response_id"],
  ["a conversation", { conversation: "conv_1" }, "conversation"],
  ["a prompt", { prompt: { id: "p" } }, "prompt"],
  ["a reference without its type", { input: [{ type: null, id: "msg_1" }] }, "input.0"],
  ["a reference", { input: [{ type: "item_reference", id: "msg_1" }] }, "input.0"],
  ["truncation", { truncation: "last" }, "truncation"],
  ["background", { background: true }, "background"],
  ["a request to compact", { input: [{ type: "compaction_trigger" }] }, "input.0"],
  ["context management", { context_management: [{ type: "compaction" }] }, "context_management"],
  ["moderation", { moderation: { model: "m" } }, "moderation"],
  ["several choices", { n: 3 }, "n"],
  ["messages", { messages: [] }, "messages"],
  ["an unknown field", { to_be_invented: 1 }, "to_be_invented"],
  ["an unknown include", { include: ["x"] }, "include.0"],
  ["a hosted tool", { tools: [{ type: "web_search" }] }, "tools.0.type"],
  ["a local shell", { tools: [fn("a"), { type: "local_shell" }] }, "tools.1.type"],
  ["a tool within a group", {
    tools: [{ type: "namespace", name: "n", tools: [{ type: "computer" }] }],
  }, "tools.0.tools.0.type"],
  ["a deferred tool", { tools: [fn("a", { defer_loading: true })] }, "tools.0.defer_loading"],
  ["a tool of programs alone", {
    tools: [fn("a", { allowed_callers: ["programmatic"] })],
  }, "tools.0.allowed_callers"],
  ["a choice of a hosted tool", { tools, tool_choice: { type: "web_search" } }, "tool_choice"],
  ["a choice of no tool", {
    tools,
    tool_choice: { type: "function", name: "b" },
  }, "tool_choice"],
  ["a forced call without tools", { tool_choice: "required" }, "tool_choice"],
  ["an unknown item", { input: [{ type: "computer_call" }] }, "input.0"],
  ["an unknown part", { input: [user([{ type: "input_video" }])] }, "input.0.content.0"],
  ["an image of instructions", {
    input: [{ role: "developer", content: [{ type: "input_image", image_url: "data:x" }] }],
  }, "input.0.content.0"],
  ["an image by its id", {
    input: [user([{ type: "input_image", file_id: "file_1" }])],
  }, "input.0.content.0.file_id"],
  ["a file by its id", {
    input: [user([{ type: "input_file", file_id: "file_1" }])],
  }, "input.0.content.0.file_id"],
  ["a file by its address", {
    input: [user([{ type: "input_file", file_url: "https://x.test" }])],
  }, "input.0.content.0.file_url"],
  ["an output without its call", { input: [output] }, "input.0.call_id"],
  ["a call without arguments", { input: [{ ...call, arguments: 1 }] }, "input.0.arguments"],
  ["an unknown role", { input: [{ role: "tool", content: "x" }] }, "input.0.role"],
  ["no input", { input: null }, "input"],
  ["items that are none", { input: ["x"] }, "input.0"],
  ["an unknown format", { text: { format: { type: "grammar" } } }, "text.format"],
  ["a mode of reasoning", { reasoning: { mode: "pro" } }, "reasoning.mode"],
];
for (const [what, body, param] of refused) {
  Deno.test(`responses to chat: ${what} is 400 and named`, () => {
    assert.throws(() => chatRequest(body), (error) => {
      assert.ok(error instanceof ApiError, String(error));
      assert.deepEqual([error.status, error.param], [400, param]);
      return true;
    });
  });
}

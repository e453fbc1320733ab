import { chatToMessages } from "../../../src/formats/bridges/chat_to_messages/bridge.ts";
import type { Body } from "../../support/world.ts";
import { assertRefused } from "./support.ts";

const user = { role: "user", content: "Hi" };
const ask = (more: Body = {}): Body => ({ model: "m", messages: [user], ...more });
const call = (id: string, args = '{"a":1}') => ({
  id,
  type: "function",
  function: { name: "f", arguments: args },
});
const said = (...content: unknown[]) => ({ role: "user", content });
const tool = { type: "function", function: { name: "f", parameters: { type: "object" } } };
const image = (url: string) => ({ type: "image_url", image_url: { url } });
const file = (fields: Body) => ({ type: "file", file: fields });

const refused: [string, Body][] = [
  ["n", { n: 2 }],
  ["temperature", { temperature: 1.2 }],
  ["logprobs", { logprobs: true }],
  ["logit_bias", { logit_bias: { 5: 1 } }],
  ["presence_penalty", { presence_penalty: 0.1 }],
  ["frequency_penalty", { frequency_penalty: -1 }],
  ["seed", { seed: 1 }],
  ["audio", { audio: { voice: "x" } }],
  ["modalities", { modalities: ["text", "audio"] }],
  ["web_search_options", { web_search_options: {} }],
  ["min_p", { min_p: 0.1 }],
  ["verbosity", { verbosity: "low" }],
  ["service_tier", { service_tier: "flex" }],
  ["response_format.type", { response_format: { type: "grammar" } }],
  ["response_format.json_schema.schema", {
    response_format: { type: "json_schema", json_schema: {} },
  }],
  ["tools.0.type", { tools: [{ type: "web_search_20250305" }] }],
  ["tool_choice", { tools: [tool], tool_choice: { type: "allowed_tools" } }],
  ["functions", { tools: [tool], functions: [{ name: "g" }] }],
  ["functions.0.name", { functions: [{}] }],
  ["tools.0.custom.format", {
    tools: [{ type: "custom", custom: { name: "f", format: { type: "regex" } } }],
  }],
  ["tool_choice", { tools: [tool], tool_choice: { type: "function", function: { name: "g" } } }],
  ["messages.0.name", { messages: [{ role: "function", name: "f", content: "x" }] }],
  ["messages.0.role", { messages: [{ role: "narrator", content: "x" }] }],
  ["messages.1.role", { messages: [user, { role: "assistant", content: "A" }] }],
  ["messages.0.audio", { messages: [{ role: "assistant", audio: { id: "a" } }, user] }],
  ["messages.0.tool_calls.0.function.arguments", {
    messages: [{ role: "assistant", tool_calls: [call("a", "{")] }, user],
  }],
  ["messages.0.tool_calls.0.type", {
    messages: [{ role: "assistant", tool_calls: [{ id: "a", type: "mcp" }] }, user],
  }],
  ["messages.0.tool_call_id", { messages: [{ role: "tool", content: "x" }] }],
  ["messages.0.content.0.type", { messages: [said({ type: "input_audio", input_audio: {} })] }],
  ["messages.0.content.0.image_url.url", { messages: [said(image("file:///etc/passwd"))] }],
  ["messages.0.content.0.file.file_id", { messages: [said(file({ file_id: "f" }))] }],
  ["messages.0.content.0.file.file_data", {
    messages: [said(file({ file_data: "data:audio/mp3;base64,aGk=" }))],
  }],
  ["messages.0.content", {
    messages: [{ role: "system", content: [image("https://x.test/a")] }, user],
  }],
  ["messages", { messages: [{ role: "user", content: "" }] }],
];
for (const [param, body] of refused) {
  Deno.test(`chat to messages: ${JSON.stringify(body).slice(0, 90)} is 400 by name`, () =>
    assertRefused(chatToMessages, ask(body), param));
}

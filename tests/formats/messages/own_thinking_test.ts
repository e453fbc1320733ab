import assert from "node:assert/strict";
import { writeMessagesBody } from "../../../src/formats/messages/upstream_body.ts";
import { requestOf } from "../bridges/support.ts";

const noBound = { maxTokens: Infinity, contextLeft: Infinity };
const use = { type: "tool_use", id: "t1", name: "f", input: {} };
const thinking = (signature: string) => ({ type: "thinking", thinking: "hm", signature });

Deno.test("messages: Anthropic gets its own thinking back, and none that a chat server wrote", () => {
  const turns = (content: unknown[]) => [
    { role: "user", content: "Hi" },
    { role: "assistant", content },
    { role: "user", content: [{ type: "tool_result", tool_use_id: "t1" }] },
  ];
  const all = [thinking("EqQB"), thinking("reasoning_content"), thinking("reasoning:hm"), use];
  const request = requestOf({ model: "m", messages: turns(all) });
  const { messages } = JSON.parse(writeMessagesBody(request, 100, noBound));
  assert.deepEqual(messages, turns([thinking("EqQB"), use]));
});

import assert from "node:assert/strict";
import type { Json } from "../../src/base/json.ts";
import { messagesToChat } from "../../src/formats/bridges/messages_to_chat/bridge.ts";
import { responsesToChat } from "../../src/formats/bridges/responses_to_chat/bridge.ts";
import type { Body } from "../support/world.ts";
import { assembleMessage, optionsOf, translated } from "./bridges/support.ts";

/** What a response says, whatever the form in which it came. */
export interface Said {
  text?: string;
  /** Name and arguments of each call; ids are checked to differ. */
  calls?: [name: string, args: string][];
  ids?: string[];
  finish?: string;
  thinking?: string;
}

/** A stream of chunks as OpenAI's client puts it together, which joins every text. */
export function joined(events: Body[], index = 0): Said {
  let text = "";
  let thinking = "";
  let finish = "";
  const calls: { id: string; name: string; args: string }[] = [];
  let isFirst = true;
  for (const { choices = [] } of events) {
    for (const choice of choices) {
      assert.equal(typeof choice.index, "number", "a choice has a number");
      if (choice.index !== index) continue;
      const { delta, finish_reason } = choice;
      if (isFirst) assert.equal(delta.role, "assistant", "the first delta has its role");
      isFirst = false;
      assert.ok(["assistant", undefined].includes(delta.role), `role ${delta.role}`);
      assert.equal(delta.function_call, undefined);
      text += plain(delta.content);
      thinking += plain(delta.reasoning_content);
      finish += finish_reason ?? "";
      for (const call of delta.tool_calls ?? []) {
        assert.equal(typeof call.index, "number", "a call has a number");
        const known = calls[call.index];
        if (!known) {
          assert.equal(call.index, calls.length, "calls are numbered in order");
          assert.ok(call.id, "a call has an id");
          assert.equal(call.type, "function");
          assert.ok(call.function.name, "a call has a name");
        }
        const before = known ?? { id: "", name: "", args: "" };
        calls[call.index] = {
          id: before.id + (call.id ?? ""),
          name: before.name + (call.function.name ?? ""),
          args: before.args + plain(call.function.arguments),
        };
      }
    }
  }
  return said({ text, thinking, calls, finish });
}

export function wholeChat({ choices: [choice] }: Body): Said {
  assert.equal(choice.index, 0);
  const { message, finish_reason } = choice;
  assert.equal(message.role, "assistant");
  assert.ok("content" in message && "refusal" in message);
  const calls = (message.tool_calls ?? []).map(({ id, type, function: called }: Body) => {
    assert.equal(type, "function");
    return { id, name: called.name, args: called.arguments };
  });
  const { content: text, reasoning_content: thinking } = message;
  return said({ text: plain(text), thinking: plain(thinking), calls, finish: finish_reason });
}

export const thinks = { max_tokens: 9, thinking: { type: "enabled", budget_tokens: 5 } };

export function asResponses(chunks: unknown[]): Said {
  const events = translated(responsesToChat, [...chunks, "[DONE]"], optionsOf({}, "resp_1"));
  return asResponse(JSON.parse(events.at(-1)?.data ?? "").response);
}

export function asResponse({ output, status }: Body): Said {
  const of = (type: string) => output.filter((item: Body) => item.type === type);
  const parts = (items: Body[]) => items.flatMap(({ content }) => content);
  const texts = (items: Body[]) => parts(items).map(({ text }: Body) => text).join("");
  const calls = of("function_call").map((call: Body) => ({
    id: call.call_id,
    name: call.name,
    args: call.arguments,
  }));
  const finish = status === "incomplete" ? "length" : calls.length > 0 ? "tool_calls" : "stop";
  return said({ text: texts(of("message")), thinking: texts(of("reasoning")), calls, finish });
}

export function asMessages(chunks: unknown[]): Said {
  return asMessage(
    assembleMessage(translated(messagesToChat, [...chunks, "[DONE]"], optionsOf(thinks))),
  );
}

const stopReasons: Record<string, string> = { end_turn: "stop", tool_use: "tool_calls" };

export function asMessage({ content, stop_reason }: Body): Said {
  const texts = (type: string, field: string) =>
    content.filter((block: Body) => block.type === type).map((block: Body) => block[field]).join(
      "",
    );
  const calls = content.filter(({ type }: Body) => type === "tool_use")
    .map(({ id, name, input }: Body) => ({ id, name, args: JSON.stringify(input) }));
  const finish = stopReasons[stop_reason] ?? "length";
  return said({
    text: texts("text", "text"),
    thinking: texts("thinking", "thinking"),
    calls,
    finish,
  });
}

function said(
  { text, thinking, calls, finish }: {
    text: string;
    thinking: string;
    calls: { id: string; name: string; args: string }[];
    finish: string;
  },
): Said {
  const ids = calls.map(({ id }) => id);
  return { text, thinking, calls: calls.map(({ name, args }) => [name, args]), ids, finish };
}

export function assertSaid(found: Said, expected: Said, where = ""): void {
  const { ids, ...others } = found;
  const whole = { text: "", thinking: "", calls: [], finish: "stop", ...expected };
  const { ids: expectedIds, ...rest } = whole;
  assert.deepEqual(others, rest, where);
  assert.equal(new Set(ids).size, ids?.length, "each call has an id of its own");
  if (expectedIds) assert.deepEqual(ids, expectedIds, where);
}

function plain(value: Json | undefined): string {
  assert.ok(value === undefined || value === null || typeof value === "string", "a text");
  return value ?? "";
}

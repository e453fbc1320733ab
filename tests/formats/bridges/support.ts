import assert from "node:assert/strict";
import type { EventSourceMessage } from "eventsource-parser";
import type { Bridge, BridgeOptions } from "../../../src/inference/format.ts";
import type { ModelRequest } from "../../../src/inference/model_request.ts";
import type { Dialect } from "../../../src/upstreams/dialect.ts";
import type { ApiError } from "../../../src/base/errors.ts";
import type { Body } from "../../support/world.ts";

/** A validated request with this body; only what a bridge reads is set by it. */
export function requestOf(body: Body): ModelRequest {
  return {
    model: "m",
    stream: body.stream ?? false,
    wantsUsage: false,
    choices: 1,
    maxTokens: body.max_tokens ?? null,
    structured: false,
    requiresJson: false,
    asksReasoning: false,
    thinkingBudget: null,
    extras: {
      serviceTier: null,
      modalities: null,
      hostedTools: [],
      maxToolCalls: null,
      searchContext: null,
      hourCache: false,
    },
    user: undefined,
    body,
    bytes: JSON.stringify(body).length,
  };
}

export const chatDialect: Dialect = {
  format: "chat",
  requestsUsage: true,
  maxTokensField: "max_tokens",
  maxTokens: Infinity,
  contextLeft: Infinity,
  prefill: null,
};

export function optionsOf(body: Body, id = "msg_1"): BridgeOptions {
  return { request: requestOf(body), head: { id, created: 1, model: "m" }, apiKey: null };
}

/** The body that a bridge writes for its upstream. */
export function written(bridge: Bridge, body: Body, dialect: Partial<Dialect> = {}): Body {
  return JSON.parse(bridge.writeBody(requestOf(body), 100, { ...chatDialect, ...dialect }));
}

/** Asserts that a bridge refuses a body with 400, and names the field. */
export function assertRefused(bridge: Bridge, body: Body, param: string): void {
  assert.throws(() => bridge.writeBody(requestOf(body), 100, chatDialect), (error: ApiError) => {
    assert.deepEqual([error.status, error.param], [400, param]);
    assert.ok(error.message.includes(param), error.message);
    return true;
  });
}

export function wholeOf(bridge: Bridge, response: unknown, options: BridgeOptions): Body {
  const bytes = new TextEncoder().encode(
    typeof response === "string" ? response : JSON.stringify(response),
  );
  return JSON.parse(new TextDecoder().decode(bridge.translateWhole(bytes, options)));
}

/** What a bridge makes of a stream: strings are data as they stand. */
export function translated(
  bridge: Bridge,
  events: readonly unknown[],
  options: BridgeOptions,
): EventSourceMessage[] {
  const translator = bridge.createTranslator(options);
  const sent = events.flatMap((event) =>
    translator.take({
      data: typeof event === "string" ? event : JSON.stringify(event),
      event: undefined,
      id: undefined,
    })
  );
  return [...sent, ...translator.end()];
}

/**
 * Puts the events of Anthropic's stream together as its message, and asserts their order: blocks
 * one after the other, each delta inside of its block, one end.
 */
export function assembleMessage(events: readonly EventSourceMessage[]): Body {
  let message: Body | null = null;
  let open: Body | null = null;
  let json = "";
  let ended = false;
  for (const { data, event } of events) {
    const sent = JSON.parse(data);
    assert.equal(event, sent.type, "an event is named by its type");
    if (sent.type === "ping" || sent.type === "error") continue;
    if (sent.type === "message_start") {
      assert.equal(message, null, "one start");
      message = sent.message;
      continue;
    }
    assert.ok(message, "nothing comes before the start");
    if (ended) assert.equal(sent.type, "message_delta", "only late usage comes after the end");
    const { content } = message;
    switch (sent.type) {
      case "content_block_start":
        assert.equal(open, null, "one block at a time");
        assert.equal(sent.index, content.length, "blocks are numbered in order");
        content.push(open = sent.content_block);
        json = "";
        break;
      case "content_block_delta": {
        assert.equal(sent.index, content.length - 1, "a delta is of the open block");
        assert.ok(open, "a delta is inside of a block");
        const { text, thinking, signature, partial_json: part } = sent.delta;
        if (text !== undefined) open.text += text;
        if (thinking !== undefined) open.thinking += thinking;
        if (signature !== undefined) open.signature += signature;
        if (part !== undefined) json += part;
        break;
      }
      case "content_block_stop":
        assert.ok(open);
        if (open.type === "tool_use") {
          try {
            open.input = json === "" ? {} : JSON.parse(json);
          } catch {
            open.input = json;
          }
        }
        open = null;
        break;
      case "message_delta":
        assert.equal(open, null, "every block has ended");
        Object.assign(message, sent.delta);
        Object.assign(message.usage, sent.usage);
        break;
      case "message_stop":
        ended = true;
        break;
      default:
        assert.fail(`an unknown event: ${sent.type}`);
    }
  }
  return message ?? assert.fail("a stream without a message");
}

/** A message as the events of Anthropic's stream, its texts in pieces of this many characters. */
export function eventsOf({ content, usage, stop_reason, ...head }: Body, size = 4): Body[] {
  const events: Body[] = [{
    type: "message_start",
    message: { ...head, content: [], stop_reason: null, usage: { ...usage, output_tokens: 1 } },
  }, { type: "ping" }];
  for (const [index, block] of content.entries()) {
    const { text, thinking, signature, input } = block;
    const empty = { ...block };
    for (const name of ["text", "thinking", "signature"]) if (name in empty) empty[name] = "";
    if (input !== undefined) empty.input = {};
    events.push({ type: "content_block_start", index, content_block: empty });
    const delta = (delta: Body) => events.push({ type: "content_block_delta", index, delta });
    for (const piece of pieces(text, size)) delta({ type: "text_delta", text: piece });
    for (const piece of pieces(thinking, size)) delta({ type: "thinking_delta", thinking: piece });
    if (signature) delta({ type: "signature_delta", signature });
    const json = input === undefined ? undefined : JSON.stringify(input);
    for (const piece of pieces(json, size)) {
      delta({ type: "input_json_delta", partial_json: piece });
    }
    events.push({ type: "content_block_stop", index });
  }
  events.push({
    type: "message_delta",
    delta: { stop_reason, stop_sequence: null },
    usage: { output_tokens: usage?.output_tokens },
  }, { type: "message_stop" });
  return events;
}

function pieces(text: string | undefined, size: number): string[] {
  const parts = [];
  for (let at = 0; at < (text ?? "").length; at += size) {
    parts.push((text ?? "").slice(at, at + size));
  }
  return parts;
}

/** Events as the text of a stream. */
export function framesOf(events: readonly Body[]): string {
  return events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("");
}

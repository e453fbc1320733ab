import { createParser } from "eventsource-parser";
import { parseJson } from "../../src/base/json.ts";
import { Secret } from "../../src/base/secret.ts";
import type { BridgeOptions } from "../../src/inference/format.ts";
import type { ModelRequest } from "../../src/inference/model_request.ts";
import type { Dialect } from "../../src/upstreams/dialect.ts";
import { responsesToChat } from "../../src/formats/bridges/responses_to_chat/bridge.ts";
import { isObject, type JsonObject } from "../../src/base/json.ts";

// deno-lint-ignore no-explicit-any -- what a test reads of a body, it asserts
export type Parsed = any;

/** A request of `/responses` as the format gives it to a bridge. */
export function bridgeRequest(body: object): ModelRequest {
  const sent = parseJson(JSON.stringify({ model: "test-model", input: "Hi", ...body }));
  if (!isObject(sent)) throw new Error("a body is an object");
  return {
    model: String(sent.model),
    stream: sent.stream === true,
    wantsUsage: true,
    choices: 1,
    maxTokens: null,
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
    user: null,
    body: sent,
    bytes: 0,
  };
}

export const plainDialect: Dialect = {
  format: "chat",
  requestsUsage: true,
  maxTokensField: "max_tokens",
  maxTokens: Infinity,
  contextLeft: Infinity,
  prefill: null,
};

/** The chat request that a request becomes. */
export function chatRequest(body: object, dialect: Partial<Dialect> = {}): Parsed {
  const text = responsesToChat.writeBody(bridgeRequest(body), 100, { ...plainDialect, ...dialect });
  return JSON.parse(text);
}

export const upstreamKey = "sk-upstream-secret";

export function bridgeOptions(body: object = {}): BridgeOptions {
  const head = { id: "resp_01ABC", created: 1_767_225_600, model: "test-model" };
  return { request: bridgeRequest(body), head, apiKey: new Secret(upstreamKey) };
}

/** The response that a chat completion becomes. */
export function wholeResponseOf(completion: object, body: object = {}): Parsed {
  const bytes = new TextEncoder().encode(JSON.stringify(completion));
  const translated = responsesToChat.translateWhole(bytes, bridgeOptions(body));
  return JSON.parse(new TextDecoder().decode(translated));
}

/** A chat completion with this message. */
export function completionOf(message: object, more: JsonObject = {}): JsonObject {
  const { finish_reason = "stop", ...rest } = more;
  return {
    id: "chatcmpl-up",
    object: "chat.completion",
    created: 1,
    model: "served-model",
    choices: [{ index: 0, message: { role: "assistant", ...message }, finish_reason }],
    usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
    ...rest,
  };
}

/** The events that a stream becomes, where it arrives in these pieces of text. */
export function eventsOf(pieces: Iterable<string>, body: object = {}): Parsed[] {
  const translator = responsesToChat.createTranslator(bridgeOptions({ stream: true, ...body }));
  const events: Parsed[] = [];
  const add = (translated: ReturnType<typeof translator.take>) => {
    for (const { event, data } of translated) {
      const parsed = JSON.parse(data);
      if (parsed.type !== event) throw new Error(`${event} is not ${parsed.type}`);
      events.push(parsed);
    }
  };
  const parser = createParser({
    onEvent: ({ data, event, id }) => add(translator.take({ data, event, id })),
  });
  for (const piece of pieces) parser.feed(piece);
  add(translator.end());
  return events;
}

/** A stream of these chunks: objects become JSON, strings are data as they stand. */
export function chatStreamText(chunks: readonly unknown[], done = true): string {
  return [...chunks, ...(done ? ["[DONE]"] : [])].map((chunk) =>
    `data: ${typeof chunk === "string" ? chunk : JSON.stringify(chunk)}\n\n`
  ).join("");
}

import type { EventSourceMessage } from "eventsource-parser";
import { isObject, type Json, type JsonObject } from "../../base/json.ts";
import { encodeUtf8 } from "../../base/utf8.ts";
import type { Bridge, BridgeOptions, EventTranslator } from "../../inference/format.ts";
import type { ModelRequest } from "../../inference/model_request.ts";
import type { Dialect } from "../../upstreams/dialect.ts";
import { chatChoice } from "../chat/choice.ts";
import type { ChoiceMender } from "../openai/choice_shape.ts";
import { harmlessFields } from "../openai/known_fields.ts";
import { readChoicesBody } from "../openai/response.ts";
import { isErrorChunk, parsedChunk } from "../openai/stream_error.ts";
import { invalidUpstreamResponse } from "../../upstreams/errors.ts";
import { fieldRules, isEmpty, isOneOf, notCarried, requireCarried } from "./carried_fields.ts";
import { bridgedMender } from "./chat_reading.ts";
import { chatUpstream } from "./chat_upstream.ts";
import { sentEvent } from "./sent_event.ts";

/** Fields that mean the same in a chat. */
const same = [
  "model n temperature top_p stop seed presence_penalty frequency_penalty user service_tier",
  "safety_identifier",
  ...harmlessFields,
].join(" ");
const bodyRules = fieldRules({
  carried: `prompt max_tokens stream ${same}`,
  dropped: "stream_options usage",
  unless: {
    best_of: isOneOf(1),
    echo: isOneOf(false),
    suffix: isOneOf(""),
    logit_bias: isEmpty,
  },
});

/** Serves callers of legacy completions from an upstream that only speaks chat completions. */
export const completionsToChat: Bridge = {
  format: chatUpstream,
  writeBody: writeBodyAsChat,
  translateWhole: toTextCompletion,
  createTranslator: (options) => new TextChunkTranslator(options),
};

/** Throws 400 for what a chat cannot carry: several prompts, token ids, a suffix, an echo. */
function writeBodyAsChat({ body, stream }: ModelRequest, cap: number, dialect: Dialect): string {
  requireCarried(body, bodyRules);
  const prompt = Array.isArray(body.prompt) && body.prompt.length === 1
    ? body.prompt[0]
    : body.prompt;
  if (typeof prompt !== "string") throw notCarried("prompt");
  const sent: JsonObject = {};
  for (const name of same.split(" ")) {
    const value = body[name];
    if (value !== undefined && value !== null) sent[name] = value;
  }
  return JSON.stringify({
    ...sent,
    messages: [{ role: "user", content: prompt }],
    [dialect.maxTokensField]: Math.min(cap, dialect.maxTokens, dialect.contextLeft),
    stream: stream ? true : undefined,
    stream_options: stream && dialect.requestsUsage ? { include_usage: true } : undefined,
  });
}

function toTextCompletion(bytes: Uint8Array, options: BridgeOptions): Uint8Array {
  const { head, apiKey } = options;
  const { body, choices: all } = readChoicesBody(bytes, apiKey);
  const choices = all.map((sent, position) => {
    const choice = chatChoice.normalizeChoice(sent, position, options);
    if (!choice) throw invalidUpstreamResponse("a choice without a message");
    return toTextChoice(choice, choice.message);
  });
  const named = { id: head.id, created: head.created, model: head.model };
  return encodeUtf8(JSON.stringify({ ...named, ...body, object: "text_completion", choices }));
}

function toTextChoice({ index = 0, finish_reason: reason }: JsonObject, said: Json | undefined) {
  return { index, text: textOf(said), logprobs: null, finish_reason: reason ?? null };
}

/** The text of a message or a delta, or its refusal; completions have no place for reasoning. */
function textOf(message: Json | undefined): string {
  const { content, refusal } = isObject(message) ? message : {};
  if (typeof content === "string" && content !== "") return content;
  return typeof refusal === "string" ? refusal : "";
}

/** Turns the chunks of a chat into those of a legacy completion. */
class TextChunkTranslator implements EventTranslator {
  readonly #head: JsonObject;
  readonly #mender: ChoiceMender;

  constructor(options: BridgeOptions) {
    const { head: { id, created, model } } = options;
    this.#mender = bridgedMender(options);
    this.#head = { id, created, model };
  }

  take(event: EventSourceMessage): EventSourceMessage[] {
    const chunk = parsedChunk(event.data);
    if (event.data === "[DONE]" || isErrorChunk(event.event, chunk)) return [event];
    if (!isObject(chunk)) return [];
    const sent = Array.isArray(chunk.choices) ? chunk.choices : [];
    const choices = sent.flatMap((each, position) => {
      const choice = this.#mender.mend(each, position);
      return choice ? [toTextChoice(choice, choice.delta)] : [];
    });
    return [sentEvent({ ...this.#head, ...chunk, object: "text_completion", choices })];
  }

  end(): EventSourceMessage[] {
    return [];
  }
}

import type { EventSourceMessage } from "eventsource-parser";
import { type Json, type JsonObject, plainText } from "../../base/json.ts";
import type { Secret } from "../../base/secret.ts";
import type { BalanceNotice } from "../../inference/notice.ts";
import type { ModelRequest } from "../../inference/model_request.ts";
import type { CompleteResponse, ResponseHead } from "../../inference/upstream_response.ts";
import { invalidUpstreamResponse } from "../../upstreams/errors.ts";
import { readResponseBody } from "../openai/response.ts";
import {
  blockEvents,
  blockTexts,
  hasAnswer,
  hasContent,
  isToolUse,
  responseBlocks,
} from "./blocks.ts";
import { noticeAfter, reasonWithNotice } from "./ending.ts";
import {
  billedUnlessRefused,
  billedUsage,
  messageServedBy,
  usageOf,
  withToolCalls,
} from "./usage.ts";

/** The request, the ids and the key with which a response is read. */
export interface ReadingOptions {
  request: ModelRequest;
  head: ResponseHead;
  apiKey: Secret | null;
}

/**
 * Reads a message, and adds what clients rely on where an upstream leaves it out. Throws 502 for
 * anything else: HTML, a truncated body, an error with status 200, or a body without content.
 */
export function readMessage(bytes: Uint8Array, options: ReadingOptions): CompleteResponse {
  return messageFrom(readResponseBody(bytes, options.apiKey), options);
}

/** A complete response from a message that an upstream sent, whole or in events. */
export function messageFrom(
  body: JsonObject,
  { request, head }: Pick<ReadingOptions, "request" | "head">,
): CompleteResponse {
  const blocks = responseBlocks(body.content);
  if (!blocks) throw invalidUpstreamResponse("a message without content blocks");
  const reported = billedUnlessRefused(usageOf(body), {
    reason: body.stop_reason,
    hasContent: hasContent(blocks),
  });
  if (blocks.length === 0 && !reported) throw invalidUpstreamResponse("a message without content");
  const usage = reported && billedUsage(withToolCalls(reported, blocks));
  const whole = normalizeMessage(body, head, blocks);
  return {
    served: messageServedBy(body),
    texts: textsOf(blocks),
    images: [],
    isAnswer: () => ownEnds.has(body.stop_reason) && hasAnswer(blocks),
    usages: usage ? [usage] : [],
    write({ usage, notice, balance }) {
      const ending = withNotice(whole, blocks, { request, notice, balance });
      return JSON.stringify({ ...whole, ...ending, usage });
    },
    events: () => asEvents(whole, blocks, reported),
  };
}

/** Reasons for which the model has ended a message itself. */
const ownEnds = new Set<unknown>(["end_turn", "stop_sequence", "tool_use"]);

function* textsOf(blocks: readonly JsonObject[]): Generator<string> {
  for (const block of blocks) yield* blockTexts(block);
}

/** A message with every member that clients read, but `usage`. */
function normalizeMessage(
  { usage: _, ...body }: JsonObject,
  head: ResponseHead,
  blocks: readonly JsonObject[],
): JsonObject & { stop_reason: string } {
  const { stop_reason: reason } = body;
  const usual = blocks.some(isToolUse) ? "tool_use" : "end_turn";
  return {
    ...body,
    ...identity(body, head),
    content: [...blocks],
    stop_reason: isName(reason) ? reason : usual,
    stop_sequence: body.stop_sequence ?? null,
  };
}

/** The id and the model of a message: its own, or ours where it has none. */
export function identity({ id, model }: JsonObject, head: ResponseHead): JsonObject {
  return {
    id: isName(id) ? id : head.id,
    type: "message",
    role: "assistant",
    model: isName(model) ? model : head.model,
  };
}

/** Whether a value is a text that is not empty. */
export function isName(value: Json | undefined): value is string {
  return typeof value === "string" && value !== "";
}

/** The content and the stop reason of a message, with the notice that is due at its end. */
function withNotice(
  { stop_reason: reason }: { stop_reason: string },
  blocks: readonly JsonObject[],
  { request: { structured }, notice, balance }: {
    request: ModelRequest;
    notice: BalanceNotice;
    balance: string;
  },
): JsonObject {
  const last = blocks.at(-1);
  const text = noticeAfter(reason, last ? plainText(last.type) : null, notice)?.(balance);
  if (!text) return {};
  const isText = last?.type === "text" && typeof last.text === "string";
  const content = isText
    ? [...blocks.slice(0, -1), { ...last, text: `${last.text}${text}` }]
    : [...blocks, { type: "text", text }];
  return { content, stop_reason: reasonWithNotice(reason, { notice, structured }) };
}

/** A whole message as the events of a stream, for an upstream that answers `stream` with JSON. */
function asEvents(
  whole: JsonObject,
  blocks: readonly JsonObject[],
  usage: JsonObject | null,
): EventSourceMessage[] {
  const { stop_reason, stop_sequence, stop_details, ...rest } = whole;
  const details = stop_details === undefined ? {} : { stop_details };
  const delta = { stop_reason, stop_sequence, ...details };
  const ended = { stop_reason: null, stop_sequence: null, content: [] };
  const usages = usage ? { usage } : {};
  const message = {
    ...rest,
    ...ended,
    ...(usage ? { usage: { ...usage, output_tokens: 0 } } : {}),
  };
  const all = [
    { type: "message_start", message },
    ...blocks.flatMap((block, index) => [...blockEvents(block, index)]),
    { type: "message_delta", delta, ...usages },
    { type: "message_stop" },
  ];
  return all.map((event) => ({
    data: JSON.stringify(event),
    event: plainText(event.type),
    id: undefined,
  }));
}

import type { EventSourceMessage } from "eventsource-parser";
import { isObject, type Json, type JsonObject, nestsDeeper, parseJson } from "../../base/json.ts";
import { jsonDepthMax } from "../../base/limits.ts";
import type { Secret } from "../../base/secret.ts";
import { decodeUtf8 } from "../../base/utf8.ts";
import { type BalanceNotice, noticeFor } from "../../inference/balance_notice.ts";
import type { CompleteResponse, ResponseHead } from "../../inference/format.ts";
import { invalidUpstreamResponse, readUpstreamError, redactKey } from "../../upstreams/errors.ts";
import { normalizeChoice, normalizeHead } from "./normalize.ts";
import { outputTexts } from "./output_texts.ts";

/**
 * Reads a completion, and adds what clients rely on where a server leaves it out. Throws 502 for
 * anything else: HTML, a truncated body, an error with status 200, choices without messages, or
 * nesting too deep to be written again.
 */
export function readCompletion(
  bytes: Uint8Array,
  { head, apiKey }: { head: ResponseHead; apiKey: Secret | null },
): CompleteResponse {
  const body = readBody(bytes, apiKey);
  const choices = choicesOf(body).map((choice, position) => {
    const whole = normalizeChoice(choice, position);
    if (!whole) throw invalidUpstreamResponse("a choice without a message");
    return whole;
  });
  const completion = { ...body, ...normalizeHead(body, { ...head, object: "chat.completion" }) };
  return {
    texts: textsOf(choices),
    usage: body.usage,
    write: ({ usage, notice, balance }) =>
      JSON.stringify({ ...completion, choices: withNotice(choices, notice, balance), usage }),
    events: () => completionAsEvents({ ...completion, choices }),
  };
}

/** Parses a body. Checked before anything is charged: it must also be possible to write it again. */
function readBody(bytes: Uint8Array, apiKey: Secret | null): JsonObject {
  const text = decodeUtf8(bytes) ?? "";
  if (nestsDeeper(text, jsonDepthMax)) throw invalidUpstreamResponse("a response nested too deep");
  let value: Json;
  try {
    value = parseJson(text);
  } catch {
    throw invalidUpstreamResponse(`a response of ${bytes.length} bytes that is not JSON`);
  }
  if (!isObject(value)) throw invalidUpstreamResponse("a response without choices");
  if (value.error) {
    const { message } = readUpstreamError(200, redactKey(text, apiKey));
    throw invalidUpstreamResponse(`an error with status 200: ${message}`);
  }
  return value;
}

/** A response without any choice is valid only if it reports usage. */
function choicesOf({ choices, usage }: JsonObject): Json[] {
  if (Array.isArray(choices) && (choices.length > 0 || usage)) return choices;
  throw invalidUpstreamResponse("a response without choices");
}

function* textsOf(choices: readonly JsonObject[]): Generator<string> {
  for (const { message } of choices) yield* outputTexts(message);
}

/** The choices, each with what its reader should know about their balance at its end. */
function withNotice(
  choices: JsonObject[],
  notice: BalanceNotice,
  balance: string,
): JsonObject[] {
  if (!notice.atLength && !notice.atEnd) return choices;
  return choices.map((choice) => {
    const text = noticeFor(choice.finish_reason, notice)?.(balance);
    if (!text || !isObject(choice.message)) return choice;
    const content = appendText(choice.message.content, text);
    return { ...choice, message: { ...choice.message, content } };
  });
}

/** A message's content with more text at its end, be it a text, parts or nothing at all. */
function appendText(content: Json | undefined, text: string): Json {
  if (Array.isArray(content)) return [...content, { type: "text", text }];
  return (typeof content === "string" ? content : "") + text;
}

/** A completion as the events of a stream, for a server that answers `stream: true` with JSON. */
function completionAsEvents(completion: JsonObject): EventSourceMessage[] {
  const { choices, usage, ...head } = completion;
  const base = { ...head, object: "chat.completion.chunk" };
  const events = (Array.isArray(choices) ? choices : []).flatMap((choice, at) => {
    if (!isObject(choice)) return [];
    const { message, finish_reason, index = at, ...rest } = choice;
    const delta = isObject(message) ? withIndexes(message) : {};
    return [
      { ...base, choices: [{ index, ...rest, delta, finish_reason: null }] },
      { ...base, choices: [{ index, delta: {}, finish_reason: finish_reason ?? "stop" }] },
    ];
  });
  const tail = usage ? [{ ...base, choices: [], usage }] : [];
  return [...events, ...tail].map((chunk) => ({ data: JSON.stringify(chunk) }))
    .concat({ data: "[DONE]" }).map((event) => ({ ...event, id: undefined, event: undefined }));
}

/** Tool calls of a delta carry an index; those of a message do not. */
function withIndexes(message: JsonObject): JsonObject {
  const { tool_calls } = message;
  if (!Array.isArray(tool_calls)) return message;
  const indexed = tool_calls.map((call, index) => (isObject(call) ? { index, ...call } : call));
  return { ...message, tool_calls: indexed };
}

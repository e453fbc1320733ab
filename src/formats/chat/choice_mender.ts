import { isObject, type Json, type JsonObject } from "../../base/json.ts";
import type { ChoiceMender, MendOptions } from "../openai/choice_shape.ts";
import { CallMender, mendWholeCalls } from "./call_mender.ts";
import { withTextContent } from "./message_parts.ts";

// Servers that speak chat completions leave out what OpenAI's clients rely on, or write it in other
// ways. All that is read of a chat's response is mended here first: for callers, and for bridges.

/** How the choices of a chat are mended. */
interface ChatMendOptions extends MendOptions {
  /** The field for thinking that the server sends as a part of the content. */
  thoughtsField: string;
}

/** What has arrived of a choice. */
interface OpenChoice {
  index: number;
  hasBegun: boolean;
  calls: CallMender | null;
  callsTool: boolean;
  /** Why it has ended; null before that. */
  reason: string | null;
}

/** Mends the choices of the chunks of one stream. */
export class ChatChoiceMender implements ChoiceMender {
  readonly #options: ChatMendOptions;
  readonly #choices = new Map<number, OpenChoice>();

  constructor(options: ChatMendOptions) {
    this.#options = options;
  }

  mend(sent: Json, position = 0): JsonObject | null {
    if (!isObject(sent)) return null;
    const { index, finish_reason: given = null } = sent;
    const choice = this.#choiceAt(choiceIndex(index) ?? position);
    const { message } = choice.hasBegun ? {} : sent;
    const delta = this.#mendDelta(choice, sent.delta ?? message ?? {});
    if (!delta) return null;
    const reason = given === null ? null : endReason(given, choice);
    const whole = reason === null ? delta : withRest(delta, choice, reason);
    if (whole === sent.delta && choice.index === index && reason === given) return sent;
    const { message: _whole, ...others } = sent;
    return { ...others, index: choice.index, delta: whole, finish_reason: reason };
  }

  noteToolCall(index: number): void {
    this.#choiceAt(index).callsTool = true;
  }

  #choiceAt(index: number): OpenChoice {
    const known = this.#choices.get(index);
    if (known) return known;
    const choice = { index, hasBegun: false, calls: null, callsTool: false, reason: null };
    this.#choices.set(index, choice);
    return choice;
  }

  #mendDelta(choice: OpenChoice, sent: Json): JsonObject | null {
    if (!isObject(sent)) return null;
    const { role } = sent;
    const hasRole = role === undefined ? choice.hasBegun : roles.has(role);
    const withRole = hasRole ? sent : { ...sent, role: "assistant" };
    const withText = withTextContent(withRole, this.#options.thoughtsField);
    if (!withText) return null;
    choice.hasBegun = true;
    const delta = withCalls(withText, this.#options);
    return delta.tool_calls ? this.#mendCalls(choice, delta) : delta;
  }

  #mendCalls(choice: OpenChoice, delta: JsonObject): JsonObject {
    const { tool_calls: sent, ...others } = delta;
    if (!Array.isArray(sent) || sent.length === 0) return delta;
    choice.calls ??= new CallMender(callId(this.#options, choice.index));
    const calls = choice.calls.mend(sent);
    choice.callsTool ||= choice.calls.count > 0;
    if (calls === sent) return delta;
    return calls.length > 0 ? { ...others, tool_calls: calls } : others;
  }
}

/**
 * A message, or a delta of one, whose calls are a list. The one call of a server that knows no
 * others is in it too, unless the request asked for such calls.
 */
function withCalls(message: JsonObject, { request: { body } }: MendOptions): JsonObject {
  const { tool_calls: sent, function_call: called } = message;
  if (isObject(sent)) return { ...message, tool_calls: [sent] };
  if (!isObject(called)) return message;
  if (Array.isArray(body.functions)) {
    const { arguments: given } = called;
    const isText = given === undefined || given === null || typeof given === "string";
    if (isText) return message;
    return { ...message, function_call: { ...called, arguments: JSON.stringify(given) } };
  }
  const { function_call: _called, ...others } = message;
  return Array.isArray(sent) && sent.length > 0
    ? others
    : { ...others, tool_calls: [{ function: called }] };
}

/** Why a choice ends with this chunk; null where it says so again, since clients join the texts. */
function endReason(given: Json, choice: OpenChoice): string | null {
  const reason = finishReason(given, choice);
  if (reason === choice.reason) return null;
  choice.reason = reason ?? choice.reason;
  return reason;
}

/** A delta that ends a choice, with what is left of its calls. */
function withRest(delta: JsonObject, { calls }: OpenChoice, reason: string): JsonObject {
  const rest = calls?.end(isWholeEnd(reason)) ?? [];
  return rest.length > 0 ? { ...delta, tool_calls: [...listIn(delta), ...rest] } : delta;
}

function listIn({ tool_calls: calls }: JsonObject): Json[] {
  return Array.isArray(calls) ? calls : [];
}

const usualMessage = { refusal: null, role: null, content: null };

/** A choice of a whole response, mended; null for one without a message. */
export function mendWholeChoice(
  choice: Json,
  position: number,
  options: ChatMendOptions,
): JsonObject | null {
  if (!isObject(choice) || !isObject(choice.message)) return null;
  const withText = withTextContent(choice.message, options.thoughtsField);
  if (!withText) return null;
  const index = choiceIndex(choice.index) ?? position;
  const message = withCalls(withText, options);
  const calls = listIn(message);
  const ends = { callsTool: calls.length > 0 };
  const usual = isObject(message.function_call) ? "function_call" : "stop";
  const reason = finishReason(choice.finish_reason ?? null, ends) ?? finishReason(usual, ends);
  const named = { ownId: callId(options, index), isWhole: isWholeEnd(reason) };
  return {
    logprobs: null,
    ...choice,
    index,
    message: {
      ...usualMessage,
      ...message,
      role: roles.has(message.role) ? message.role ?? "assistant" : "assistant",
      ...(ends.callsTool ? { tool_calls: mendWholeCalls(calls, named) } : {}),
    },
    finish_reason: reason,
  };
}

/** The id of a choice's tool calls, before their number. */
function callId({ head: { id } }: MendOptions, index: number): string {
  const unique = id.replace(/^[a-z]+[-_]/, "");
  return index === 0 ? `call_${unique}` : `call_${unique}_${index}`;
}

const roles = new Set<unknown>(["assistant", "system", "developer", "user", "tool", "function"]);

/** Reasons for an end by their names: OpenAI's, and other APIs'. */
const reasons: ReadonlyMap<string, string> = new Map([
  ...named("stop", "stop end_turn stop_sequence stop_token eos eos_token end complete completed"),
  ...named("length", "length max_tokens max_length max_output_tokens model_length"),
  ...named("tool_calls", "tool_calls tool_call tool_use"),
  ...named("content_filter", "content_filter safety refusal sensitive blocklist recitation"),
]);

function named(reason: string, names: string): [string, string][] {
  return names.split(" ").map((name) => [name, reason]);
}

/** Why a choice ends; null where a server says nothing, for which some send an empty string. */
function finishReason(
  given: Json,
  { callsTool }: Pick<OpenChoice, "callsTool">,
): string | null {
  if (typeof given !== "string" || given === "") return null;
  const reason = reasons.get(given) ?? reasons.get(given.toLowerCase()) ?? given;
  return callsTool && (reason === "stop" || reason === "function_call") ? "tool_calls" : reason;
}

function isWholeEnd(reason: string | null): boolean {
  return reason === "stop" || reason === "tool_calls";
}

/** The number of a choice, also one in a string; null for anything else. */
export function choiceIndex(value: Json | undefined): number | null {
  const index = typeof value === "string" && /^\d{1,9}$/.test(value) ? Number(value) : value;
  return typeof index === "number" && Number.isSafeInteger(index) && index >= 0 ? index : null;
}

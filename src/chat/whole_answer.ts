import { isObject, type Json, type JsonObject, nestsDeeper, parseJson } from "../base/json.ts";
import { jsonDepthMax, upstreamBodyBytesMax } from "../base/limits.ts";
import { corsHeaders, type HeaderList, textResponse } from "../base/response.ts";
import { soon } from "../base/soon.ts";
import { decodeUtf8 } from "../base/utf8.ts";
import { amountOf, type Entry } from "../ledger/entry.ts";
import {
  type Answer,
  answerHead,
  type ChatRooms,
  failure,
  startDeadline,
  usageBody,
  watch,
} from "./answer.ts";
import { headOf, wholeChoice } from "./left_out.ts";
import { type LastWords, lastWords, wordsTo } from "./last_words.ts";
import { rateHeaders } from "./limits.ts";
import { fits, storeAnswer } from "./replay.ts";
import { release, settle } from "./settle.ts";
import { callUpstream, readBody } from "./upstream.ts";
import { badUpstream, readFault, redact } from "./upstream_error.ts";
import type { TokenUsage } from "./usage.ts";

/**
 * An answer that is not streamed: forward, meter, settle, respond. It is read to its end and charged
 * exactly also when its caller has left. Throws what the caller is to see; then nothing is charged.
 */
export async function wholeAnswer(rooms: ChatRooms, answer: Answer): Promise<Response> {
  const stopWatching = watch(rooms, answer);
  try {
    const { completion, usage, words } = await forward(rooms, answer).catch(async (error) => {
      answer.steps.fault(error);
      await release(rooms, answer, failure(error));
      throw error;
    });
    let body: string | Promise<string> = "";
    let headers: HeaderList = {};
    await settle(rooms, answer, {
      usage,
      ending: { kind: "completed" },
      alongside(draft, entry) {
        headers = chargeHeaders(entry);
        const write = () => {
          const choices = withWords(completion.choices, words, entry.balanceAfter);
          const used = usageBody(answer, { usage, entry });
          return JSON.stringify({ ...completion, choices, usage: used });
        };
        const { replay, ref } = answer;
        // Where it is not stored beside the charge, there is time while that is written.
        if (!replay) return void (body = soon(write));
        body = write();
        storeAnswer(draft, replay, { ref, answer: { headers, body } });
      },
    });
    const text = await body;
    const stored = answer.replay && !fits(text) ? { "idempotency-stored": "false" } : {};
    const more = { ...headers, ...rateHeaders(answer.rates), ...stored };
    return completionResponse(text, answer.requestId, more);
  } finally {
    stopWatching();
  }
}

/** A completion as it is sent, the first time or again. */
export function completionResponse(body: string, requestId: string, more: HeaderList): Response {
  const headers = {
    ...corsHeaders,
    "content-type": "application/json",
    "x-request-id": requestId,
    ...more,
  };
  return textResponse(200, body, headers);
}

function chargeHeaders(entry: Entry): HeaderList {
  return {
    "x-service-activity-id": entry.id,
    "x-service-cost": amountOf(entry),
    "x-service-balance": entry.balanceAfter,
  };
}

async function forward(
  rooms: ChatRooms,
  answer: Answer,
): Promise<{ completion: JsonObject; usage: TokenUsage; words: LastWords }> {
  const { upstream, firstRequest, chat, quote, meter, requestId, request, steps } = answer;
  const { signal } = answer.controller;
  steps.begin("forward");
  const stopDeadline = startDeadline(rooms, answer);
  try {
    const headers = passedHeaders(request);
    const asked = { upstream, firstRequest, chat, cap: quote.cap, meter };
    const call = { ...asked, requestId, headers, signal };
    const response = await callUpstream(call, steps.span);
    const body = await readBody(response.body, upstreamBodyBytesMax, signal);
    steps.begin("meter");
    const completion = readCompletion(body, answer);
    const { choices } = completion;
    const list = Array.isArray(choices) ? choices : [];
    for (const choice of list) answer.meter.addOutput(isObject(choice) ? choice.message : null);
    answer.meter.addUsage(completion.usage);
    const usage = await answer.meter.usage();
    return { completion, usage, words: await lastWords(rooms, answer) };
  } finally {
    stopDeadline();
  }
}

/** Our caller's headers that an upstream may want, and can be sent; nothing else of theirs goes on. */
export function passedHeaders(request: Request): Record<string, string> {
  const beta = request.headers.get("openai-beta");
  return beta && /^[\x20-\x7e]+$/.test(beta) ? { "openai-beta": beta } : {};
}

/**
 * Reads a completion, and adds what clients rely on where a server leaves it out. Throws 502 when
 * it is none: HTML, a truncated body, an error with status 200, choices without messages; or nests too deep to be written again.
 */
export function readCompletion(bytes: Uint8Array, answer: Answer): JsonObject {
  const text = decodeUtf8(bytes);
  let value: Json;
  // Found out here, while nothing is charged: such an answer could be read, but not be passed on.
  if (text && nestsDeeper(text, jsonDepthMax)) throw badUpstream("an answer nested too deep");
  try {
    value = parseJson(text ?? "");
  } catch {
    throw badUpstream(`an answer of ${bytes.length} bytes that is not JSON`);
  }
  if (isObject(value) && value.error) {
    const told = readFault(200, redact(text ?? "", answer.upstream.apiKey)).message;
    throw badUpstream(`an error with status 200: ${told}`);
  }
  const said = isObject(value) && Array.isArray(value.choices) ? value.choices : null;
  if (!isObject(value) || !said || (said.length === 0 && !value.usage)) {
    throw badUpstream("an answer without choices");
  }
  const choices = said.map((choice, position) => {
    const whole = wholeChoice(choice, position);
    if (!whole) throw badUpstream("a choice without a message");
    return whole;
  });
  const ours = { ...answerHead(answer), object: "chat.completion" };
  return { ...value, ...headOf(value, ours), choices };
}

/** A message's content with more text at its end, whether it is a text, parts or nothing at all. */
function withText(content: Json | undefined, text: string): Json {
  if (Array.isArray(content)) return [...content, { type: "text", text }];
  return (typeof content === "string" ? content : "") + text;
}

/** The choices, each with what its reader should know about their credit at its end. */
function withWords(choices: Json | undefined, words: LastWords, balance: string): Json | undefined {
  if (!Array.isArray(choices) || (!words.cut && !words.closing)) return choices;
  return choices.map((choice) => {
    if (!isObject(choice) || !isObject(choice.message)) return choice;
    const said = wordsTo(choice.finish_reason, words)?.(balance);
    if (!said) return choice;
    const content = withText(choice.message.content, said);
    return { ...choice, message: { ...choice.message, content } };
  });
}

import { isObject, type Json, type JsonObject, nestsDeeper, parseJson } from "../base/json.ts";
import { jsonDepthMax, upstreamBodyBytesMax } from "../base/limits.ts";
import { corsHeaders, type HeaderList, textResponse } from "../base/response.ts";
import { soon } from "../base/soon.ts";
import { decodeUtf8 } from "../base/utf8.ts";
import { amountOf, type Entry } from "../ledger/entry.ts";
import {
  type AdmittedCall,
  failedEnding,
  type InferenceDeps,
  responseHead,
  startDeadline,
  usageBody,
  watchCall,
} from "./call.ts";
import { normalizeChoice, normalizeHead } from "../formats/chat/normalize.ts";
import { type BalanceNotice, createBalanceNotice, noticeFor } from "./balance_notice.ts";
import { rateHeaders } from "./rate_limiter.ts";
import { fitsIdempotencyStore, storeResponse } from "./idempotency.ts";
import { releaseCall, settleCall } from "./settle.ts";
import { callUpstream, readUpstreamBody } from "../upstreams/client.ts";
import { invalidUpstreamResponse, readUpstreamError, redactKey } from "../upstreams/errors.ts";
import type { TokenUsage } from "../pricing/usage.ts";

/**
 * An answer that is not streamed: forward, meter, settle, respond. It is read to its end and charged
 * exactly also when its caller has left. Throws what the caller is to see; then nothing is charged.
 */
export async function wholeResponse(
  services: InferenceDeps,
  answer: AdmittedCall,
): Promise<Response> {
  const stopWatching = watchCall(services, answer);
  try {
    const { completion, usage, words } = await forward(services, answer).catch(async (error) => {
      answer.telemetry.countError(error);
      await releaseCall(services, answer, failedEnding(error));
      throw error;
    });
    let body: string | Promise<string> = "";
    let headers: HeaderList = {};
    await settleCall(services, answer, {
      usage,
      ending: { kind: "completed" },
      alongside(draft, entry) {
        headers = chargeHeaders(entry);
        const write = () => {
          const choices = withWords(completion.choices, words, entry.balanceAfter);
          const used = usageBody(answer, { usage, entry });
          return JSON.stringify({ ...completion, choices, usage: used });
        };
        const { idempotency, ref } = answer;
        // Where it is not stored beside the charge, there is time while that is written.
        if (!idempotency) return void (body = soon(write));
        body = write();
        storeResponse(draft, idempotency, { ref, answer: { headers, body } });
      },
    });
    const text = await body;
    const stored = answer.idempotency && !fitsIdempotencyStore(text)
      ? { "idempotency-stored": "false" }
      : {};
    const more = { ...headers, ...rateHeaders(answer.rateLimits), ...stored };
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
  services: InferenceDeps,
  answer: AdmittedCall,
): Promise<{ completion: JsonObject; usage: TokenUsage; words: BalanceNotice }> {
  const { upstream, preparedBody, chat, quote, meter, requestId, request, telemetry } = answer;
  const { signal } = answer.controller;
  telemetry.begin("forward");
  const stopDeadline = startDeadline(services, answer);
  try {
    const headers = passedHeaders(request);
    const asked = { upstream, firstRequest: preparedBody, chat, cap: quote.cap, meter };
    const call = { ...asked, requestId, headers, signal };
    const response = await callUpstream(call, telemetry.span);
    const body = await readUpstreamBody(response.body, upstreamBodyBytesMax, signal);
    telemetry.begin("meter");
    const completion = readCompletion(body, answer);
    const { choices } = completion;
    const list = Array.isArray(choices) ? choices : [];
    for (const choice of list) answer.meter.addOutput(isObject(choice) ? choice.message : null);
    answer.meter.addUsage(completion.usage);
    const usage = await answer.meter.usage();
    return { completion, usage, words: await createBalanceNotice(services, answer) };
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
export function readCompletion(bytes: Uint8Array, answer: AdmittedCall): JsonObject {
  const text = decodeUtf8(bytes);
  let value: Json;
  // Found out here, while nothing is charged: such an answer could be read, but not be passed on.
  if (text && nestsDeeper(text, jsonDepthMax)) {
    throw invalidUpstreamResponse("an answer nested too deep");
  }
  try {
    value = parseJson(text ?? "");
  } catch {
    throw invalidUpstreamResponse(`an answer of ${bytes.length} bytes that is not JSON`);
  }
  if (isObject(value) && value.error) {
    const told = readUpstreamError(200, redactKey(text ?? "", answer.upstream.apiKey)).message;
    throw invalidUpstreamResponse(`an error with status 200: ${told}`);
  }
  const said = isObject(value) && Array.isArray(value.choices) ? value.choices : null;
  if (!isObject(value) || !said || (said.length === 0 && !value.usage)) {
    throw invalidUpstreamResponse("an answer without choices");
  }
  const choices = said.map((choice, position) => {
    const whole = normalizeChoice(choice, position);
    if (!whole) throw invalidUpstreamResponse("a choice without a message");
    return whole;
  });
  const ours = { ...responseHead(answer), object: "chat.completion" };
  return { ...value, ...normalizeHead(value, ours), choices };
}

/** A message's content with more text at its end, whether it is a text, parts or nothing at all. */
function withText(content: Json | undefined, text: string): Json {
  if (Array.isArray(content)) return [...content, { type: "text", text }];
  return (typeof content === "string" ? content : "") + text;
}

/** The choices, each with what its reader should know about their credit at its end. */
function withWords(
  choices: Json | undefined,
  words: BalanceNotice,
  balance: string,
): Json | undefined {
  if (!Array.isArray(choices) || (!words.atLength && !words.atEnd)) return choices;
  return choices.map((choice) => {
    if (!isObject(choice) || !isObject(choice.message)) return choice;
    const said = noticeFor(choice.finish_reason, words)?.(balance);
    if (!said) return choice;
    const content = withText(choice.message.content, said);
    return { ...choice, message: { ...choice.message, content } };
  });
}

import { isObject } from "../base/json.ts";
import type { UsageMeter } from "../inference/usage_meter.ts";
import { withTokenizerMargin } from "../formats/chat/prompt.ts";
import type { ChatRequest } from "../formats/chat/request.ts";
import type { UpstreamErrorBody } from "./errors.ts";

/** The field by which an upstream is told how long an answer may get. */
export type MaxTokensField = "max_tokens" | "max_completion_tokens";

/** A server, as far as it decides how it is spoken to. */
export interface DialectSource {
  /** What was said in its settings; else it is learnt. */
  maxTokensField: MaxTokensField | null;
  /** How this process has learnt to speak to its models. */
  knownDialects: KnownDialects;
}

/** Who is asked for what. */
export interface DialectCall {
  upstream: DialectSource;
  chat: ChatRequest;
  /** The bound on the output, always sent. */
  cap: number;
  /** Counts the prompt, where the server does not say how long it is. */
  meter: Pick<UsageMeter, "countPrompt">;
}

/** How a call says what we add to it. */
export interface Dialect {
  /** Of a stream: by `stream_options`. Where it must not, its usage is our own count. */
  requestsUsage: boolean;
  maxTokensField: MaxTokensField;
  /** The longest answer that the model can be asked for, as far as is known. */
  maxTokens: number;
  /** The same beside this very prompt. */
  room: number;
}

/** What each model of a server has understood that had refused another manner. */
export type KnownDialects = Map<string, Partial<Omit<Dialect, "room">>>;

const modelsRememberedMax = 1_000;

// These refuse `max_tokens`; elsewhere it is the field that every server knows: some ignore the
// newer one without a word, and would then write on without a bound.
const newFieldNames = /^(o\d|gpt-5)/;

/** How this model is told, as far as is known of it. */
export function dialectFor(
  { maxTokensField, knownDialects }: DialectSource,
  { model }: ChatRequest,
): Dialect {
  const usual = newFieldNames.test(model) ? "max_completion_tokens" : "max_tokens";
  const known = knownDialects.get(model);
  return {
    requestsUsage: known?.requestsUsage ?? true,
    maxTokensField: maxTokensField ?? known?.maxTokensField ?? usual,
    maxTokens: known?.maxTokens ?? Infinity,
    room: Infinity,
  };
}

/** Remembers what a model understood that had refused another manner. */
export function rememberDialect(
  { knownDialects }: DialectSource,
  chat: ChatRequest,
  manner: Dialect,
): void {
  const { requestsUsage, maxTokensField, maxTokens } = manner;
  const known = knownDialects.get(chat.model);
  if (!known && knownDialects.size >= modelsRememberedMax) knownDialects.clear();
  const asked = chat.stream ? { requestsUsage } : {};
  knownDialects.set(chat.model, { ...known, ...asked, maxTokensField, maxTokens });
}

/**
 * How else to say what we add, where the error is about that and the call worth another try; null
 * where it is about what the caller said.
 */
export async function correctedDialect(
  asked: DialectCall,
  { manner, fault }: { manner: Dialect; fault: UpstreamErrorBody },
): Promise<Dialect | null> {
  const { upstream, chat } = asked;
  if (fault.status !== 400 && fault.status !== 422) return null;
  // Options of the caller's own are the caller's fault, and say nothing of the server.
  const own = isObject(chat.body.stream_options) ? Object.keys(chat.body.stream_options) : [];
  const onlyOurs = own.every((option) => option === "include_usage");
  if (chat.stream && manner.requestsUsage && onlyOurs && isAbout(fault, "stream_options")) {
    return { ...manner, requestsUsage: false };
  }
  if (refusesField(manner.maxTokensField, fault) && !upstream.maxTokensField) {
    const other = manner.maxTokensField === "max_tokens" ? "max_completion_tokens" : "max_tokens";
    return { ...manner, maxTokensField: other };
  }
  // Whoever sets a bound of their own is told that it is too high, and teaches nothing.
  return chat.maxTokens === null ? await shorterManner(asked, manner, fault) : null;
}

function refusesField(field: MaxTokensField, fault: UpstreamErrorBody): boolean {
  return isAbout(fault, field) && (fault.code === "unsupported_parameter" ||
    /not supported|unsupported|unrecogni|extra|unknown|permitted/i.test(fault.message));
}

/** No model is known whose longest answer is shorter: a smaller number means something else. */
const maxTokensMin = 256;

/** The manner with the longest answer that a refusal names, where it names one that is shorter. */
async function shorterManner(
  { cap, meter }: DialectCall,
  manner: Dialect,
  fault: UpstreamErrorBody,
): Promise<Dialect | null> {
  const { message } = fault;
  const asked = Math.min(cap, manner.maxTokens, manner.room);
  const context = numberIn(message, /context length (?:is|of) (?:only )?(\d+)|must be <= (\d+)/i);
  const prompt = numberIn(
    message,
    /(\d+) in (?:the messages|your prompt)|(?:has|passed|at least) (\d+) input tokens|given: (\d+) `?inputs/i,
  );
  const total = numberIn(message, /requested (?:about )?(\d+) tokens/i);
  if (context !== null && (total !== null || prompt !== null)) {
    const left = total === null ? context - (prompt ?? 0) : asked - (total - context);
    const isUncounted = /at least \d+ input tokens/i.test(message);
    const room = isUncounted
      ? await uncountedRoom(meter, { asked, left, context, isFirst: manner.room === Infinity })
      : left;
    return room > 0 && room < asked ? { ...manner, room } : null;
  }
  if (!isAbout(fault, manner.maxTokensField)) return null;
  const most = numberIn(
    message,
    /at most (\d+)|less than or equal to `?(\d+)|\[\d+, ?(\d+)\]|\d+ > (\d+)/i,
  );
  if (most === null || most < maxTokensMin || most >= asked) return null;
  // What is left beside one prompt is not what the model can write beside another.
  const isOfPrompt = /prompt|input|context|messages|total/i.test(message);
  return { ...manner, ...(isOfPrompt ? { room: most } : { maxTokens: most }) };
}

/** A refusal of a prompt and an answer of `asked` tokens that does not say how long the prompt is. */
interface Uncounted {
  asked: number;
  /** At most this much is left for the answer. */
  left: number;
  context: number;
  isFirst: boolean;
}

/**
 * How long an answer to ask for where vLLM stopped counting a prompt that is too long beside what was
 * asked: what our own count leaves, and once that was too much, or is no less, half of what was asked.
 * 0 where the prompt is too long by itself.
 */
async function uncountedRoom(
  meter: DialectCall["meter"],
  { asked, left, context, isFirst }: Uncounted,
): Promise<number> {
  const half = Math.floor(asked / 2);
  const halved = half < maxTokensMin ? 0 : Math.min(left, half);
  if (!isFirst) return halved;
  const counted = await meter.countPrompt(context);
  if (counted >= context) return 0;
  const room = context - withTokenizerMargin(counted);
  return room > 0 && room < left ? room : halved;
}

function numberIn(text: string, pattern: RegExp): number | null {
  const found = pattern.exec(text)?.slice(1).find((group) => group !== undefined);
  return found === undefined ? null : Number(found);
}

/** Whether an error names this field, or a part of it; not one whose name only begins alike. */
function isAbout({ param, message }: UpstreamErrorBody, field: string): boolean {
  if (param !== null) return param === field || param.startsWith(`${field}.`);
  return new RegExp(`(?<![\\w.])${field}(?!\\w)`).test(message);
}

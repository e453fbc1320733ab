import type { FormatName } from "../base/endpoints.ts";
import { isObject, type JsonObject } from "../base/json.ts";
import { type KnownFields, type Prefill, upstreamFormats } from "../projects/providers.ts";
import { withTokenizerMargin } from "../pricing/tokenizer.ts";
import type { UpstreamErrorBody } from "./error_body.ts";
import type { LearnedFacts } from "./learned.ts";

/** The field by which an upstream is told how long a response may get. */
export type MaxTokensField = "max_tokens" | "max_completion_tokens" | "max_output_tokens";

/** What decides how an upstream is spoken to. */
export interface DialectSource {
  /** Set by the project; else learned from errors. */
  maxTokensField: MaxTokensField | null;
  /** The formats that it speaks; null where it is asked. */
  formats: readonly FormatName[] | null;
  /** The fields that its provider takes, as far as they are known beforehand. */
  fields: KnownFields;
  /** What this process has learned about the upstream for one project. */
  learned: LearnedFacts;
}

/** As much of a request, of any format, as its dialect depends on. */
interface DialectRequest {
  model: string;
  stream: boolean;
  maxTokens: number | null;
  /** Tokens that the model may think for, as the caller bounds it; null where it does not. */
  thinkingBudget: number | null;
  body: JsonObject;
}

/** A format in which a call can be sent. */
interface CallFormat {
  format: FormatName;
  /** Fields that the format has for the output bound, the usual one first. */
  maxTokensFields: readonly MaxTokensField[];
}

/** A call whose dialect may have to be corrected. */
export interface DialectCall {
  upstream: DialectSource;
  input: DialectRequest;
  /** Formats in which it can be sent, the caller's own first. */
  targets: readonly CallFormat[];
  /** The output bound in tokens, always sent. */
  cap: number;
  /** Counts the prompt, where the upstream does not say how long it is. */
  countPrompt(most: number): Promise<number>;
}

/** How the fields that we add to a request are written for one model of an upstream. */
export interface Dialect {
  format: FormatName;
  /** Whether `stream_options` asks for usage. Where an upstream refuses it, we count ourselves. */
  requestsUsage: boolean;
  maxTokensField: MaxTokensField;
  /** The longest response that the model accepts as a bound, as far as is known. */
  maxTokens: number;
  /** The longest one beside this very prompt. */
  contextLeft: number;
  /** How it continues the assistant's last message; null where it is not known to. */
  prefill: Prefill | null;
}

// These models refuse `max_tokens`. Everywhere else it is the field that every server knows: some
// ignore the newer one silently and would then write without a bound.
const newFieldNames = /^(o\d|gpt-5)/;

/**
 * The dialect of a model: the usual one, changed by what was learned. A bound that was learned does
 * not lower what a caller asked for.
 */
export function dialectFor(call: DialectCall): Dialect {
  const { upstream: { learned }, input, targets } = call;
  const usual = usualDialect(call);
  if (learned.isEmpty) return usual;
  const names = factsOf(call);
  const format = learned.find(names.format);
  const target = targets.find((target) => target.format === format) ?? usualTarget(call);
  const spoken = target.format === usual.format ? usual : dialectIn(target, call);
  const field = learned.find(names.field);
  const most = input.maxTokens === null ? learned.find(names.maxTokens) : undefined;
  const refusesUsage = input.stream && learned.find(names.usage) === false;
  return {
    ...spoken,
    maxTokensField: target.maxTokensFields.find((name) => name === field) ?? spoken.maxTokensField,
    requestsUsage: spoken.requestsUsage && !refusesUsage,
    maxTokens: typeof most === "number" ? most : Infinity,
  };
}

/** The dialect of a call before anything is learned. */
function usualDialect(call: DialectCall): Dialect {
  return dialectIn(usualTarget(call), call);
}

/** A format that cannot be set is tried first: nothing says that the upstream does not speak it. */
function usualTarget(call: DialectCall): CallFormat {
  const { upstream: { formats }, targets } = call;
  const own = callersTarget(call);
  if (!formats || !isSettable(own.format)) return own;
  return targets.find(({ format }) => formats.includes(format)) ?? own;
}

function isSettable(format: FormatName): boolean {
  return upstreamFormats.some((name) => name === format);
}

function dialectIn(
  { format, maxTokensFields }: CallFormat,
  { upstream, input }: Pick<DialectCall, "upstream" | "input">,
): Dialect {
  const { maxTokensField, fields } = upstream;
  const wanted = maxTokensField ?? fields.maxTokensField ??
    (newFieldNames.test(input.model) ? "max_completion_tokens" : "max_tokens");
  return {
    format,
    requestsUsage: fields.requestsUsage ?? true,
    maxTokensField: maxTokensFields.includes(wanted) ? wanted : maxTokensFields[0] ?? wanted,
    maxTokens: Infinity,
    contextLeft: Infinity,
    prefill: fields.prefill ?? null,
  };
}

function callersTarget({ targets }: DialectCall): CallFormat {
  const [target] = targets;
  if (!target) throw new Error("a call has no target");
  return target;
}

/** The names of facts: they hold for one model, and for the format of its callers. */
function factsOf(call: DialectCall) {
  const about = `${callersTarget(call).format} ${call.input.model}`;
  return {
    format: `format ${about}`,
    field: `field ${about}`,
    usage: `usage ${about}`,
    maxTokens: `maxTokens ${about}`,
  };
}

/**
 * Learns from a call that was answered: what it changed after a refusal is a sign, and what it did
 * in the usual way is forgotten as a fact. Only what has helped is learned: a refusal may quote
 * what the caller wrote. `first` is the dialect that the call began with, `taken` the answered one.
 */
export function learnFrom(
  call: DialectCall,
  { first, taken }: { first: Dialect; taken: Dialect },
): void {
  const { upstream: { learned }, input, cap } = call;
  if (learned.isEmpty && first === taken) return learned.noteServed(taken.format);
  const usual = usualDialect(call);
  if (taken.format === usual.format) learned.noteServed(taken.format);
  const names = factsOf(call);
  const note = (name: string, of: (dialect: Dialect) => string | number | boolean) => {
    if (of(taken) === of(usual)) learned.forget(name);
    else if (of(taken) !== of(first)) learned.addSign(name, of(taken));
  };
  note(names.format, ({ format }) => format);
  if (taken.format === first.format) note(names.field, ({ maxTokensField }) => maxTokensField);
  if (input.stream) note(names.usage, ({ requestsUsage }) => requestsUsage);
  // A bound that is no longer than what was learned says nothing about it.
  const sent = Math.min(cap, taken.contextLeft);
  if (taken.maxTokens !== Infinity || sent > Number(learned.lastValue(names.maxTokens) ?? 0)) {
    note(names.maxTokens, ({ maxTokens }) => maxTokens);
  }
}

/** The dialect in the next format, where an upstream does not serve the one that was tried. */
function otherFormat(
  call: DialectCall,
  { dialect, error }: { dialect: Dialect; error: UpstreamErrorBody },
): Dialect | null {
  const { upstream: { formats, learned }, targets } = call;
  if ((formats !== null && isSettable(dialect.format)) || !isUnserved(error)) return null;
  // A server that restarts has no endpoint for a while.
  if (learned.hasServed(dialect.format)) return null;
  const tried = targets.findIndex(({ format }) => format === dialect.format);
  const next = targets.slice(tried + 1).find(({ format }) => formats?.includes(format) ?? true);
  return next ? dialectIn(next, call) : null;
}

/** Says that something is not found, and not what. */
const bareNotFound =
  /^\W*(?:404\W*)?(?:the )?(?:requested )?(?:page |file |resource |path |route |url )?(?:was |is )?(?:not[ _]?found|does not exist)?\W*$/i;
/** Names a path, and nothing that a request could be about. */
const pathWords = /\b(?:url|uri|path|routes?|endpoint|page|method|cannot post)\b/i;
const thingWords =
  /\b(?:models?|deployment|image|file|document|audio|video|response|conversation|prompt|container|tool|item|user|organization|project|id)\b/i;

const thingCodes = /model|deployment|response|file|image|conversation/i;

/**
 * Whether an error says that there is no such endpoint. A 404 about a thing, such as a model, an id
 * or a file, does not.
 */
export function isUnserved({ status, code, param, message }: UpstreamErrorBody): boolean {
  if (status === 405 || status === 501) return true;
  if (status !== 404 || param !== null) return false;
  if (code !== null && thingCodes.test(code)) return false;
  if (code === "unknown_url" || bareNotFound.test(message)) return true;
  return pathWords.test(message) && !thingWords.test(message);
}

/**
 * The dialect to retry a refused call with; null where the error is about what the caller sent, or
 * nothing else could help.
 */
export async function correctedDialect(
  call: DialectCall,
  { dialect, error }: { dialect: Dialect; error: UpstreamErrorBody },
): Promise<Dialect | null> {
  const { upstream, input } = call;
  const other = otherFormat(call, { dialect, error });
  if (other) return other;
  if (error.status !== 400 && error.status !== 422) return null;
  // The caller's own stream options are the caller's error, and say nothing about the upstream.
  const { stream_options: options } = input.body;
  const own = isObject(options) ? Object.keys(options) : [];
  const onlyOurs = own.every((option) => option === "include_usage");
  if (input.stream && dialect.requestsUsage && onlyOurs && isAbout(error, "stream_options")) {
    return { ...dialect, requestsUsage: false };
  }
  if (refusesField(dialect.maxTokensField, error) && !upstream.maxTokensField) {
    const other = fieldsOf(call, dialect).find((field) => field !== dialect.maxTokensField);
    if (other) return { ...dialect, maxTokensField: other };
  }
  // A caller who sets a bound of their own gets the error that it is too high.
  const isOurs = input.maxTokens === null || call.cap < input.maxTokens;
  return isOurs ? await shorterDialect(call, dialect, error) : null;
}

/**
 * Whether an error says that our output bound and the caller's thinking budget do not fit into one
 * response. The caller has sent only the budget, and would not understand the bound.
 */
export function isThinkingTooLong(
  call: DialectCall,
  { dialect, error }: { dialect: Dialect; error: UpstreamErrorBody },
): boolean {
  const { input, cap } = call;
  if (input.thinkingBudget === null || (error.status !== 400 && error.status !== 422)) return false;
  const sent = Math.min(cap, dialect.maxTokens, dialect.contextLeft);
  const told = [error, { ...error, param: null }];
  return sent !== input.maxTokens &&
    fieldsOf(call, dialect).some((field) => told.some((said) => isAbout(said, field)));
}

function fieldsOf({ targets }: DialectCall, dialect: Dialect): readonly MaxTokensField[] {
  return targets.find(({ format }) => format === dialect.format)?.maxTokensFields ?? [];
}

function refusesField(field: MaxTokensField, error: UpstreamErrorBody): boolean {
  return isAbout(error, field) && (error.code === "unsupported_parameter" ||
    /not supported|unsupported|unrecogni|extra|unknown|permitted/i.test(error.message));
}

/** No known model has a lower output limit: a smaller number means something else. */
const maxTokensMin = 256;

/** The dialect with the output limit that an error names, where it is lower. */
async function shorterDialect(
  { cap, countPrompt }: DialectCall,
  dialect: Dialect,
  error: UpstreamErrorBody,
): Promise<Dialect | null> {
  const { message } = error;
  const requested = Math.min(cap, dialect.maxTokens, dialect.contextLeft);
  const context = numberIn(
    message,
    /context length (?:is|of) (?:only )?(\d+)|must be <= (\d+)|context limit: \d+ \+ \d+ > (\d+)/i,
  );
  const prompt = numberIn(
    message,
    /(\d+) in (?:the messages|your prompt)|(?:has|passed|at least) (\d+) input tokens|given: (\d+) `?inputs|context limit: (\d+) \+/i,
  );
  const total = numberIn(message, /requested (?:about )?(\d+) tokens/i);
  if (context !== null && (total !== null || prompt !== null)) {
    const left = total === null ? context - (prompt ?? 0) : requested - (total - context);
    const isUncounted = /at least \d+ input tokens/i.test(message);
    const contextLeft = isUncounted
      ? await uncountedMargin(countPrompt, {
        requested,
        left,
        context,
        isFirst: dialect.contextLeft === Infinity,
      })
      : left;
    return contextLeft > 0 && contextLeft < requested ? { ...dialect, contextLeft } : null;
  }
  if (!isAbout(error, dialect.maxTokensField)) return null;
  const most = numberIn(
    message,
    /at most (\d+)|less than or equal to `?(\d+)|\[\d+, ?(\d+)\]|\d+ > (\d+)/i,
  );
  if (most === null || most < maxTokensMin || most >= requested) return null;
  // What is left beside this prompt says nothing about other prompts.
  const isOfPrompt = /prompt|input|context|messages|total/i.test(message);
  return { ...dialect, ...(isOfPrompt ? { contextLeft: most } : { maxTokens: most }) };
}

/** An error about a prompt and `asked` output tokens that does not say how long the prompt is. */
interface Uncounted {
  requested: number;
  /** At most this many tokens are left for the response. */
  left: number;
  context: number;
  isFirst: boolean;
}

/**
 * The output bound to retry with where vLLM stopped counting a prompt that is too long beside the
 * bound: first what our own count leaves, then half of the bound. 0 where the prompt is too long.
 */
async function uncountedMargin(
  countPrompt: DialectCall["countPrompt"],
  { requested, left, context, isFirst }: Uncounted,
): Promise<number> {
  const half = Math.floor(requested / 2);
  const halved = half < maxTokensMin ? 0 : Math.min(left, half);
  if (!isFirst) return halved;
  const counted = await countPrompt(context);
  if (counted >= context) return 0;
  const contextLeft = context - withTokenizerMargin(counted);
  return contextLeft > 0 && contextLeft < left ? contextLeft : halved;
}

function numberIn(text: string, pattern: RegExp): number | null {
  const found = pattern.exec(text)?.slice(1).find((group) => group !== undefined);
  return found === undefined ? null : Number(found);
}

/** Whether an error names this field or a part of it, not one whose name only begins alike. */
function isAbout({ param, message }: UpstreamErrorBody, field: string): boolean {
  if (param !== null) return param === field || param.startsWith(`${field}.`);
  return new RegExp(`(?<![\\w.])${field}(?!\\w)`).test(message);
}

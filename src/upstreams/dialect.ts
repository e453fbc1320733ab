import type { FormatName } from "../base/endpoints.ts";
import { BoundedMap } from "../base/bounded_map.ts";
import { isObject, type JsonObject } from "../base/json.ts";
import type { KnownFields } from "../projects/providers.ts";
import { withTokenizerMargin } from "../pricing/tokenizer.ts";
import type { UpstreamErrorBody } from "./errors.ts";

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
  /** What this process has learned about the upstream's models. */
  knownDialects: KnownDialects;
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
}

/** What a model of an upstream accepted in a format, after it had refused something else. */
export type KnownDialects = Map<string, KnownDialect>;

/** Nothing is known yet. */
export function newKnownDialects(): KnownDialects {
  return new BoundedMap(modelsRememberedMax);
}

interface KnownDialect extends Partial<Omit<Dialect, "contextLeft" | "format">> {
  /** Formats that the upstream has said it does not serve. */
  unserved?: readonly FormatName[];
}

const modelsRememberedMax = 1_000;

// These models refuse `max_tokens`. Everywhere else it is the field that every server knows: some
// ignore the newer one silently and would then write without a bound.
const newFieldNames = /^(o\d|gpt-5)/;

/** The dialect of a model, as far as is known. */
export function dialectFor(call: DialectCall): Dialect {
  const { upstream: { formats, knownDialects }, targets } = call;
  const known = knownDialects.get(keyOf(call));
  const isSpoken = ({ format }: CallFormat) =>
    formats ? formats.includes(format) : !known?.unserved?.includes(format);
  const target = targets.find(isSpoken) ?? callersTarget(call);
  return { ...dialectIn(target, call, known), maxTokens: known?.maxTokens ?? Infinity };
}

function dialectIn(
  { format, maxTokensFields }: CallFormat,
  { upstream, input }: DialectCall,
  known: KnownDialect | undefined,
): Dialect {
  const { maxTokensField, fields } = upstream;
  const wanted = maxTokensField ?? known?.maxTokensField ?? fields.maxTokensField ??
    (newFieldNames.test(input.model) ? "max_completion_tokens" : "max_tokens");
  return {
    format,
    requestsUsage: known?.requestsUsage ?? fields.requestsUsage ?? true,
    maxTokensField: maxTokensFields.includes(wanted) ? wanted : maxTokensFields[0] ?? wanted,
    maxTokens: Infinity,
    contextLeft: Infinity,
  };
}

function callersTarget({ targets }: DialectCall): CallFormat {
  const [target] = targets;
  if (!target) throw new Error("a call has no target");
  return target;
}

/** What is learned holds for one model, and for the format of its callers. */
function keyOf(call: DialectCall): string {
  return `${callersTarget(call).format} ${call.input.model}`;
}

/** Remembers a dialect that a model accepted after it had refused another. */
export function rememberDialect(call: DialectCall, dialect: Dialect): void {
  const { upstream: { knownDialects }, input, targets } = call;
  const { format, requestsUsage, maxTokensField, maxTokens } = dialect;
  const known = knownDialects.get(keyOf(call));
  const streamed = input.stream ? { requestsUsage } : {};
  const refused = targets.slice(0, targets.findIndex((target) => target.format === format));
  const unserved = refused.map((target) => target.format);
  knownDialects.set(keyOf(call), { ...known, ...streamed, unserved, maxTokensField, maxTokens });
}

/** The dialect in the next format, where an upstream does not serve the one that was tried. */
function otherFormat(
  call: DialectCall,
  { dialect, error }: { dialect: Dialect; error: UpstreamErrorBody },
): Dialect | null {
  const { upstream: { formats }, targets } = call;
  if (formats !== null || !isUnserved(error)) return null;
  const tried = targets.findIndex(({ format }) => format === dialect.format);
  const next = targets[tried + 1];
  return next ? dialectIn(next, call, undefined) : null;
}

/** Whether an error says that there is no such endpoint, and not that there is no such model. */
export function isUnserved({ status, code, message }: UpstreamErrorBody): boolean {
  if (status === 405 || status === 501) return true;
  return status === 404 && code !== "model_not_found" && !/model/i.test(message);
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

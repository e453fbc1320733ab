import type { Secret } from "../base/secret.ts";
import type { EventSourceMessage } from "eventsource-parser";
import type { ApiError } from "../base/errors.ts";
import type { WriteErrorBody } from "../base/response.ts";
import type { FormatName } from "../base/format_names.ts";
import type { PriceField, TokenClass } from "../base/token_classes.ts";
import type { Json, JsonObject } from "../base/json.ts";
import type { Dialect, MaxTokensField } from "../upstreams/dialect.ts";
import type { LargeEventPart } from "../upstreams/event_reader.ts";
import type { SearchContextSize } from "../pricing/price_level.ts";
import type { UnitPrice, UnitPrices, Units } from "../pricing/units.ts";
import type { FormBytes, FormFile } from "../base/form_body.ts";
import type { TokenUsage } from "../pricing/usage.ts";
import type { Conversation } from "./kept/conversations.ts";
import type { BalanceNotice } from "./respond/balance_notice.ts";
import type { LastReport, UsageMeter } from "./meter/usage_meter.ts";

/** A request of any format, validated, with what its price, its hold and its upstream depend on. */
export interface ModelRequest {
  model: string;
  stream: boolean;
  /** Whether a streaming caller asked for usage. */
  wantsUsage: boolean;
  /** Billed outputs for each prompt. */
  choices: number;
  /** The caller's bound on output tokens, or null. Zero and less count as no bound. */
  maxTokens: number | null;
  /** Tools or JSON output: a response cut short would be of no use. */
  structured: boolean;
  /** JSON or a tool call is required: clients parse the response, and show only a refusal. */
  requiresJson: boolean;
  /** The caller asks for reasoning, which may be hidden. */
  asksReasoning: boolean;
  /** Tokens that the model may think for, as the caller bounds it; null where it does not. */
  thinkingBudget: number | null;
  extras: RequestExtras;
  /** The field `user`, else `safety_identifier`; unchecked. */
  user: unknown;
  /** The response that the caller continues, where the body has the conversation in its place. */
  continues?: string;
  /** The body that is passed on to the upstream. */
  body: JsonObject;
  /** Length of the body as received, in bytes; of a form, that of its texts. */
  bytes: number;
  /** Units that it asks for, where its format is priced by them. */
  units?: Units;
  /** The most tokens that its file can have, as far as its headers tell. */
  fileTokens?: number;
  /** The most that its file can have and cause by its bytes, whatever its headers say. */
  fileMost?: { input: number; output: number };
  /** The most output tokens, where no field can bound them: a hold covers them all. */
  outputTokens?: number;
  /** The file of a form. */
  file?: FormFile;
  /** Measures the file, which takes long: before that, units and tokens are the least possible. */
  measure?: () => FileSize;
}

/** What the size of a file decides. */
export type FileSize = Required<Pick<ModelRequest, "units" | "fileTokens" | "outputTokens">>;

/** What a request asks for that may have a price of its own. */
export interface RequestExtras {
  /** Null where the caller leaves it to the provider. */
  serviceTier: string | null;
  /** Kinds of output; null where the caller does not say. */
  modalities: readonly string[] | null;
  /** Tools that run at the provider, by name. */
  hostedTools: readonly string[];
  /** The caller's bound on their calls. */
  maxToolCalls: number | null;
  searchContext: SearchContextSize | null;
  /** It asks for cache entries that are kept for an hour. */
  hourCache: boolean;
}

/** What happens to fields of a request that the format does not know. */
export interface FieldPolicy {
  unknown: "refuse" | "pass";
  /** Fields that are passed on all the same. */
  allowed: readonly string[];
}

/** What a model's price has a price for. */
export interface PriceCoverage {
  serviceTier(name: string): boolean;
  /** Calls of a tool at the provider. */
  tool(name: string): boolean;
  /** A class of tokens, by its price field. */
  field(price: PriceField): boolean;
  /** Each request. */
  request: boolean;
  /** Images, characters and minutes; null where it has none. */
  units: UnitPrices | null;
  /** It is the catalogue's price of this model: what it leaves out costs as other tokens do. */
  isListed: boolean;
}

/** A part of a prompt that is not text: an image, a sound, a file. */
export interface MediaPart {
  type: string;
  /** Name of the field that holds it, for errors. */
  param: string;
  /** The part itself. */
  value: JsonObject;
  /** Characters of the body that it takes, which say nothing about its tokens. */
  chars: number;
}

/** Identifies a response where the upstream does not. */
export interface ResponseHead {
  id: string;
  /** In seconds since 1970. */
  created: number;
  model: string;
}

/** What a refused user gets in place of the model's response. */
export interface PaywallMessage {
  /** The sentence for people, with the link. */
  message: string;
  /** What callers branch on. */
  paywall: {
    /** The public refusal reason. */
    reason: string;
    url: string;
    /** In seconds: where the same request may succeed without an action of the user. */
    retryAfter?: number;
  };
}

/** What answered a request, as its response names it; null where it does not. */
export interface ServedBy {
  model: string | null;
  tier: string | null;
}

/** An id in a request of a response that an upstream keeps, or of an item of one. */
export interface KeptReference {
  kind: "response" | "item";
  id: string;
  /** Name of the field that holds it, for errors. */
  param: string;
}

/** Ids in a response that later requests may refer to. */
export interface KeptIds {
  response: string;
  items: readonly string[];
  /** The items themselves, for an upstream that keeps none. */
  output?(): readonly Json[];
}

/** What a request refers to, where the upstream keeps nothing: to be sent with the request. */
export interface KeptItems {
  /** The conversation up to the previous response. */
  history: readonly Json[];
  /** A bound on its length, as JSON text. */
  historyBytes: number;
  /** Items by their ids. */
  items: ReadonlyMap<string, Json>;
}

/** A request without what its price does not cover, and the names of tools that were removed. */
export interface FittedRequest {
  request: ModelRequest;
  removedTools: readonly string[];
}

/** A complete upstream response. */
export interface CompleteResponse {
  /** Absent where the upstream keeps nothing of it. */
  kept?: KeptIds | null;
  /** The response says that it failed: its caller gets this, and pays for output it reports. */
  error?: ApiError | null;
  served: ServedBy;
  /** All text that the model wrote, for the meter. */
  texts: Iterable<string>;
  /** Whether it has an image that the model made. */
  hasImage: boolean;
  /** Every usage that it reports, in order. */
  usages: readonly Json[];
  /** The response for the caller, as JSON text; `balance` is the balance after its charge. */
  write(final: { usage: JsonObject; notice: BalanceNotice; balance: string }): string;
  /** The same response as the events of a stream, for an upstream that ignores `stream: true`. */
  events(): EventSourceMessage[];
}

/** Puts the events of a stream together as a whole response. */
export interface EventAssembler {
  /** Every usage that was reported, in order. */
  readonly usages: readonly Json[];
  /** Throws the error that the event is. With `usageOnly`, nothing else of it is kept. */
  add(event: EventSourceMessage, options: { usageOnly: boolean }): void;
  /** All text so far. */
  texts(): Iterable<string>;
  /** Throws 502 where the stream has no end, or holds no response. */
  complete(): CompleteResponse;
}

/** Reads what is charged from the text of a response as it passes, without keeping it. */
export interface ResponseScanner {
  push(text: string): void;
  readonly usages: readonly Json[];
  readonly served: ServedBy;
  /** Units that the response says it has. */
  readonly units?: Units;
  /** Whether it has an image that the model made. */
  readonly hasImage?: boolean;
}

/** What a stream's transform works with. */
export interface StreamOptions {
  request: ModelRequest;
  meter: UsageMeter;
  head: ResponseHead;
  /** The upstream's key, which is removed from errors. */
  apiKey: Secret | null;
  notice: BalanceNotice;
}

/** Turns an upstream's events into frames for the caller, and meters their text. */
export interface StreamTransform {
  /** The upstream has sent its last event. */
  readonly done: boolean;
  /** Absent or null where the upstream keeps nothing of the response. */
  readonly kept?: KeptIds | null;
  /** An error that the upstream sent within the stream, ready for the caller. */
  readonly error: ApiError | null;
  /** Whether the stream has ended without any output or usage. */
  readonly isEmpty: boolean;
  /** Whether every output has ended. */
  readonly complete: boolean;
  /** Returns frames for these events, possibly "". */
  takeAll(events: EventSourceMessage[]): string;
  /** Returns the part of a frame for a part of an event that is too large to be parsed. */
  takeLarge(part: LargeEventPart): string;
  /** Frames that end every output, with the notice that `balance` calls for. */
  finish(reason: "stop" | "length", balance: string): string;
  /** The frame that reports usage. */
  usageFrame(usage: JsonObject): string;
  /**
   * The frames that end the stream after an error; "" where its end has been sent. Absent: the
   * format's.
   */
  errorFrame?(error: unknown): string;
}

/** What a bridge works with. */
export interface BridgeOptions {
  request: ModelRequest;
  head: ResponseHead;
  apiKey: Secret | null;
}

/** Turns the events of one upstream's stream into those of the caller's format. */
export interface EventTranslator {
  take(event: EventSourceMessage): EventSourceMessage[];
  /** The events that are left when the upstream's stream has ended. */
  end(): EventSourceMessage[];
}

/**
 * Lets an upstream that does not speak the caller's format answer in another one. What a bridge
 * gives is read by the caller's format as if an upstream had sent it. A bridge never guesses: it
 * throws 400 with the name of what the other format cannot carry.
 */
export interface Bridge {
  /** The format that the upstream speaks. */
  readonly format: Pick<
    Format,
    "name" | "upstreamPath" | "maxTokensFields" | "upstreamHeaders" | "createScanner"
  >;
  /** The body for the upstream, as JSON text, with an output bound of `cap` tokens. */
  writeBody(request: ModelRequest, cap: number, dialect: Dialect): string;
  /** A whole response. Throws 502 for one that is not valid. */
  translateWhole(bytes: Uint8Array, options: BridgeOptions): Uint8Array;
  createTranslator(options: BridgeOptions): EventTranslator;
}

/** What the responses of a format are made of, where that is no text for a model. */
export interface MadeOf {
  /** The unit that they can be priced by. */
  unit: UnitPrice;
  /** The class of tokens whose details a provider leaves out, or that we count ourselves. */
  input?: TokenClass;
  output?: TokenClass;
  /** Types of bodies besides JSON: texts, and those that pass on as they arrive. */
  types: { texts: readonly string[]; streamed: readonly string[] };
  /** Our own count of the output tokens of a body whose upstream reports none. */
  countOutput?(request: ModelRequest, body: PassedBody): number;
  /** What a model wrote in a whole body, for the meter. */
  textOf?(body: string, isJson: boolean): string;
}

/** A body that has been passed on. */
export interface PassedBody {
  start: Uint8Array;
  /** Its length. */
  bytes: number;
}

/**
 * A wire format: everything about one kind of endpoint that the pipeline does not know. To add an
 * endpoint, implement this interface in a folder of `formats/` and add it to the route map.
 */
export interface Format {
  readonly name: FormatName;
  /** The upstream's endpoint, below its base URL: `/chat/completions`. */
  readonly upstreamPath: string;
  /** What the id of a response of ours begins with. */
  readonly idPrefix: string;
  /**
   * Responses have no text: they pass on as they are, and a refused user gets 402. Of the rest of
   * the interface, nothing that reads a response is used.
   */
  readonly isPassedOn?: true;
  /** What responses are besides text, which decides their price. Of a format that passes on. */
  readonly made?: MadeOf;
  /** Bridges to formats that an upstream may speak in its place, the preferred one first. */
  readonly bridges?: readonly Bridge[];
  /** The body of errors; absent: OpenAI's. */
  readonly errorBody?: WriteErrorBody;
  /** A header that clients read the request's id from, besides `x-request-id`; in lower case. */
  readonly requestIdHeader?: string;
  /** No field of a body names the end user. */
  readonly hasNoUserField?: true;
  /** Headers of the caller that are passed on, in lower case. */
  readonly passedHeaders: readonly string[];
  /** Headers that its upstreams expect besides `Authorization`. */
  readonly upstreamHeaders?: (apiKey: Secret | null) => Record<string, string>;
  /** Fields by which an upstream can be told the output bound, the usual one first. */
  readonly maxTokensFields: readonly MaxTokensField[];
  /** Requests are forms (multipart/form-data); texts of theirs become the body. */
  readonly readsForms?: true;
  /**
   * Validates a body. Throws 400 for a malformed one, and for fields that the policy refuses.
   */
  readRequest(
    body: JsonObject,
    options: { bytes: number; fields: FieldPolicy; file?: FormFile | null },
  ): ModelRequest;
  /** Throws 400 for what the request asks for and no price covers, unless it is in `allowed`. */
  requirePriced(request: ModelRequest, covers: PriceCoverage, allowed: readonly string[]): void;
  /**
   * Removes tools that run at the provider and have no price, and bounds the calls of the others.
   * Absent: such tools are refused.
   */
  fitToPrice?(
    request: ModelRequest,
    options: { covers: PriceCoverage; allowed: readonly string[]; toolCallsMax: number },
  ): FittedRequest;
  /** What the request refers to by id. The pipeline checks that it is the account's own. */
  referencesOf?(request: ModelRequest): readonly KeptReference[];
  /** The conversation that the request belongs to; absent or null where it belongs to none. */
  conversationOf?(request: ModelRequest): Conversation | null;
  /** The input items of the request, in which its references are replaced already. */
  inputItems?(request: ModelRequest): readonly Json[];
  /** The request with what it refers to in place of the references. */
  withKept?(request: ModelRequest, kept: KeptItems): ModelRequest;
  /** Parts of the prompt that are not text. */
  mediaParts(request: ModelRequest): Iterable<MediaPart>;
  /** Every text of the prompt that a model reads. */
  promptTexts(request: ModelRequest): Iterable<string>;
  /** Tokens that a chat template adds to the prompt. */
  templateTokens(request: ModelRequest): number;
  /** The most tokens that the provider adds to the prompt, which the body's bytes do not bound. */
  addedTokens?(request: ModelRequest): number;
  /** Whether tools at the provider may have the model read more than the request contains. */
  readsMoreByTools?(request: ModelRequest): boolean;
  /** The body for the upstream, as JSON text or a form, with an output bound of `cap` tokens. */
  writeBody(request: ModelRequest, cap: number, dialect: Dialect): string | FormBytes;
  /** Reads a whole response. Throws 502 for one that is not valid. */
  readResponse(
    bytes: Uint8Array,
    options: { request: ModelRequest; head: ResponseHead; apiKey: Secret | null },
  ): CompleteResponse;
  /** Reads the events of a stream as a whole response, for a caller who did not ask for one. */
  createAssembler(
    options: { request: ModelRequest; head: ResponseHead; apiKey: Secret | null },
  ): EventAssembler;
  /** Reads a response, or an event, that is too large to be parsed. */
  createScanner(): ResponseScanner;
  /** The error that an event is; null for other events. */
  errorOf(event: EventSourceMessage, apiKey: Secret | null): ApiError | null;
  createStream(options: StreamOptions): StreamTransform;
  /** `usage` for the caller: what was used, what the upstream `reported`, and the cost. */
  writeUsage(
    usage: TokenUsage,
    charged: { reported: LastReport | null; cost: string },
  ): JsonObject;
  /**
   * A paywall message as the body of a response that used nothing: JSON text, or a whole stream.
   */
  writePaywall(paywall: PaywallMessage, request: ModelRequest, head: ResponseHead): string;
  /** The frame that ends a stream after an error. */
  errorFrame(error: unknown): string;
  /** The frame that ends a stream. */
  readonly endFrame: string;
}

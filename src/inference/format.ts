import type { Secret } from "../base/secret.ts";
import type { EventSourceMessage } from "eventsource-parser";
import type { ApiError } from "../base/errors.ts";
import type { WriteErrorBody } from "../base/response.ts";
import type { FormatName, ModelEndpoint } from "../base/endpoints.ts";
import type { TokenClass } from "../base/token_classes.ts";
import type { Json, JsonObject } from "../base/json.ts";
import type { Dialect, MaxTokensField } from "../upstreams/dialect.ts";
import type { UnitPrice } from "../pricing/units.ts";
import type { FormBytes, FormFile } from "../base/form_body.ts";
import type { TokenUsage } from "../pricing/usage.ts";
import type { Conversation } from "./kept/conversations.ts";
import type {
  FieldPolicy,
  FittedRequest,
  KeptItems,
  KeptReference,
  MediaPart,
  ModelRequest,
  PriceCoverage,
} from "./model_request.ts";
import type {
  CompleteResponse,
  EventAssembler,
  LastReport,
  PaywallMessage,
  ResponseHead,
  ResponseScanner,
  StreamOptions,
  StreamTransform,
} from "./upstream_response.ts";

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
    TextFormat,
    "name" | "path" | "ofDeployments" | "maxTokensFields" | "upstreamHeaders" | "createScanner"
  >;
  /** The body for the upstream, as JSON text, with an output bound of `cap` tokens. */
  writeBody(request: ModelRequest, cap: number, dialect: Dialect): string;
  /** A whole response. Throws 502 for one that is not valid. */
  translateWhole(bytes: Uint8Array, options: BridgeOptions): Uint8Array;
  createTranslator(options: BridgeOptions): EventTranslator;
}

/** Kinds of bodies besides JSON. Events pass on as sound does. */
export interface BodyTypes {
  /** Types of texts. */
  texts: readonly string[];
  /** Types that pass on as they arrive. */
  streamed: readonly string[];
}

/** The classes of tokens whose details a provider leaves out, or that we count ourselves. */
export interface TokenClasses {
  input: TokenClass;
  /** Null where responses have no output tokens. */
  output: TokenClass | null;
}

/** A body that has been passed on. */
export interface PassedBody {
  start: Uint8Array;
  /** Its length. */
  bytes: number;
}

/** Tools that run at the provider. */
export interface ProviderTools {
  /** Removes those that have no price, and bounds the calls of the others. */
  fitToPrice(
    request: ModelRequest,
    options: { covers: PriceCoverage; allowed: readonly string[]; toolCallsMax: number },
  ): FittedRequest;
  /** Whether they may have the model read more than the request contains. */
  readMore(request: ModelRequest): boolean;
}

/** What requests refer to by id, where an upstream keeps responses. */
interface KeptThings {
  /** What the request refers to. The pipeline checks that it is the account's own. */
  references(request: ModelRequest): readonly KeptReference[];
  /** The input items of the request, in which its references are replaced already. */
  inputItems(request: ModelRequest): readonly Json[];
  /** The request with what it refers to in place of the references. */
  withKept(request: ModelRequest, kept: KeptItems): ModelRequest;
}

/**
 * What an event brings: `none` for one that only begins or keeps alive a response, `output` for
 * something that its caller would miss, also the reason why the model ended, and `end` for the last
 * event of a stream.
 */
export type StreamProgress = "none" | "output" | "end";

/** What every wire format has: its requests, its errors, and what is read of any body. */
export interface RequestFormat extends ModelEndpoint {
  readonly name: FormatName;
  /** What the id of a response of ours begins with. */
  readonly idPrefix: string;
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
  /** Absent: tools at the provider that have no price are refused. */
  readonly tools?: ProviderTools;
  /** Absent: requests refer to nothing. */
  readonly kept?: KeptThings;
  /**
   * Validates a body. Throws 400 for a malformed one, and for fields that the policy refuses.
   */
  readRequest(
    body: JsonObject,
    options: { bytes: number; fields: FieldPolicy; file?: FormFile | null },
  ): ModelRequest;
  /** Throws 400 for what the request asks for and no price covers, unless it is in `allowed`. */
  requirePriced(request: ModelRequest, covers: PriceCoverage, allowed: readonly string[]): void;
  /** The conversation that the request belongs to; absent or null where it belongs to none. */
  conversationOf?(request: ModelRequest): Conversation | null;
  /** Parts of the prompt that are not text. */
  mediaParts(request: ModelRequest): Iterable<MediaPart>;
  /** Every text of the prompt that a model reads. */
  promptTexts(request: ModelRequest): Iterable<string>;
  /** Tokens that a chat template adds to the prompt. */
  templateTokens(request: ModelRequest): number;
  /** The most tokens that the provider adds to the prompt, which the body's bytes do not bound. */
  addedTokens?(request: ModelRequest): number;
  /** The body for the upstream, as JSON text or a form, with an output bound of `cap` tokens. */
  writeBody(request: ModelRequest, cap: number, dialect: Dialect): string | FormBytes;
  /** Reads a response, or an event, as text that is not parsed. */
  createScanner(): ResponseScanner;
  /** The error that an event is; null for other events. */
  errorOf(event: EventSourceMessage, apiKey: Secret | null): ApiError | null;
}

/** A format whose responses are texts of a model, which are parsed and written anew. */
export interface TextFormat extends RequestFormat {
  readonly kind: "text";
  /** Bridges to formats that an upstream may speak in its place, the preferred one first. */
  readonly bridges: readonly Bridge[];
  /** Reads a whole response. Throws 502 for one that is not valid. */
  readResponse(
    bytes: Uint8Array,
    options: { request: ModelRequest; head: ResponseHead; apiKey: Secret | null },
  ): CompleteResponse;
  /** Reads the events of a stream as a whole response, for a caller who did not ask for one. */
  createAssembler(
    options: { request: ModelRequest; head: ResponseHead; apiKey: Secret | null },
  ): EventAssembler;
  createStream(options: StreamOptions): StreamTransform;
  /** How far an event brings a stream that has had no output; an error brings it nowhere. */
  progressOf(event: EventSourceMessage): StreamProgress;
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

/**
 * A format whose responses pass on as they are: numbers, images, sound, transcripts. A refused user
 * gets 402, since a response has no text that could say it.
 */
export interface PassedFormat extends RequestFormat {
  readonly kind: "passed";
  /** The unit that responses can be priced by; null where tokens alone are. */
  readonly unit: UnitPrice | null;
  readonly classes: TokenClasses;
  /** Null: bodies are JSON. */
  readonly bodies: BodyTypes | null;
  /** Our own count of the output tokens of a body whose upstream reports none. */
  countOutput?(request: ModelRequest, body: PassedBody): number;
  /** What a model wrote in a whole body, for the meter. */
  textOf?(body: string, isJson: boolean): string;
}

/**
 * A wire format: everything about one kind of endpoint that the pipeline does not know. To add an
 * endpoint, implement this in a folder of `formats/`, and give it a row in `base/endpoints.ts` and
 * in `formats/served_endpoints.ts`.
 */
export type Format = TextFormat | PassedFormat;

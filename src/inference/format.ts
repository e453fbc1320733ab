import type { Secret } from "../base/secret.ts";
import type { EventSourceMessage } from "eventsource-parser";
import type { ApiError } from "../base/errors.ts";
import type { WriteErrorBody } from "../base/response.ts";
import type { FormatName } from "../base/format_names.ts";
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

import type { Secret } from "../base/secret.ts";
import type { EventSourceMessage } from "eventsource-parser";
import type { ApiError } from "../base/errors.ts";
import type { Json, JsonObject } from "../base/json.ts";
import type { LargeEventPart } from "../upstreams/event_reader.ts";
import type { Units } from "../pricing/units.ts";
import type { ReportedExtras } from "../pricing/usage.ts";
import type { BalanceNotice } from "./notice.ts";
import type { ModelRequest } from "./model_request.ts";

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

/** Ids in a response that later requests may refer to. */
export interface KeptIds {
  response: string;
  items: readonly string[];
  /** The items themselves, for an upstream that keeps none. */
  output?(): readonly Json[];
}

/** A complete upstream response. */
export interface CompleteResponse {
  /** Absent where the upstream keeps nothing of it. */
  kept?: KeptIds | null;
  served: ServedBy;
  /** All text that the model wrote, for the meter. */
  texts: Iterable<string>;
  /** The URLs of images that the model made; "" for one without a URL. */
  images: Iterable<string>;
  /**
   * Whether the same request may get it again: it has an answer, which is whole, and which nobody
   * has blocked or refused.
   */
  isAnswer(): boolean;
  /** Every usage that it reports, in order. */
  usages: readonly Json[];
  /** The response for the caller, as JSON text; `balance` is the balance after its charge. */
  write(final: { usage: JsonObject; notice: BalanceNotice; balance: string }): string;
  /** The response as events of a stream, for an upstream that ignores `stream: true`. */
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

/** A usage object for the caller, and whether both of its sides are what counts. */
export interface LastReport {
  usage: JsonObject;
  isWhole: boolean;
}

/** Where a stream's transform notes what the response uses. */
export interface StreamMeter {
  /** Whether the model has produced any output. */
  producedOutput: boolean;
  /** Whether the response has an image that the model made. */
  producedImage: boolean;
  /** Whether there is output that we could not read. */
  readonly hasUnreadOutput: boolean;
  /** The last usage above a bound; null where there was none. */
  readonly doubtful: JsonObject | null;
  /** The provider's last usage object that counts; null before any. */
  readonly reported: LastReport | null;
  /** Adds what a chunk says of the model and the tier that answer. */
  addServed(served: ServedBy): void;
  /** Adds a text that the model wrote. */
  addText(text: string): void;
  /** Adds an image that the model made, by its URL; the same one counts once. */
  addImage(url: string): void;
  /** Adds a reported usage. */
  addUsage(raw: Json | undefined): void;
  /** Adds calls of tools at the provider that were seen, by the tool's name. */
  addToolCalls(toolCalls: ReportedExtras["toolCalls"]): void;
  /** Notes output that we could not read: without a report, all that was held is charged. */
  noteUnreadOutput(): void;
}

/** What a stream's transform works with. */
export interface StreamOptions {
  request: ModelRequest;
  meter: StreamMeter;
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

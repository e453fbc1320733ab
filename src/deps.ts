import type { Clock } from "./base/clock.ts";
import type { MakeId } from "./base/ids.ts";
import type { Config } from "./config.ts";
import type { Metrics } from "./metrics/metrics.ts";
import type { Tracing } from "./metrics/tracing.ts";
import type { Committer } from "./store/commit.ts";
import type { Kv } from "./store/kv.ts";

/** One line of structured log. Never give it a secret or a message's text. */
export type Log = (
  level: "debug" | "info" | "warn" | "error",
  event: string,
  fields?: LogFields,
) => void;

/** What else a line says: anything but what each line has. */
export type LogFields = Record<string, unknown> & { time?: never; level?: never; event?: never };

/** A webhook on its way to addresses that have been vetted. */
export interface WebhookHttpRequest {
  url: URL;
  /** Where to connect: to one of these and nowhere else, whatever the name stands for by now. */
  addresses: readonly string[];
  headers: Record<string, string>;
  body: string;
  signal: AbortSignal;
}

/** What a receiver answered; of its body only the head is kept. */
export interface WebhookHttpResponse {
  status: number;
  retryAfter: string | null;
  bodyHead: string;
}

/** A request to an upstream. */
export interface UpstreamRequest {
  url: string;
  method: "GET" | "POST";
  /** By names in small letters. */
  headers: Record<string, string>;
  body: string | null;
  /** Ends the call, also while its body is read. */
  signal: AbortSignal;
  /** Told when the server is about to be sent something. */
  onSend?: (() => void) | undefined;
}

/** An upstream's response. Its body has to be read to its end, or let go. */
export interface UpstreamResponse {
  status: number;
  /** By its name in small letters; null where there is none. */
  header(name: string): string | null;
  body: UpstreamBody;
}

/** A body that is read at its reader's pace. */
export interface UpstreamBody {
  /**
   * The next piece, which is good until the next call; null at the end. Rejects when it breaks off.
   */
  read(): Promise<Uint8Array<ArrayBuffer> | null>;
  /** Lets the server go at once. */
  cancel(): void;
  /**
   * Lets the server go whose answer has been read: what little may be left of it can still come.
   */
  finish(): void;
}

/** Sends a request, and follows no redirect. Rejects when no answer comes. */
export type RequestUpstream = (request: UpstreamRequest) => Promise<UpstreamResponse>;

/**
 * A copy of the whole database as it was at one moment. Its room is free once it is read or left.
 */
export interface Snapshot {
  bytes: number;
  stream: ReadableStream<Uint8Array>;
}

/** Rings at a time, or does not: nothing may be correct only because it did. */
export interface Alarm {
  /** Asks to be rung at that time, in milliseconds since 1970; rings close together are one. */
  schedule(at: number): void;
  onWake(wake: () => void): void;
}

/** What a process knows of itself. */
export interface ProcessFacts {
  /** In milliseconds since 1970. */
  startedAt: number;
  /** What it runs on, as names and versions. */
  runtime: Record<string, string>;
  /** In bytes. */
  memory(): { rss: number; heapUsed: number };
  cpuSeconds(): number;
}

/** The one door to the outside: everything impure or shared that the rooms may use. */
export interface Deps {
  config: Config;
  kv: Kv;
  committer: Committer;
  clock: Clock;
  id: MakeId;
  randomBytes(length: number): Uint8Array<ArrayBuffer>;
  fetch: (url: string, init: RequestInit) => Promise<Response>;
  /** Asks an upstream. */
  requestUpstream: RequestUpstream;
  /** The addresses that a host name stands for now. Throws when there are none. */
  resolve(host: string): Promise<string[]>;
  /** Posts one webhook. Follows no redirect. Throws when no answer comes. */
  sendWebhook(request: WebhookHttpRequest): Promise<WebhookHttpResponse>;
  alarm: Alarm;
  /** Copies the database while it works; null where it is no file of this process. */
  takeSnapshot: (() => Promise<Snapshot>) | null;
  log: Log;
  /** The guides' markdown by the names of their files, such as "going-live". */
  guides: ReadonlyMap<string, string>;
  /** What is counted, for Prometheus. */
  metrics: Metrics;
  /** Null while nobody traces. */
  tracing: Tracing | null;
  process: ProcessFacts;
}

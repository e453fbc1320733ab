import type { Clock } from "./base/clock.ts";
import type { FormatName } from "./base/endpoints.ts";
import type { Holders } from "./base/holders.ts";
import type { MakeId } from "./base/ids.ts";
import type { Config } from "./config/config.ts";
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

/** Additional fields of a log line; the fields that every line has are excluded. */
export type LogFields = Record<string, unknown> & { time?: never; level?: never; event?: never };

/** A call of a model, as the log shows it to people. It has no text of the request. */
export interface ShownCall {
  endpoint: FormatName;
  /** The status of the response. */
  status: number;
  /** Why it failed or was refused: a code; null where it completed. */
  reason: string | null;
  /** Null where the request did not get as far as to name one. */
  user: string | null;
  model: string | null;
  latencyMs: number;
  /** What was charged, as a decimal string. */
  cost: string;
  currency: string;
}

/** One e-mail. */
export interface Mail {
  /** Unique; the same when it is sent again after an error, so that clients show it once. */
  id: string;
  to: readonly string[];
  subject: string;
  text: string;
  html: string;
}

/** One HTTP request of a webhook, to addresses that have been checked. */
export interface WebhookHttpRequest {
  url: URL;
  /** Connect only to one of these, whatever the name resolves to by now. */
  addresses: readonly string[];
  headers: Record<string, string>;
  body: string;
  signal: AbortSignal;
  /** Uses no kept connection: one has just turned out to be closed. */
  newConnection?: boolean | undefined;
  /** Called as the attempt proceeds, for an error after which there is no response. */
  onProgress?: ((progress: WebhookProgress) => void) | undefined;
}

/** How far an attempt has come: the request is being sent, or the response's head has arrived. */
export type WebhookProgress = { sent: true } | {
  head: Pick<WebhookHttpResponse, "status" | "retryAfter">;
};

/** A receiver's response. Only the start of its body is kept. */
export interface WebhookHttpResponse {
  status: number;
  retryAfter: string | null;
  bodyHead: string;
}

/** A request to an upstream. */
export interface UpstreamRequest {
  url: string;
  method: "GET" | "POST" | "DELETE";
  /** By lower-case names. */
  headers: Record<string, string>;
  body: string | Uint8Array<ArrayBuffer> | null;
  /** Ends the call, also while its body is read. */
  signal: AbortSignal;
  /** For whom its server's name is looked up: see `Deps.resolve`. Absent: the operator. */
  owner?: string;
  /**
   * Called with true when the request is about to be sent. Called with false when its server turns
   * out to have closed a kept connection before; the request is then sent again on a new one.
   */
  onSend?: ((sent: boolean) => void) | undefined;
}

/** An upstream's response. Its body must be read to its end, canceled or finished. */
export interface UpstreamResponse {
  status: number;
  /** A header by its lower-case name; null where it is absent. */
  header(name: string): string | null;
  body: UpstreamBody;
}

/** A body that is read at its reader's pace. */
export interface UpstreamBody {
  /**
   * The next piece, valid until the next call; null at the end. Rejects when the body ends early.
   */
  read(): Promise<Uint8Array<ArrayBuffer> | null>;
  /** Closes the connection. */
  cancel(): void;
  /**
   * Releases the connection after the response has been read, and reads a short rest.
   */
  finish(): void;
}

/** Sends a request without following redirects. Rejects when no response arrives. */
export type RequestUpstream = (request: UpstreamRequest) => Promise<UpstreamResponse>;

/**
 * A consistent copy of the whole database. Its disk space is freed once it is read or canceled.
 */
export interface Snapshot {
  bytes: number;
  stream: ReadableStream<Uint8Array>;
}

/** A wake-up timer shared through the store. Best effort: correctness must not depend on it. */
export interface Alarm {
  /** Schedules a wake-up, in milliseconds since 1970. Close ones are merged. */
  schedule(at: number): void;
  onWake(wake: () => void): void;
}

/** Facts about this process. */
export interface ProcessFacts {
  /** In milliseconds since 1970. */
  startedAt: number;
  /** Runtime components by name, with versions. */
  runtime: Record<string, string>;
  /** In bytes. */
  memory(): { rss: number; heapUsed: number };
  cpuSeconds(): number;
}

/** Everything impure or shared that a module may use. */
export interface Deps {
  config: Config;
  kv: Kv;
  committer: Committer;
  clock: Clock;
  id: MakeId;
  randomBytes(length: number): Uint8Array<ArrayBuffer>;
  fetch: (url: string, init: RequestInit) => Promise<Response>;
  /** Sends a request to an upstream. */
  requestUpstream: RequestUpstream;
  /**
   * Resolves a host name to IP addresses. Throws when there are none. `owner` is the project for
   * which it is done, or `operator`: each has a share of the lookups that run at once.
   */
  resolve(host: string, owner: string): Promise<string[]>;
  /**
   * Sends one webhook without following redirects. Throws `DeliveryError` when no complete response
   * arrives.
   */
  sendWebhook(request: WebhookHttpRequest): Promise<WebhookHttpResponse>;
  /** Sends an e-mail. Rejects where the server does not accept it. Null where it is not set up. */
  sendMail: ((mail: Mail) => Promise<void>) | null;
  alarm: Alarm;
  /** Copies the database while it is in use; null where it is not a file of this process. */
  takeSnapshot: (() => Promise<Snapshot>) | null;
  log: Log;
  /** Shows a call of a model to people, at its end; null where the log is for programs. */
  showCall: ((call: ShownCall) => void) | null;
  /** The guides' markdown by the names of their files, such as "going-live". */
  guides: ReadonlyMap<string, string>;
  /** The fonts of the pages, by the names of their files. */
  fonts: ReadonlyMap<string, Uint8Array<ArrayBuffer>>;
  /** Metrics for Prometheus. */
  metrics: Metrics;
  /** Null where tracing is off. */
  tracing: Tracing | null;
  process: ProcessFacts;
  /** The processes that share the store, as those who hold something there. */
  holders: Holders;
}

/** What the service is made from: everything but what it makes of that itself. */
export type OutsideDeps = Omit<Deps, "holders">;

import type { ScriptedRequest } from "./scripted_server.ts";
import type { HandClock } from "./clock.ts";

/** A call that the upstream received. */
export interface ReceivedCall {
  url: string;
  headers: Headers;
  // deno-lint-ignore no-explicit-any -- what a test reads of a call, it asserts
  body: any;
  text: string;
  /** The form, where the body is one. */
  form(): Promise<FormData>;
  signal: AbortSignal;
}

/** An upstream that responds as a test defines. */
export interface UpstreamScript {
  /** Every call, in order. */
  calls: ReceivedCall[];
  /** Sets the response to calls from now on; responses of `once` come first. */
  reply(answer: Answerer): void;
  /** Sets the response to one call, before that of `reply`. */
  once(answer: Answerer): void;
  answer(request: ScriptedRequest): Promise<Response>;
}

type Answerer = (call: ReceivedCall) => Response | Promise<Response>;

export function createUpstreamScript(_clock: HandClock): UpstreamScript {
  const calls: ReceivedCall[] = [];
  const queued: Answerer[] = [];
  let usual: Answerer = () => completion();
  return {
    calls,
    reply: (answer) => void (usual = answer),
    once: (answer) => void queued.push(answer),
    async answer({ url, headers, body: text, bytes, signal }) {
      const isForm = headers.get("content-type")?.startsWith("multipart/") ?? false;
      const body = text && !isForm ? JSON.parse(text) : null;
      const form = () => new Response(bytes, { headers }).formData();
      const call = { url, headers, body, text, form, signal };
      calls.push(call);
      return await (queued.shift() ?? usual)(call);
    },
  };
}

/** Usage as OpenAI reports it. */
export function usage(prompt: number, completion: number, more: Record<string, unknown> = {}) {
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    ...more,
  };
}

/** A whole completion: "Hello there" for 10 tokens in and 5 out by default. */
export function completion(
  fields: Record<string, unknown> = {},
  init: ResponseInit = {},
): Response {
  return Response.json({
    id: "chatcmpl-up",
    object: "chat.completion",
    created: 1767225600,
    model: "test-model",
    choices: [{
      index: 0,
      message: { role: "assistant", content: "Hello there" },
      finish_reason: "stop",
    }],
    usage: usage(10, 5),
    ...fields,
  }, init);
}

/** One chunk of a stream. */
export function chunk(
  delta: Record<string, unknown>,
  finish: string | null = null,
  more: Record<string, unknown> = {},
) {
  return {
    id: "chatcmpl-up",
    object: "chat.completion.chunk",
    created: 1767225600,
    model: "test-model",
    choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
    ...more,
  };
}

/** The chunk that reports usage. */
export function usageChunk(used: Record<string, unknown> = usage(10, 5)) {
  return { ...chunk({}), choices: [], usage: used };
}

/** A stream of these events and `[DONE]`: objects become JSON, strings are data as they stand. */
export function sse(events: unknown[], { done = true } = {}): Response {
  const frames = [...events, ...(done ? ["[DONE]"] : [])].map((event) =>
    `data: ${typeof event === "string" ? event : JSON.stringify(event)}\n\n`
  );
  return sseBytes(frames.map((frame) => new TextEncoder().encode(frame)));
}

/** A stream of exactly these bytes, one read each. */
export function sseBytes(parts: Uint8Array[]): Response {
  const left = [...parts];
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      const part = left.shift();
      if (part) controller.enqueue(part);
      else controller.close();
    },
  }, { highWaterMark: 0 });
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}

/** The usual stream: role, "Hello", " there", stop, usage. */
export function helloStream(): Response {
  return sse([
    chunk({ role: "assistant", content: "" }),
    chunk({ content: "Hello" }),
    chunk({ content: " there" }),
    chunk({}, "stop"),
    usageChunk(),
  ]);
}

/** A stream that a test controls. */
export interface FedStream {
  response: Response;
  send(event: unknown): void;
  end(): void;
  fail(): void;
  /** Whether all that was sent has been read. */
  isRead(): boolean;
  /** Resolves when its reader cancels it. */
  cancelled: Promise<void>;
}

export function fedStream(): FedStream {
  let controller: ReadableStreamDefaultController<Uint8Array>;
  let cancel = () => {};
  const cancelled = new Promise<void>((resolve) => (cancel = resolve));
  const body = new ReadableStream<Uint8Array>({
    start: (made) => void (controller = made),
    cancel: () => cancel(),
  });
  return {
    response: new Response(body, { headers: { "content-type": "text/event-stream" } }),
    send(event) {
      const data = typeof event === "string" ? event : JSON.stringify(event);
      controller.enqueue(new TextEncoder().encode(`data: ${data}\n\n`));
    },
    end: () => controller.close(),
    fail: () => controller.error(new TypeError("error reading a body from connection")),
    isRead: () => controller.desiredSize === 1,
    cancelled,
  };
}

/** A stream's events as its caller reads them: parsed JSON, and "[DONE]". */
// deno-lint-ignore no-explicit-any -- what a test reads of an answer, it asserts
export async function readEvents(response: Response): Promise<any[]> {
  const text = await response.text();
  return text.split("\n\n").filter((frame) => frame.startsWith("data: "))
    .map((frame) => frame.slice("data: ".length))
    .map((data) => (data === "[DONE]" ? data : JSON.parse(data)));
}

import { chunk, completion, usage, usageChunk } from "../support/upstream.ts";
import type { ScriptedRequest, ScriptedServer } from "../support/scripted_server.ts";
import type { Holder } from "./store_line.ts";
import type { Timeline } from "./timeline.ts";

/** One call as the upstream knows it: what it may be charged for. */
export interface ModelCall {
  requestId: string;
  user: string;
  stream: boolean;
  /** Bytes of the request: no tokenizer counts more tokens. */
  promptBytes: number;
  /** Bytes of output that the upstream has sent. */
  producedBytes: number;
  /** Tokens as the upstream reports them, once it has. */
  reported: { input: number; output: number } | null;
}

type Scene =
  | "usual"
  | "no usage"
  | "500"
  | "429"
  | "a page"
  | "breaks off"
  | "hangs";

const scenes: readonly [Scene, number][] = [
  ["usual", 78],
  ["no usage", 8],
  ["500", 5],
  ["429", 3],
  ["a page", 1],
  ["breaks off", 4],
  ["hangs", 1],
];

/** What a response has besides tokens, decided by them: no further chance is needed. */
export function extrasOf({ input, output }: { input: number; output: number }) {
  return { searches: input % 3, tier: output % 2 === 0 ? "default" : "flex" };
}

function usageOf(tokens: { input: number; output: number }) {
  const { searches, tier } = extrasOf(tokens);
  return usage(tokens.input, tokens.output, {
    server_tool_use: { web_search_requests: searches },
    service_tier: tier,
  });
}

const encoder = new TextEncoder();
const words = "one two three four five six seven eight nine ten ";

/** The upstream: responds, streams, fails and hangs at random, and keeps its own ledger. */
export class ModelServer {
  readonly calls = new Map<string, ModelCall>();
  /** Called when a chunk of a stream is about to reach a process. */
  onPiece: (holder: Holder) => void = () => {};
  /** Called with a second call for one request. */
  onRepeated: (call: ModelCall) => void = () => {};
  readonly #timeline: Timeline;

  constructor(timeline: Timeline) {
    this.#timeline = timeline;
  }

  /** Returns the server as one process reaches it. */
  serve(holder: Holder): ScriptedServer {
    const timeline = this.#timeline;
    return {
      accept: () =>
        new Promise((resolve, reject) => {
          const refused = timeline.chance(0.03);
          timeline.after(timeline.between(0.2, 40), () => {
            if (holder.dead) return;
            if (refused) reject(new TypeError("connection refused"));
            else resolve();
          });
        }),
      respond: (request) => this.#respond(holder, request),
      keepAlive: () => timeline.chance(0.6),
      dropKept: () => timeline.chance(0.03),
    };
  }

  #respond(holder: Holder, request: ScriptedRequest): Promise<Response> {
    if (holder.dead) return new Promise(() => {});
    const { call, cap, signal } = this.#receive(request);
    return new Promise((resolve, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      if (signal.aborted) return reject(signal.reason);
      const scene = this.#scene();
      const timeline = this.#timeline;
      timeline.trace.note(timeline.elapsed, `model ${call.requestId}: ${scene}`);
      if (scene === "hangs") return;
      const ms = timeline.chance(0.03) && !call.stream
        ? timeline.between(15_000, 58_000)
        : timeline.between(2, 800);
      timeline.after(ms, () => {
        if (holder.dead) return;
        resolve(this.#answer(holder, { call, cap, scene, signal }));
      });
    });
  }

  #receive(
    { body: text, headers, signal }: ScriptedRequest,
  ): { call: ModelCall; cap: number; signal: AbortSignal } {
    const body = JSON.parse(text);
    const requestId = headers.get("x-request-id") ?? "";
    const call: ModelCall = {
      requestId,
      user: body.user,
      stream: body.stream === true,
      promptBytes: text.length,
      producedBytes: 0,
      reported: null,
    };
    if (this.calls.has(requestId)) this.onRepeated(call);
    this.calls.set(requestId, call);
    return { call, cap: body.max_tokens, signal };
  }

  #scene(): Scene {
    let left = this.#timeline.between(0, 100);
    for (const [scene, share] of scenes) {
      left -= share;
      if (left < 0) return scene;
    }
    return "usual";
  }

  #answer(
    holder: Holder,
    { call, cap, scene, signal }: {
      call: ModelCall;
      cap: number;
      scene: Scene;
      signal: AbortSignal;
    },
  ): Response {
    if (scene === "500" || scene === "429") {
      return Response.json({ error: { message: "not now" } }, { status: Number(scene) });
    }
    if (scene === "a page") {
      return new Response("<html>", { headers: { "content-type": "text/html" } });
    }
    const timeline = this.#timeline;
    // Now and then a server ignores the bound.
    const output = timeline.chance(0.04) ? 2 * cap : timeline.whole(1, Math.min(cap, 120));
    const tokens = { input: timeline.whole(8, 60), output };
    if (call.stream) return this.#stream(holder, { call, tokens, scene, signal });
    const content = words.slice(0, timeline.whole(3, words.length));
    call.producedBytes = content.length;
    if (scene === "breaks off") return new Response('{"choices": [', {});
    if (scene === "usual") call.reported = tokens;
    const choices = [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }];
    const fields = { choices, usage: call.reported && usageOf(tokens) };
    return completion(fields);
  }

  #stream(
    holder: Holder,
    { call, tokens, scene, signal }: {
      call: ModelCall;
      tokens: { input: number; output: number };
      scene: Scene;
      signal: AbortSignal;
    },
  ): Response {
    const timeline = this.#timeline;
    const pieces = timeline.whole(1, 7);
    const slow = timeline.chance(0.06);
    const events: unknown[] = [chunk({ role: "assistant", content: "" })];
    for (let piece = 0; piece < pieces; piece++) events.push(chunk({ content: words }));
    if (scene !== "breaks off") {
      events.push(chunk({}, "stop"));
      if (scene === "usual") events.push(usageChunk(usageOf(tokens)));
      events.push("[DONE]");
    }
    let ended = false;
    const send = (controller: ReadableStreamDefaultController<Uint8Array>) => {
      const event = events.shift();
      if (event === undefined) {
        ended = true;
        return timeline.chance(0.5) ? controller.close() : controller.error(new TypeError("reset"));
      }
      const data = typeof event === "string" ? event : JSON.stringify(event);
      if (data.includes('"total_tokens"')) call.reported = tokens;
      if (data.includes(words)) call.producedBytes += words.length;
      controller.enqueue(encoder.encode(`data: ${data}\n\n`));
    };
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        signal.addEventListener("abort", () => {
          if (!ended) controller.error(signal.reason);
          ended = true;
        }, { once: true });
      },
      pull: (controller) =>
        new Promise((resolve) => {
          timeline.after(timeline.between(0.5, slow ? 14_000 : 150), () => {
            this.onPiece(holder);
            if (holder.dead) return;
            if (!ended) send(controller);
            resolve();
          });
        }),
      cancel: () => void (ended = true),
    }, { highWaterMark: 0 });
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  }
}

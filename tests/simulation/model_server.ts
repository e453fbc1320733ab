import {
  formatOf,
  frameOf,
  type ModelFormat,
  type Said,
  type Tokens,
  wholeResponse,
} from "../support/model_formats.ts";
import type { ScriptedRequest, ScriptedServer } from "../support/scripted_server.ts";
import type { Holder } from "./store_line.ts";
import type { Timeline } from "./timeline.ts";

/** One call as the upstream knows it: what it may be charged for. */
export interface ModelCall {
  requestId: string;
  /** Where it was received. */
  host: string;
  user: string;
  format: ModelFormat;
  stream: boolean;
  /** Bytes of the request, and of what it continues: no tokenizer counts more tokens. */
  promptBytes: number;
  /** Bytes of output that the upstream has sent. */
  producedBytes: number;
  /** Tokens as the upstream reports them, once it has. */
  reported: Tokens | null;
  /** Tokens that the upstream reports in a response that it then breaks off. */
  billed: Tokens | null;
  /** Events of a stream that it has sent. */
  events: number;
  /** Nothing more is sent for it. */
  ended: boolean;
}

/** How a host is down. */
type Outage = "refuses" | "fails" | "hangs";

type Scene =
  | "usual"
  | "no usage"
  | "500"
  | "429"
  | "a page"
  | "breaks off"
  | "bills and breaks off"
  | "503"
  | "fails with 200"
  | "hangs";

const scenes: readonly [Scene, number][] = [
  ["usual", 78],
  ["no usage", 8],
  ["500", 4],
  ["429", 2],
  ["503", 1],
  ["fails with 200", 1],
  ["a page", 1],
  ["breaks off", 3],
  ["bills and breaks off", 1],
  ["hangs", 1],
];

const encoder = new TextEncoder();
const words = "one two three four five six seven eight nine ten ";

/** The upstream: responds, streams, fails and hangs at random, and keeps its own ledger. */
export class ModelServer {
  /** The last call of each request. */
  readonly calls = new Map<string, ModelCall>();
  /** All calls of each request, in order. */
  readonly attempts = new Map<string, ModelCall[]>();
  /** Called when a chunk of a stream is about to reach a process. */
  onPiece: (holder: Holder) => void = () => {};
  /** Called with a further call for one request, and those before it. */
  onRepeated: (call: ModelCall, before: readonly ModelCall[]) => void = () => {};
  /** Called with a call that continues a response of another user's. */
  onForeign: (call: ModelCall) => void = () => {};
  /** Called with a call that continues a response which another host gave. */
  onStray: (call: ModelCall) => void = () => {};
  readonly #outages = new Map<string, { outage: Outage; until: number }>();
  readonly #timeline: Timeline;

  constructor(timeline: Timeline) {
    this.#timeline = timeline;
  }

  /** Returns the server as one process reaches it. */
  serve(holder: Holder): ScriptedServer {
    const timeline = this.#timeline;
    return {
      accept: ({ hostname }) =>
        new Promise((resolve, reject) => {
          const refused = timeline.chance(0.03) || this.#outageOf(hostname) === "refuses";
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
      signal.addEventListener("abort", () => (call.ended = true), { once: true });
      if (signal.aborted) return reject(signal.reason);
      const scene = this.#scene(call.host);
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
    { url, body: text, headers, signal }: ScriptedRequest,
  ): { call: ModelCall; cap: number; signal: AbortSignal } {
    const body = JSON.parse(text);
    const requestId = headers.get("x-request-id") ?? "";
    const format = formatOf(url);
    const earlier = this.#continued(body);
    const call: ModelCall = {
      requestId,
      host: new URL(url).hostname,
      user: body.user ?? body.metadata?.user_id,
      format,
      stream: body.stream === true,
      promptBytes: text.length + (earlier ? lengthOf(earlier) : 0),
      producedBytes: 0,
      reported: null,
      billed: null,
      events: 0,
      ended: false,
    };
    const before = this.attempts.get(requestId) ?? [];
    if (before.length > 0) this.onRepeated(call, before);
    if (earlier && earlier.user !== call.user) this.onForeign(call);
    if (earlier && earlier.host !== call.host) this.onStray(call);
    this.calls.set(requestId, call);
    this.attempts.set(requestId, [...before, call]);
    return { call, cap: format.capOf(body), signal };
  }

  /** The call that a request continues. */
  #continued(body: { previous_response_id?: string }): ModelCall | undefined {
    const { previous_response_id: previous } = body;
    return previous === undefined ? undefined : this.calls.get(previous.replace("resp_", ""));
  }

  /** Begins an outage of a host now and then. */
  #outageOf(host: string): Outage | null {
    const timeline = this.#timeline;
    if (host !== "upstream.test" && timeline.chance(0.02)) {
      const until = timeline.elapsed + timeline.between(2_000, 20_000);
      this.#outages.set(host, { outage: timeline.pick(["refuses", "fails", "hangs"]), until });
    }
    const found = this.#outages.get(host);
    return found && timeline.elapsed < found.until ? found.outage : null;
  }

  #scene(host: string): Scene {
    const outage = this.#outageOf(host);
    if (outage === "fails") return "500";
    if (outage === "hangs") return "hangs";
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
    if (scene === "500" || scene === "429" || scene === "503") {
      call.ended = true;
      const headers = scene === "503" ? { "retry-after": "2" } : undefined;
      const error = { message: "not now" };
      return Response.json({ error }, { status: Number(scene), ...(headers ? { headers } : {}) });
    }
    if (scene === "fails with 200") {
      call.ended = true;
      return Response.json({ error: { message: "not now", code: 503 } });
    }
    if (scene === "a page") {
      call.ended = true;
      return new Response("<html>", { headers: { "content-type": "text/html" } });
    }
    const timeline = this.#timeline;
    // Now and then a server ignores the bound.
    const output = timeline.chance(0.04) ? 2 * cap : timeline.whole(1, Math.min(cap, 120));
    const { format, requestId: id } = call;
    const tokens = { input: timeline.whole(8, 60), output: format.hasOutput ? output : 0 };
    if (call.stream) return this.#stream(holder, { call, tokens, scene, signal });
    call.ended = true;
    const text = words.slice(0, timeline.whole(3, words.length));
    call.producedBytes = text.length;
    if (scene === "bills and breaks off") return this.#bill(call, { id, text });
    if (scene === "breaks off") return new Response('{"choices": [', {});
    if (scene === "usual") call.reported = tokens;
    return wholeResponse(format, { id, text, tokens: call.reported });
  }

  /** A whole response that reports its usage, and breaks off after that. */
  #bill(call: ModelCall, { id, text }: { id: string; text: string }): Response {
    const timeline = this.#timeline;
    const output = call.format.hasOutput ? 2 * timeline.whole(1, 20) : 0;
    const tokens = { input: 3 * timeline.whole(3, 15), output };
    const body = JSON.stringify(call.format.whole({ id, text, tokens }));
    const bytes = encoder.encode(body.slice(0, -1));
    let sent = false;
    const stream = new ReadableStream<Uint8Array>({
      pull(controller) {
        if (sent) return controller.error(new TypeError("reset"));
        sent = true;
        // Of a bill that never arrives nobody knows.
        call.billed = tokens;
        controller.enqueue(bytes);
      },
    }, { highWaterMark: 0 });
    return new Response(stream, { headers: { "content-type": "application/json" } });
  }

  #stream(
    holder: Holder,
    { call, tokens, scene, signal }: {
      call: ModelCall;
      tokens: Tokens;
      scene: Scene;
      signal: AbortSignal;
    },
  ): Response {
    const timeline = this.#timeline;
    const pieces = timeline.whole(1, 7);
    const slow = timeline.chance(0.06);
    const reported = scene === "usual" ? tokens : null;
    const said: Said = { id: call.requestId, text: words, tokens: reported };
    const breaksOff = scene === "breaks off" || scene === "bills and breaks off";
    const events = call.format.events(said, pieces, breaksOff);
    let ended = false;
    const end = () => {
      ended = true;
      call.ended = true;
    };
    const send = (controller: ReadableStreamDefaultController<Uint8Array>) => {
      const event = events.shift();
      if (event === undefined) {
        end();
        return timeline.chance(0.5) ? controller.close() : controller.error(new TypeError("reset"));
      }
      call.events++;
      if (event.says === "usage") call.reported = tokens;
      if (event.says === "text") call.producedBytes += words.length;
      controller.enqueue(encoder.encode(frameOf(event)));
    };
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        signal.addEventListener("abort", () => {
          if (!ended) controller.error(signal.reason);
          end();
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
      cancel: end,
    }, { highWaterMark: 0 });
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  }
}

/** The most that a reference to a call adds to a prompt: its tokens, with our counts' margin. */
function lengthOf({ promptBytes, producedBytes, reported }: ModelCall): number {
  const counted = 2 * (promptBytes + producedBytes) + 64;
  return reported ? Math.max(counted, reported.input + reported.output) : counted;
}

import assert from "node:assert/strict";
import { formatAmount, fromDecimal } from "../../src/base/money.ts";
import { formatOf, frameOf, wholeResponse } from "./model_formats.ts";
import type { Farebox } from "./process.ts";
import { chunk, usageChunk } from "./upstream.ts";
import { adminKey, type Body, testPricing } from "./world.ts";

/** An upstream whose responses take a while. */
interface SlowUpstream extends AsyncDisposable {
  url: string;
  /** Calls that it is serving now. */
  readonly running: number;
}

const piecesOfStream = 20;

/** Starts it: the n-th call takes `answerMs(n)` in all, streamed in chunks or at once. */
export function startSlowUpstream(answerMs: (n: number) => number): SlowUpstream {
  let calls = 0;
  let running = 0;
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    const { stream } = await request.json();
    const format = formatOf(request.url);
    const said = { id: `up${calls}`, text: "piece ", tokens: { input: 10, output: 5 } };
    const ms = answerMs(calls++);
    running++;
    if (stream) {
      const frames = format.events(said, piecesOfStream, false).map(frameOf);
      return new Response(slowPieces(ms, frames, () => running--), eventStream);
    }
    await sleep(ms, request.signal);
    running--;
    return wholeResponse(format, said);
  });
  return {
    url: `http://127.0.0.1:${server.addr.port}`,
    get running() {
      return running;
    },
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

const eventStream = { headers: { "content-type": "text/event-stream" } };

function slowPieces(
  ms: number,
  frames: readonly string[],
  ended: () => void,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  async function* slowly() {
    for (const frame of frames) {
      await sleep(ms / frames.length);
      yield frame;
    }
  }
  const source = slowly();
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await source.next();
      if (!done) return controller.enqueue(encoder.encode(value));
      ended();
      controller.close();
    },
    cancel() {
      ended();
      source.return();
    },
  }, { highWaterMark: 0 });
}

/** Resolves after this time, or when `signal` aborts. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, ms);
    signal?.addEventListener("abort", done);
    function done() {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    }
  });
}

/** An upstream that streams as fast as it is read. */
interface LongUpstream extends AsyncDisposable {
  url: string;
  /** Chunks that it has sent, or that wait to be sent. */
  readonly sent: number;
}

/** Starts it: every response has this many chunks of this many characters. */
export function startLongUpstream(
  { pieces, pieceChars }: { pieces: number; pieceChars: number },
): LongUpstream {
  let sent = 0;
  const encoder = new TextEncoder();
  const frame = (event: unknown) => encoder.encode(`data: ${JSON.stringify(event)}\n\n`);
  const piece = frame(chunk({ content: "word ".repeat(pieceChars / 5) }));
  const answer = () =>
    new ReadableStream<Uint8Array>({
      pull(controller) {
        if (sent++ < pieces) return controller.enqueue(piece);
        controller.enqueue(frame(chunk({}, "stop")));
        controller.enqueue(frame(usageChunk()));
        controller.enqueue(encoder.encode("data: [DONE]\n\n"));
        controller.close();
      },
    }, { highWaterMark: 0 });
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    await request.body?.cancel();
    return new Response(answer(), eventStream);
  });
  return {
    url: `http://127.0.0.1:${server.addr.port}`,
    get sent() {
      return sent;
    },
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

/**
 * Creates a project priced as in `createWorld`, with responses up to this length; returns its key.
 */
export async function makeProject(farebox: Farebox, maxOutputTokens = 1_000): Promise<string> {
  const { models: { "test-model": price } } = testPricing;
  const pricing = { models: { "test-model": { ...price, maxOutputTokens } } };
  const limits = { user: { concurrent: null } };
  const body = { name: "Test", pricing, maxOutputTokens, limits };
  return (await farebox.json("/v1/admin/projects", { key: adminKey, body })).apiKey;
}

/** A call, as its caller observed it. */
interface Attempt {
  user: string;
  /** The entry that the service named, if it got that far. */
  activityId: string | null;
  /** Whether the response was complete. */
  ended: boolean;
}

/** Sends one call. Never throws: a dying service is what it tests. */
export async function ask(
  farebox: Farebox,
  { key, user, stream }: { key: string; user: string; stream: boolean },
): Promise<Attempt> {
  const attempt: Attempt = { user, activityId: null, ended: false };
  const messages = [{ role: "user", content: "Hello" }];
  const body = { model: "test-model", user, stream, messages, max_tokens: 200 };
  try {
    const response = await farebox.call("/v1/chat/completions", { key, body });
    attempt.activityId = response.headers.get("x-service-activity-id");
    const text = await response.text();
    attempt.ended = stream
      ? text.endsWith("data: [DONE]\n\n")
      : JSON.parse(text).usage.cost_exact !== "";
  } catch (error) {
    assert.ok(error instanceof TypeError, String(error));
  }
  return attempt;
}

/** A user's money as the service reports it. */
export interface Books {
  balance: string;
  held: string;
  available: string;
  /** Oldest first. */
  entries: Body[];
}

/** Reads all of a user's entries, page by page, and asserts that they add up to the balance. */
export async function readBooks(farebox: Farebox, key: string, user: string): Promise<Books> {
  const entries: Body[] = [];
  for (let cursor = ""; cursor !== null;) {
    const page: Body = await farebox.json(
      `/v1/user/activities?user=${user}&limit=7${cursor && `&cursor=${cursor}`}`,
      { key },
    );
    entries.unshift(...page.activities.toReversed());
    cursor = page.nextCursor;
  }
  let sum = 0n;
  for (const { id, delta, balanceAfter } of entries) {
    sum += fromDecimal(delta);
    assert.equal(formatAmount(sum), balanceAfter, `the balance after ${id}`);
  }
  assert.equal(new Set(entries.map(({ id }) => id)).size, entries.length, "each entry once");
  const { balance, held, available } = await farebox.json(`/v1/user/balance?user=${user}`, { key });
  assert.equal(balance, formatAmount(sum), `${user}'s entries add up to the balance`);
  assert.equal(available, formatAmount(sum - fromDecimal(held)));
  return { balance, held, available, entries };
}

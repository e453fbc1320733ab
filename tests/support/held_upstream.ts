import assert from "node:assert/strict";
import { chunk, usageChunk } from "./upstream.ts";

/** An upstream that stops in the middle of a stream until it is told to continue. */
interface HeldUpstream extends AsyncDisposable {
  url: string;
  release(): void;
}

/** Starts it. */
export function startHeldUpstream(): HeldUpstream {
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const encoder = new TextEncoder();
  async function* pieces() {
    const frame = (data: unknown) => encoder.encode(`data: ${JSON.stringify(data)}\n\n`);
    yield frame(chunk({ role: "assistant", content: "first words" }));
    await released;
    yield frame(chunk({ content: "last words" }));
    yield frame(chunk({}, "stop"));
    yield frame(usageChunk());
    yield encoder.encode("data: [DONE]\n\n");
  }
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen() {} },
    () =>
      new Response(ReadableStream.from(pieces()), {
        headers: { "content-type": "text/event-stream" },
      }),
  );
  return {
    url: `http://127.0.0.1:${server.addr.port}`,
    release,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

/** Fails unless the first half of a held stream arrives before its second half is sent. */
export async function assertPassesAtOnce(answer: Response, upstream: HeldUpstream): Promise<void> {
  assert.equal(answer.status, 200);
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader() ?? assert.fail();
  let seen = "";
  while (!seen.includes("first words")) {
    const { done, value } = await reader.read();
    if (done) assert.fail(`ended with ${seen}`);
    seen += value;
  }
  // The upstream sends the rest only now: the part that was read did not wait for it.
  assert.ok(!seen.includes("last words"));
  upstream.release();
  for (let next = await reader.read(); !next.done; next = await reader.read()) seen += next.value;
  assert.match(seen, /last words[^]*\[DONE\]/);
}

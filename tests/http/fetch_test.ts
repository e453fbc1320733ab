import assert from "node:assert/strict";
import type { UpstreamBody, UpstreamResponse } from "../../src/deps.ts";
import { requestByFetch } from "../../src/http/by_fetch.ts";
import { inflated } from "../../src/http/inflate.ts";
import { settle } from "../support/clock.ts";

const { signal: unaborted } = new AbortController();

async function bytesOf(body: UpstreamBody): Promise<number[]> {
  const bytes: number[] = [];
  for (let piece = await body.read(); piece; piece = await body.read()) bytes.push(...piece);
  return bytes;
}

/** Bytes that cannot be compressed. */
const noise = crypto.getRandomValues(new Uint8Array(60_000));

/** A response as a connection delivers it: each piece reuses the memory of the one before. */
async function compressed(format: "gzip" | "deflate", encoding: string) {
  const stream = new Blob([noise]).stream().pipeThrough(new CompressionStream(format));
  const whole = new Uint8Array(await new Response(stream).arrayBuffer());
  const buffer = new Uint8Array(1_000);
  const state = { from: 0, whole: whole.length, left: false };
  const body: UpstreamBody = {
    async read() {
      const piece = whole.subarray(state.from, state.from + buffer.length);
      state.from += piece.length;
      buffer.set(piece);
      return piece.length > 0 ? buffer.subarray(0, piece.length) : null;
    },
    cancel: () => void (state.left = true),
    finish() {},
  };
  const header = (name: string) => (name === "content-encoding" ? encoding : null);
  const response: UpstreamResponse = { status: 200, header, body };
  return { state, response };
}

Deno.test("http: a response that is compressed unasked is inflated, under either name of the coding", async () => {
  for (
    const [format, name] of [["gzip", "gzip"], ["deflate", "deflate"], ["gzip", "GZip"]] as const
  ) {
    const { response } = await compressed(format, name);
    assert.deepEqual(await bytesOf(inflated(response, unaborted).body), [...noise], name);
  }
  const { response } = await compressed("gzip", "br");
  assert.equal(inflated(response, unaborted), response, "what it cannot read it leaves alone");
});

Deno.test("http: canceling an inflated body cancels the server's response", async () => {
  const { response, state } = await compressed("gzip", "gzip");
  const { body } = inflated(response, unaborted);
  await body.read();
  body.cancel();
  await settle();
  assert.equal(state.left, true);
  assert.ok(state.from < state.whole);
});

/** Calls a server that is only a function, which responds with this body. */
async function askOf(body: ReadableStream<Uint8Array<ArrayBuffer>>, signal: AbortSignal) {
  const asked: RequestInit[] = [];
  const ask = requestByFetch((_url, init) => {
    asked.push(init);
    return Promise.resolve(new Response(body));
  });
  const request = { url: "http://a.test/", headers: {}, body: null, signal };
  return { asked, ...await ask({ ...request, method: "GET" }) };
}

Deno.test("http: a fetch follows no redirect, which would send the key elsewhere", async () => {
  const { asked } = await askOf(new ReadableStream(), unaborted);
  assert.deepEqual(asked.map(({ redirect }) => redirect), ["manual"]);
});

Deno.test("http: a fetched body ends with its call, also where its server ignores the abort", async () => {
  let reason: unknown = null;
  const call = new AbortController();
  const silent = new ReadableStream<Uint8Array<ArrayBuffer>>({
    cancel(why) {
      reason = why;
      throw new Error("not now");
    },
  });
  const { body } = await askOf(silent, call.signal);
  const reading = body.read();
  call.abort("enough");
  assert.equal(await reading, null);
  assert.equal(reason, "enough");
  // An unhandled rejection would end the process.
  await settle();
});

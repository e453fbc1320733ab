import { type Figure, percentile, show } from "./figures.ts";
import { startPaid } from "./paid.ts";
import { startProcess } from "./processes.ts";
import { makeFolder } from "./service.ts";
import { isWhole } from "./whole.ts";

const rounds = 2_000;
/** V8 keeps compiling hot code for about this long, in ms. */
const warmUpMs = 20_000;
const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** One kept connection: a client that adds almost nothing itself. */
async function connect(port: number, key: string) {
  const connection = await Deno.connect({ hostname: "127.0.0.1", port });
  connection.setNoDelay(true);
  const buffer = new Uint8Array(64 * 1024);
  return {
    /**
     * Returns the time until the response is complete, or until its first data when streamed, in
     * ms.
     */
    async ask(stream: boolean): Promise<number> {
      const messages = [{ role: "user", content: "Hello, what is the weather in Paris?" }];
      const body = JSON.stringify({
        model: "m",
        user: "user-1",
        stream,
        messages,
        max_tokens: 100,
      });
      const head =
        `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\n` +
        `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`;
      const startedAt = performance.now();
      await connection.write(encoder.encode(head + body));
      let first = 0;
      for (let text = "";;) {
        const length = await connection.read(buffer);
        if (length === null) throw new Error("the connection ended");
        text += decoder.decode(buffer.subarray(0, length), { stream: true });
        if (stream && first === 0 && text.includes('"content":"word')) {
          first = performance.now() - startedAt;
        }
        if (isWhole(text)) return stream ? first : performance.now() - startedAt;
      }
    },
    [Symbol.dispose]: () => connection.close(),
  };
}

/**
 * Measures the two durable writes of a call by themselves, on this disk: the minimum that any
 * ledger adds.
 */
async function writesAlone(): Promise<Figure> {
  using folder = makeFolder();
  using kv = await Deno.openKv(`${folder.path}/alone.kv`);
  const value = new Uint8Array(400);
  const taken: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const startedAt = performance.now();
    for (const write of ["hold", "charge"]) {
      await kv.atomic().set(["account"], value).set(["entry", round, write], value).commit();
    }
    taken.push(performance.now() - startedAt);
  }
  return { name: "two writes to the store alone, p50", value: percentile(taken, 0.5), unit: "ms" };
}

/**
 * Measures what the service adds to a single call: to the complete response, and to the first
 * token.
 */
export async function benchLatency(): Promise<Figure[]> {
  const figures: Figure[] = [await writesAlone()];
  for (const stream of [false, true]) {
    await using upstream = await startProcess("upstream.ts", 3, 100_000);
    using folder = makeFolder();
    await using service = await startPaid(upstream.port, folder.path, 2);
    using direct = await connect(upstream.port, "none");
    using through = await connect(service.port, service.key);
    const taken = { direct: [] as number[], through: [] as number[] };
    for (const until = performance.now() + warmUpMs; performance.now() < until;) {
      await direct.ask(stream);
      await through.ask(stream);
    }
    for (let round = 0; round < rounds; round++) {
      const [one, other] = [await direct.ask(stream), await through.ask(stream)];
      taken.direct.push(one);
      taken.through.push(other);
    }
    const added = (share: number) =>
      percentile(taken.through, share) - percentile(taken.direct, share);
    const what = stream ? "first token" : "complete response";
    const [p50, p99] = [added(0.5), added(0.99)];
    figures.push({
      name: `added to the ${what}, p50`,
      value: p50,
      unit: "ms",
      bar: "under 1",
      ok: p50 < 1,
    }, {
      name: `added to the ${what}, p99`,
      value: p99,
      unit: "ms",
      ...(stream ? {} : { bar: "under 5", ok: p99 < 5 }),
    });
  }
  figures.forEach(show);
  return figures;
}

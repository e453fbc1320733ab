import { type Figure, show } from "./figures.ts";
import { startPaid } from "./paid.ts";
import { startProcess } from "./processes.ts";
import { makeFolder, rssMiB } from "./service.ts";

const count = 1_000;
const tokens = 500;
const perSecond = 50;
/** Tokens come every 20 ms: a reader that waits longer than this has stalled. */
const stallMs = 2_000;
const silentMs = 2_000;

interface Read {
  tokens: number;
  longestMs: number;
  done: boolean;
}

async function readStream(url: string, key: string, n: number): Promise<Read> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({
      model: "m",
      user: `user-${n}`,
      stream: true,
      messages: [{ role: "user", content: "Hello" }],
      max_tokens: 2 * tokens,
    }),
  });
  if (!response.ok || !response.body) throw new Error(`${response.status}`);
  const read: Read = { tokens: 0, longestMs: 0, done: false };
  let last = performance.now();
  let text = "";
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
    const now = performance.now();
    read.longestMs = Math.max(read.longestMs, now - last);
    last = now;
    text += chunk;
    const end = text.lastIndexOf("\n\n");
    if (end < 0) continue;
    const whole = text.slice(0, end);
    text = text.slice(end);
    read.tokens += whole.split('"content":"word').length - 1;
    if (whole.includes("[DONE]")) read.done = true;
  }
  return read;
}

interface Target {
  url: string;
  key: string;
  pid: number;
}

/** Reads a thousand streams at once; returns how each was read, and the memory of each, in KiB. */
async function readAll({ url, key, pid }: Target): Promise<{ read: Read[]; eachKiB: number }> {
  // Warms up the process.
  await Promise.all(Array.from({ length: 100 }, (_, n) => readStream(url, key, n)));
  const memory = watchMemory(pid);
  const reading = Array.from({ length: count }, (_, n) => readStream(url, key, n));
  const read = await Promise.all(reading).finally(memory.stop);
  return { read, eachKiB: memory.eachKiB() };
}

/**
 * Measures a thousand streaming responses without data: the memory that Deno uses for each, in KiB.
 */
async function openSilent(): Promise<number> {
  await using bare = await startProcess("bare.ts", "none");
  const leave = new AbortController();
  const ask = () => fetch(`http://127.0.0.1:${bare.port}`, { signal: leave.signal });
  const memory = watchMemory(bare.pid);
  await Promise.all(Array.from({ length: count }, ask));
  await new Promise((resolve) => setTimeout(resolve, silentMs));
  memory.stop();
  leave.abort();
  return memory.eachKiB();
}

/** Tracks the peak of a process's memory above its current value. */
function watchMemory(pid: number) {
  const before = rssMiB(pid);
  let most = before;
  const watch = setInterval(() => (most = Math.max(most, rssMiB(pid))), 250);
  return { stop: () => clearInterval(watch), eachKiB: () => ((most - before) * 1024) / count };
}

/** Measures a thousand streams at once: none stalls, and the memory of each. */
export async function benchStreams(): Promise<Figure[]> {
  await using upstream = await startProcess("upstream.ts", tokens, perSecond);
  await using bare = await startProcess("bare.ts", upstream.port);
  using folder = makeFolder();
  await using service = await startPaid(upstream.port, folder.path, count);
  const unread = await readAll({
    url: `http://127.0.0.1:${bare.port}`,
    key: "none",
    pid: bare.pid,
  });
  const silentKiB = await openSilent();
  const { read, eachKiB } = await readAll(service);
  const stalled = read.filter(({ longestMs }) => longestMs > stallMs).length;
  const torn = read.filter((each) => !each.done || each.tokens !== tokens).length;
  const figures: Figure[] = [
    {
      name: `${count} streams of ${perSecond} tokens a second: stalled for ${stallMs} ms`,
      value: stalled,
      unit: "",
      bar: "none",
      ok: stalled === 0,
    },
    { name: "not complete", value: torn, unit: "", bar: "none", ok: torn === 0 },
    { name: "memory of each", value: eachKiB, unit: "KiB", bar: "under 60", ok: eachKiB < 60 },
    { name: "of each that is only proxied", value: unread.eachKiB, unit: "KiB" },
    { name: "of each that Deno keeps open, without data", value: silentKiB, unit: "KiB" },
  ];
  figures.forEach(show);
  return figures;
}

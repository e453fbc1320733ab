// The load generator: raw connections, each one request after another. Its argument is a `Load` as
// JSON; it prints a `Loaded` as JSON.
import type { Load, Loaded, ModelCallKind } from "./processes.ts";
import { models } from "./service.ts";
import { isWhole } from "./whole.ts";

const load: Load = JSON.parse(Deno.args[0] ?? "{}");
const { port, path, headers, kind, users, connections, seconds } = load;
const { base = 0, every = 1, drawn = false } = load;
const encoder = new TextEncoder();
const decoder = new TextDecoder();
const run = crypto.randomUUID();
const messages = [
  { role: "system", content: "You are a helpful assistant." },
  { role: "user", content: "Hello, please tell me something about the weather in Paris." },
];

const [system, question] = messages;
const input = question?.content;
/** A request with the same prompt in every format. */
const bodies: Record<ModelCallKind, (user: string) => unknown> = {
  chat: (user) => ({
    model: models[made % models.length],
    user,
    messages,
    max_tokens: 100,
    temperature: 0.7,
  }),
  responses: (user) => ({
    model: "m",
    user,
    instructions: system?.content,
    input: [{ role: "user", content: input }],
    max_output_tokens: 100,
    temperature: 0.7,
  }),
  messages: () => ({
    model: "m",
    system: system?.content,
    messages: [question],
    max_tokens: 100,
    temperature: 0.7,
  }),
  embeddings: (user) => ({ model: "m", user, input: [system?.content, input] }),
};
/** How many requests were made. */
let made = 0;
const isCall = (name: string): name is ModelCallKind => Object.hasOwn(bodies, name);

function requestText(): Uint8Array {
  const n = made++;
  const chosen = drawn ? Math.floor(Math.random() * users) : n % users;
  const user = `user-${base + chosen * every}`;
  const key = kind === "retry" ? `seen-${n % users}` : `${run}-${n}`;
  const body = isCall(kind)
    ? JSON.stringify(bodies[kind](user))
    : JSON.stringify({ user, amount: kind === "charge" ? "0.000001" : "1" });
  const more = isCall(kind)
    ? kind === "messages" ? `x-service-user: ${user}\r\n` : ""
    : `idempotency-key: ${key}\r\n`;
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`).join("");
  return encoder.encode(
    `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n` +
      `${lines}${more}content-length: ${body.length}\r\n\r\n${body}`,
  );
}

const latencies: number[] = [];
let failed = 0;
let faults = 0;
const until = performance.now() + seconds * 1000;

async function caller(): Promise<void> {
  const connection = await Deno.connect({ hostname: "127.0.0.1", port });
  connection.setNoDelay(true);
  const buffer = new Uint8Array(64 * 1024);
  while (performance.now() < until) {
    const startedAt = performance.now();
    await connection.write(requestText());
    let text = "";
    for (let whole = false; !whole;) {
      const length = await connection.read(buffer);
      if (length === null) throw new Error("the connection ended");
      text += decoder.decode(buffer.subarray(0, length), { stream: true });
      whole = isWhole(text);
    }
    if (!text.startsWith("HTTP/1.1 2")) failed++;
    if (text.startsWith("HTTP/1.1 5")) faults++;
    latencies.push(performance.now() - startedAt);
  }
  connection.close();
}

const startedAt = performance.now();
await Promise.all(Array.from({ length: connections }, caller));
const took = (performance.now() - startedAt) / 1000;
latencies.sort((a, b) => a - b);
const at = (share: number) => latencies[Math.floor(latencies.length * share)] ?? NaN;
const loaded: Loaded = {
  perSecond: latencies.length / took,
  p50: at(0.5),
  p99: at(0.99),
  failed,
  faults,
  requests: latencies.length,
};
console.log(JSON.stringify(loaded));

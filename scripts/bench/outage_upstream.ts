// An upstream with outages. Its arguments are a seed, the length of the run in seconds, and the
// share of time in which it is down; with a fourth, it always hangs. Prints its port.
import { jsonCompletion, streamedCompletion } from "./outage_responses.ts";
import { mulberry32 } from "../../tests/support/random.ts";

const [seed = 1, seconds = 60, downShare = 0.4, hangs = 0] = Deno.args.map(Number);

/** How it fails. `late` is no failure, but slower than callers' timeouts allow. */
const faults = [
  ...["500", "503", "429", "401", "closes", "hangs", "late"] as const,
  ...["breaks off", "garbage", "fails with 200"] as const,
];
type Mode = typeof faults[number] | "ok";

interface Phase {
  until: number;
  mode: Mode;
}

const random = mulberry32(seed);
const phases: Phase[] = [];
for (let at = 0; at < seconds * 1000 + 60_000;) {
  at += 2_000 + random() * 4_000;
  const mode = at > seconds * 1000 || random() >= downShare
    ? "ok"
    : faults[Math.floor(random() * faults.length)] ?? "ok";
  phases.push({ until: at, mode });
}

const startedAt = performance.now();
const usualMs = 40;
const lateMs = 6_000;
const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

function modeNow(): Mode {
  if (hangs > 0) return "hangs";
  const at = performance.now() - startedAt;
  return phases.find(({ until }) => at < until)?.mode ?? "ok";
}

const failed = (status: number, headers: Record<string, string> = {}) =>
  Response.json({ error: { message: "not now" } }, { status, headers });

/** A body that ends in the middle. */
function broken(text: string, type: string): Response {
  const bytes = new TextEncoder().encode(text.slice(0, text.length >> 1));
  const body = new ReadableStream({
    async pull(controller) {
      controller.enqueue(bytes);
      await wait(5);
      controller.error(new Error("broken off"));
    },
  });
  return new Response(body, { headers: { "content-type": type } });
}

async function answer(request: Request): Promise<Response> {
  const body = await request.json();
  const mode = modeNow();
  const type = body.stream ? "text/event-stream" : "application/json";
  const text = body.stream ? streamedCompletion(body.model) : jsonCompletion(body.model);
  const whole = () => new Response(text, { headers: { "content-type": type } });
  switch (mode) {
    case "ok":
      await wait(usualMs);
      return whole();
    case "late":
      await wait(lateMs);
      return whole();
    case "hangs":
      await wait(60_000);
      return failed(500);
    case "503":
      return failed(503, { "retry-after": "2" });
    case "closes":
      return broken("", type);
    case "breaks off":
      return broken(text, type);
    case "garbage":
      return new Response("<html>", { headers: { "content-type": type } });
    case "fails with 200":
      return Response.json({ error: { message: "not now", code: 503 } });
    default:
      return failed(Number(mode));
  }
}

const server = Deno.serve({
  port: 0,
  hostname: "127.0.0.1",
  onListen() {},
  onError: () => failed(500),
}, answer);
console.log(server.addr.port);

import type { Service } from "./service.ts";

export const tls = (name: string) =>
  new URL(`../../tests/fixtures/tls/${name}`, import.meta.url).pathname;
const now = () => performance.timeOrigin + performance.now();
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
/** Every load is spread over this many users. */
export const users = 500;

export interface Report {
  received: number;
  duplicates: number;
  latencies: number[];
}

/** A TLS receiver in its own process. */
export async function startReceiver() {
  const child = new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "-A",
      new URL("receiver.ts", import.meta.url).pathname,
      tls("server.pem"),
      tls("server.key"),
    ],
    stdin: "piped",
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  const writer = child.stdin.getWriter();
  const reader = child.stdout.getReader();
  const decoder = new TextDecoder();
  let text = "";
  const line = async () => {
    while (!text.includes("\n")) {
      const { value, done } = await reader.read();
      if (done) throw new Error("the receiver ended");
      text += decoder.decode(value, { stream: true });
    }
    const end = text.indexOf("\n");
    const first = text.slice(0, end);
    text = text.slice(end + 1);
    return first;
  };
  const port = await line();
  return {
    url: `https://localhost:${port}/hook`,
    async report(): Promise<Report> {
      await writer.write(new TextEncoder().encode("report\n"));
      return JSON.parse(await line());
    },
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await child.status;
    },
  };
}

type Receiver = Awaited<ReturnType<typeof startReceiver>>;

/** Sends deposits at a steady rate; returns what each caller waited, from the scheduled time. */
export async function depositAt(
  service: Service,
  { rate, seconds }: { rate: number; seconds: number },
) {
  const acks: number[] = [];
  const count = rate * seconds;
  const startAt = now() + 50;
  const pending: Promise<void>[] = [];
  for (let n = 0; n < count; n++) {
    const scheduled = startAt + (n * 1000) / rate;
    const wait = scheduled - now();
    if (wait > 1) await sleep(wait);
    const body = { user: `user-${n % users}`, amount: "1", metadata: { scheduled } };
    pending.push(
      service.json("/v1/user/balance/deposit", body).then(() => void acks.push(now() - scheduled)),
    );
  }
  await Promise.all(pending);
  return acks;
}

/**
 * Waits until the expected number has arrived, or no more arrive. Throws when sent and received
 * differ.
 */
export async function balance(receiver: Receiver, expected: number): Promise<Report> {
  let all: Report = { received: 0, duplicates: 0, latencies: [] };
  let still = 0;
  for (let last = -1; still < 50;) {
    const report = await receiver.report();
    all = { ...report, latencies: [...all.latencies, ...report.latencies] };
    if (all.received - all.duplicates >= expected) return all;
    still = report.received === last ? still + 1 : 0;
    last = report.received;
    await sleep(100);
  }
  throw new Error(`void: ${expected} sent, ${all.received - all.duplicates} received`);
}

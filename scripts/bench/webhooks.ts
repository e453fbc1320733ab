import { type Figure, percentile, show } from "./figures.ts";
import { makeFolder, type Service, startService } from "./service.ts";
import { balance, depositAt, type Report, startReceiver, tls, users } from "./webhook_load.ts";

const now = () => performance.timeOrigin + performance.now();
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

const env = { WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8,::1/128", NODE_EXTRA_CA_CERTS: tls("ca.pem") };

async function subscribe(service: Service, url: string): Promise<void> {
  const events = ["balance.deposit.created"];
  await service.json("/v1/webhooks/subscriptions", { url, events });
}

const warmUpSeconds = 5;

/** Measures delivery and acknowledgement at a steady rate. */
async function atRate(rate: number, seconds: number): Promise<Figure[]> {
  using folder = makeFolder();
  await using receiver = await startReceiver();
  await using service = await startService(env, folder.path);
  await subscribe(service, receiver.url);
  // Warms up: a process that has just started compiles what it runs.
  await depositAt(service, { rate, seconds: warmUpSeconds });
  const warmUp = rate * warmUpSeconds;
  await balance(receiver, warmUp);
  const acks = await depositAt(service, { rate, seconds });
  const { latencies } = await balance(receiver, warmUp + rate * seconds);
  const name = `deliveries at ${rate} a second`;
  return [
    {
      name: `${name}: p50`,
      value: percentile(latencies, 0.5),
      unit: "ms",
    },
    {
      name: `${name}: p95`,
      value: percentile(latencies, 0.95),
      unit: "ms",
      bar: "below 120",
      ok: percentile(latencies, 0.95) < 120,
    },
    { name: `${name}: p99`, value: percentile(latencies, 0.99), unit: "ms" },
    { name: `the deposits that caused them: p95`, value: percentile(acks, 0.95), unit: "ms" },
  ];
}

/** Measures what other deliveries wait while some hang at one endpoint, and without those. */
async function isolation(hanging: number): Promise<Figure[]> {
  const p95: number[] = [];
  for (const hung of [0, hanging]) {
    using folder = makeFolder();
    await using receiver = await startReceiver();
    await using service = await startService(env, folder.path);
    await subscribe(service, receiver.url);
    await depositAt(service, { rate: 100, seconds: 2 });
    await balance(receiver, 200);
    const silent = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const { port } = silent.addr as Deno.NetAddr;
    const url = `https://localhost:${port}/hook`;
    const events = ["balance.charge.created"];
    await service.json("/v1/webhooks/subscriptions", { url, events });
    for (let n = 0; n < hung; n++) {
      await service.json("/v1/user/charge", { user: `user-${n % 100}`, amount: "0.001" });
    }
    await depositAt(service, { rate: 200, seconds: 8 });
    const { latencies } = await balance(receiver, 200 + 1_600);
    p95.push(percentile(latencies, 0.95));
    silent.close();
  }
  const [without = NaN, withThem = NaN] = p95;
  return [
    { name: "deliveries at 200 a second, alone: p95", value: without, unit: "ms" },
    {
      name: `the same while ${hanging} deliveries hang elsewhere: p95`,
      value: withThem,
      unit: "ms",
      bar: "within 2 times",
      ok: withThem <= 2 * without,
    },
  ];
}

/** Measures the most deposits that 64 callers can make, and how fast their events are delivered. */
async function atMost(events: number): Promise<Figure[]> {
  using folder = makeFolder();
  await using receiver = await startReceiver();
  await using service = await startService(env, folder.path);
  await subscribe(service, receiver.url);
  await depositAt(service, { rate: 100, seconds: 2 });
  await balance(receiver, 200);
  const before = service.rssMiB();
  const startedAt = now();
  let made = 0;
  await Promise.all(Array.from({ length: 64 }, async () => {
    while (made < events) {
      const n = made++;
      const metadata = { scheduled: now() };
      await service.json("/v1/user/balance/deposit", {
        user: `user-${n % users}`,
        amount: "1",
        metadata,
      });
    }
  }));
  await balance(receiver, 200 + made);
  const seconds = (now() - startedAt) / 1000;
  return [
    {
      name: "most events a second from deposit to receiver",
      value: made / seconds,
      unit: "/s",
    },
    { name: `memory after ${made} deliveries`, value: service.rssMiB(), unit: "MiB" },
    { name: "memory before", value: before, unit: "MiB" },
  ];
}

/** Measures how fast a backlog drains that grew while the subscriber was down. */
async function drain(pending: number): Promise<Figure[]> {
  using folder = makeFolder();
  await using receiver = await startReceiver();
  const port = Number(new URL(receiver.url).port);
  const away = { ...env, WEBHOOK_BACKOFF_BASE_MS: "3600000" };
  await using service = await startService(away, folder.path);
  // Nothing listens there, so everything except the breaker's probes stays pending.
  const gate = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const closedPort = (gate.addr as Deno.NetAddr).port;
  gate.close();
  await subscribe(service, `https://localhost:${closedPort}/hook`);
  let made = 0;
  await Promise.all(Array.from({ length: 64 }, async () => {
    while (made < pending) {
      const n = made++;
      await service.json("/v1/user/balance/deposit", { user: `user-${n % users}`, amount: "1" });
    }
  }));
  const forward = relay(closedPort, port);
  const startedAt = now();
  let first = 0;
  let report: Report = { received: 0, duplicates: 0, latencies: [] };
  while (report.received - report.duplicates < pending - 100) {
    await sleep(500);
    report = await receiver.report();
    if (report.received > 100 && first === 0) first = now();
    if (now() - startedAt > 400_000) throw new Error(`void: ${report.received} of ${pending}`);
  }
  const seconds = (now() - first) / 1000;
  forward.close();
  return [{
    name: `drain with ${pending} pending, once the endpoint is back`,
    value: report.received / seconds,
    unit: "/s",
  }];
}

/** Forwards connections, like an endpoint that has come back. */
function relay(from: number, to: number): Deno.Listener {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: from });
  (async () => {
    for await (const connection of listener) {
      const target = await Deno.connect({ hostname: "127.0.0.1", port: to });
      connection.readable.pipeTo(target.writable).catch(() => {});
      target.readable.pipeTo(connection.writable).catch(() => {});
    }
  })().catch(() => {});
  return listener;
}

/** Measures all figures of deliveries; `long` takes some minutes more. */
export async function benchWebhooks(long: boolean): Promise<Figure[]> {
  const figures: Figure[] = [];
  const parts = [
    () => atRate(200, 10),
    () => atRate(500, 10),
    () => atRate(1_000, 10),
    () => isolation(200),
    () => atMost(long ? 100_000 : 20_000),
    () => drain(long ? 200_000 : 20_000),
  ];
  for (const part of parts) {
    const measured = await part();
    measured.forEach(show);
    figures.push(...measured);
  }
  return figures;
}

import { type Figure, percentile } from "./figures.ts";
import { startProcess } from "./processes.ts";
import { cpuSeconds } from "./refused_calls.ts";
import { adminKey, makeFolder, type Service, startService } from "./service.ts";

const largeStreams = 64;
const largeChars = 7_000_000;
const conversationsAtOnce = 48;
const turns = 75;
const turnChars = 50_000;
const newUsers = 40;

/** Measures what many calls at once take from the others: memory, and the time of a plain chat. */
export async function benchHostileLoads(): Promise<Figure[]> {
  return [...await largeEvents(), ...await keptConversations(), ...await counting()];
}

async function startWith(folder: string, port: number): Promise<Service> {
  const url = `http://127.0.0.1:${port}/v1`;
  const service = await startService({ UPSTREAM_URL: url, LOG_LEVEL: "error" }, folder);
  await service.json("/v1/user/balance/deposit", { user: "ada", amount: "1000" });
  return service;
}

function post(service: Service, path: string, body: unknown): Promise<Response> {
  return fetch(service.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${service.key}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
}

const messages = [{ role: "user", content: "Hi" }];

/** The p95 of plain chats, one after the other, while `work` runs or for two seconds. */
async function chatTimes(service: Service, work: Promise<unknown> | null): Promise<number> {
  const times: number[] = [];
  let isOver = false;
  const over = work ?? new Promise((resolve) => setTimeout(resolve, 2_000));
  over.finally(() => isOver = true);
  while (!isOver) {
    const startedAt = performance.now();
    const body = { model: "m", user: "ada", max_tokens: 10, messages };
    await (await post(service, "/v1/chat/completions", body)).body?.cancel();
    times.push(performance.now() - startedAt);
  }
  await over;
  return percentile(times, 0.95);
}

async function mostMemory(service: Service, work: () => Promise<unknown>): Promise<number> {
  const before = service.rssMiB();
  let most = before;
  const watch = setInterval(() => most = Math.max(most, service.rssMiB()), 20);
  await work();
  clearInterval(watch);
  return most - before;
}

async function largeEvents(): Promise<Figure[]> {
  await using upstream = await startProcess("large_event_upstream.ts", largeChars);
  using folder = makeFolder();
  await using service = await startWith(folder.path, upstream.port);
  const alone = await chatTimes(service, null);
  let p95 = NaN;
  const addedMiB = await mostMemory(service, async () => {
    p95 = await chatTimes(service, readStreams(service));
  });
  const name = `${largeStreams} streams with an event of 7 MB`;
  return [
    {
      name: `${name}: memory added`,
      value: addedMiB,
      unit: "MiB",
      bar: "at most 200",
      ok: addedMiB <= 200,
    },
    {
      name: "p95 of plain chats meanwhile",
      value: p95,
      unit: `ms, alone ${alone.toFixed(1)}`,
      bar: "at most 10 times",
      ok: p95 <= 10 * alone,
    },
  ];
}

/** Reads the streams in a process of its own, which would delay the chats. */
async function readStreams({ url, key }: Service): Promise<void> {
  const script = new URL("stream_readers.ts", import.meta.url).pathname;
  const args = ["run", "-A", script, url, key, String(largeStreams)];
  await new Deno.Command(Deno.execPath(), { args, stderr: "inherit" }).output();
}

/** Makes the upstream one that keeps no responses. */
async function speakOnlyChat(service: Service, port: number): Promise<void> {
  await fetch(`${service.url}/v1/admin/projects/${service.projectId}`, {
    method: "PATCH",
    headers: { authorization: `Bearer ${adminKey}`, "content-type": "application/json" },
    body: JSON.stringify({ upstream: { url: `http://127.0.0.1:${port}/v1`, formats: ["chat"] } }),
  });
}

async function keptConversations(): Promise<Figure[]> {
  await using upstream = await startProcess("large_event_upstream.ts");
  using folder = makeFolder();
  await using service = await startWith(folder.path, upstream.port);
  await speakOnlyChat(service, upstream.port);
  const ask = (more: Record<string, unknown>) =>
    post(service, "/v1/responses", { model: "m", user: "ada", max_output_tokens: 10, ...more });
  let last: unknown;
  for (let turn = 0; turn < turns; turn++) {
    const input = "hello world ".repeat(turnChars / 12);
    const previous = turn === 0 ? {} : { previous_response_id: last };
    last = (await (await ask({ input, ...previous })).json()).id;
  }
  const continued = { input: "And?", previous_response_id: last };
  const all = () =>
    Promise.all(Array.from({ length: conversationsAtOnce }, async () => {
      await (await ask(continued)).body?.cancel();
    }));
  const paidMiB = await mostMemory(service, all);
  const { available } = await service.json("/v1/user/balance?user=ada");
  await service.json("/v1/user/charge", { user: "ada", amount: String(available) });
  const cpuBefore = cpuSeconds(service.pid);
  const refusedMiB = await mostMemory(service, all);
  const cpuMs = (cpuSeconds(service.pid) - cpuBefore) * 1000 / conversationsAtOnce;
  const name = `${conversationsAtOnce} kept conversations of 3.8 MB continued at once`;
  return [
    { name: `${name}: memory added`, value: paidMiB, unit: "MiB" },
    { name: "the same by a user without money", value: refusedMiB, unit: "MiB" },
    {
      name: "CPU of each of these refusals",
      value: cpuMs,
      unit: "ms",
      bar: "at most 10",
      ok: cpuMs <= 10,
    },
  ];
}

async function counting(): Promise<Figure[]> {
  await using upstream = await startProcess("large_event_upstream.ts");
  using folder = makeFolder();
  await using service = await startWith(folder.path, upstream.port);
  await speakOnlyChat(service, upstream.port);
  const text = Array.from({ length: 40_000 }, (_, at) => `${at.toString(36)}Qx~${at * 7919}`);
  const long = [{ role: "user", content: text.join(" ").slice(0, 1_000_000) }];
  const cpuBefore = cpuSeconds(service.pid);
  let counted = 0;
  for (let user = 0; user < newUsers; user++) {
    const response = await fetch(`${service.url}/v1/messages/count_tokens`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${service.key}`,
        "content-type": "application/json",
        "x-service-user": `user-${user}`,
      },
      body: JSON.stringify({ model: "m", messages: long }),
    });
    await response.body?.cancel();
    if (response.ok) counted++;
  }
  const cpu = cpuSeconds(service.pid) - cpuBefore;
  return [{
    name: `CPU of ${newUsers} counts of 1 MB, each for a new user`,
    value: cpu,
    unit: `s, ${counted} of them counted`,
    bar: "at most 20",
    ok: cpu <= 20,
  }];
}

import { type Figure, show } from "./figures.ts";
import { benchHostileLoads } from "./hostile_loads.ts";
import { benchHangingNames } from "./hanging_names.ts";
import { benchRefusedCalls } from "./refused_calls.ts";
import { adminKey, makeFolder, type Service, startService } from "./service.ts";

const chatPath = "/v1/chat/completions";
const wholeMiB = 33;
const wholesAtOnce = 64;
const strangers = 512;
const refusals = 299;

/** Measures what one caller, or a stranger, can take from the others. */
export async function benchAbuse(): Promise<Figure[]> {
  const figures = [
    ...await largeResponses(),
    ...await parsing(),
    ...await refusedRequests(),
    ...await anonymousBodies(),
    ...await halfOfThePlaces(),
    ...await benchRefusedCalls(),
    ...await benchHostileLoads(),
    ...await benchHangingNames(),
  ];
  figures.forEach(show);
  return figures;
}

type Upstream = Deno.HttpServer<Deno.NetAddr>;

/** Starts an upstream. */
export function serve(handler: (request: Request) => Response | Promise<Response>): Upstream {
  return Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, handler);
}

/** Starts a service for an upstream. */
export function withUpstream(upstream: Upstream, folder: string, env: Record<string, string> = {}) {
  const url = `http://127.0.0.1:${upstream.addr.port}/v1`;
  return startService({ UPSTREAM_URL: url, LOG_LEVEL: "error", ...env }, folder);
}

function chat(
  service: Service,
  body: Record<string, unknown>,
  { key = service.key }: { key?: string } = {},
): Promise<Response> {
  return fetch(service.url + chatPath, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "m", messages: [{ role: "user", content: "Hi" }], ...body }),
  });
}

/**
 * The longest that a probe took until the returned function is called, in milliseconds, and the
 * most memory meanwhile.
 */
export function watchHealth(service: Service): () => Promise<{ worstMs: number; mostMiB: number }> {
  const worker = new Worker(new URL("./probe_worker.ts", import.meta.url), { type: "module" });
  let mostMiB = 0;
  const watch = setInterval(() => mostMiB = Math.max(mostMiB, service.rssMiB()), 20);
  worker.postMessage(`${service.url}/healthz`);
  return async () => {
    clearInterval(watch);
    const answered = Promise.withResolvers<number>();
    worker.onmessage = ({ data }: MessageEvent<number>) => answered.resolve(data);
    worker.postMessage("stop");
    const worstMs = await answered.promise;
    worker.terminate();
    return { worstMs, mostMiB };
  };
}

async function largeResponses(): Promise<Figure[]> {
  const piece = new TextEncoder().encode("x".repeat(1024 * 1024));
  const usage = '"usage":{"prompt_tokens":10,"completion_tokens":1000,"total_tokens":1010}';
  await using upstream = serve(() => {
    let sent = 0;
    const encoder = new TextEncoder();
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        if (sent === 0) controller.enqueue(encoder.encode('{"choices":[{"message":{"content":"'));
        else if (sent <= wholeMiB) controller.enqueue(piece);
        else {
          controller.enqueue(encoder.encode(`"},"finish_reason":"stop"}],${usage}}`));
          controller.close();
        }
        sent++;
      },
    }, { highWaterMark: 0 });
    return new Response(body, { headers: { "content-type": "application/json" } });
  });
  using folder = makeFolder();
  await using service = await withUpstream(upstream, folder.path);
  await service.json("/v1/user/balance/deposit", { user: "ada", amount: "1000" });
  const health = watchHealth(service);
  const sizes = await Promise.all(Array.from({ length: wholesAtOnce }, async () => {
    const response = await chat(service, { user: "ada", max_tokens: 2_000 });
    let bytes = 0;
    for await (const part of response.body ?? []) bytes += part.length;
    return bytes;
  }));
  const { worstMs, mostMiB } = await health();
  const whole = sizes.filter((bytes) => bytes > wholeMiB * 1024 * 1024).length;
  const name = `${wholesAtOnce} whole responses of ${wholeMiB} MiB at once`;
  return [
    bar(
      { name: `${name}: memory of the service`, value: mostMiB, unit: "MiB" },
      "at most 512",
      512,
    ),
    bar({ name: "the slowest probe meanwhile", value: worstMs, unit: "ms" }, "at most 100", 100),
    { name: "of them complete", value: whole, unit: "", bar: "all", ok: whole === wholesAtOnce },
  ];
}

async function parsing(): Promise<Figure[]> {
  await using upstream = serve(() => Response.json({}));
  using folder = makeFolder();
  await using service = await withUpstream(upstream, folder.path);
  const numbers = `[${Array(199_000).fill("0.12345678901234567").join(",")}]`;
  const text = `{"model":"m","user":"nobody","messages":[{"role":"user","content":"Hi"}],` +
    `"metadata":${numbers}}`;
  const { plainMs } = timeParse(text);
  const post = () =>
    fetch(service.url + chatPath, {
      method: "POST",
      headers: { authorization: `Bearer ${service.key}`, "content-type": "application/json" },
      body: text,
    });
  for (let warm = 0; warm < 5; warm++) await (await post()).body?.cancel();
  const health = watchHealth(service);
  for (let at = 0; at < 20; at++) await (await post()).body?.cancel();
  const { worstMs } = await health();
  return [{
    name: "the slowest probe while a user without money sends 199,000 long numbers",
    value: worstMs,
    unit: `ms, JSON.parse ${plainMs.toFixed(1)}`,
  }];
}

function timeParse(text: string): { plainMs: number } {
  let plainMs = Infinity;
  for (let at = 0; at < 7; at++) {
    const startedAt = performance.now();
    JSON.parse(text);
    plainMs = Math.min(plainMs, performance.now() - startedAt);
  }
  return { plainMs };
}

async function refusedRequests(): Promise<Figure[]> {
  await using upstream = serve(() => Response.json({}));
  using folder = makeFolder();
  await using service = await withUpstream(upstream, folder.path, {
    WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8",
  });
  const limits = { user: { requestsPerMinute: 1 } };
  await fetch(`${service.url}/v1/admin/projects/${service.projectId}`, {
    method: "PATCH",
    headers: { authorization: `Bearer ${adminKey}`, "content-type": "application/json" },
    body: JSON.stringify({ limits }),
  });
  const hook = { url: "https://127.0.0.1:9/hook", events: ["*"] };
  await service.json("/v1/webhooks/subscriptions", hook);
  for (let at = 0; at <= refusals; at++) {
    await (await chat(service, { user: "ada" })).body?.cancel();
  }
  const { logs } = await service.json("/v1/webhooks/logs?limit=100");
  const events = Array.isArray(logs) ? logs.length : NaN;
  return [
    bar(
      { name: `events of ${refusals} refused requests of one user`, value: events, unit: "" },
      "at most 6",
      6,
    ),
  ];
}

async function anonymousBodies(): Promise<Figure[]> {
  await using upstream = serve(() =>
    Response.json({
      choices: [{ message: { role: "assistant", content: "Hi" }, finish_reason: "stop" }],
      usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
    })
  );
  using folder = makeFolder();
  const stripe = {
    STRIPE_SECRET_KEY: "sk_test_bench_key",
    STRIPE_WEBHOOK_SECRET: "whsec_bench_key",
  };
  await using service = await withUpstream(upstream, folder.path, stripe);
  await service.json("/v1/user/balance/deposit", { user: "ada", amount: "10" });
  const port = Number(new URL(service.url).port);
  const head = "POST /v1/stripe HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  const part = new TextEncoder().encode(`${head}f000\r\n${"x".repeat(0xf000)}\r\n`);
  const open = await Promise.all(Array.from({ length: strangers }, async () => {
    const connection = await Deno.connect({ port });
    await connection.write(part).catch(() => {});
    return connection;
  }));
  const large = "word ".repeat(1_000_000);
  const response = await chat(service, {
    user: "ada",
    max_tokens: 10,
    messages: [{ role: "user", content: large }],
  });
  await response.body?.cancel();
  for (const connection of open) connection.close();
  const { status } = response;
  return [{
    name: `status of a chat of 5 MB while ${strangers} strangers hold bodies open`,
    value: status,
    unit: "",
    bar: "200",
    ok: status === 200,
  }];
}

async function halfOfThePlaces(): Promise<Figure[]> {
  await using upstream = serve(() =>
    new Response(new ReadableStream({ start() {} }), {
      headers: { "content-type": "text/event-stream" },
    })
  );
  using folder = makeFolder();
  await using service = await withUpstream(upstream, folder.path, { REQUESTS_MAX: "100" });
  await service.json("/v1/user/balance/deposit", { user: "ada", amount: "1000" });
  const other = await service.json("/v1/admin/projects", { name: "Other" }, adminKey);
  const leave = new AbortController();
  const hanging = Array.from({ length: 120 }, () =>
    fetch(service.url + chatPath, {
      method: "POST",
      signal: leave.signal,
      headers: { authorization: `Bearer ${service.key}`, "content-type": "application/json" },
      body: JSON.stringify({
        model: "m",
        user: "ada",
        stream: true,
        max_tokens: 10,
        messages: [{ role: "user", content: "Hi" }],
      }),
    }).then(({ status }) => status, () => 0));
  await new Promise((resolve) => setTimeout(resolve, 4_000));
  const { status } = await fetch(`${service.url}/v1/models`, {
    headers: { authorization: `Bearer ${other.apiKey}` },
  });
  leave.abort();
  await Promise.all(hanging);
  return [{
    name: "status of another project's request while one sends 120 that hang, of 100 places",
    value: status,
    unit: "",
    bar: "200",
    ok: status === 200,
  }];
}

function bar(figure: Figure, words: string, most: number): Figure {
  return { ...figure, bar: words, ok: figure.value <= most };
}

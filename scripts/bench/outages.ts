import { type Figure, show } from "./figures.ts";
import { startProcess } from "./processes.ts";
import { adminKey, makeFolder, startService } from "./service.ts";

const callers = 24;
const deadlineMs = 30_000;

/** What callers saw of one gateway. */
interface Seen {
  calls: number;
  answered: number;
  /** Of answered calls, in ms. */
  p50: number;
  p95: number;
  /** Ids of calls that got a whole response, and of those that got a part of one. */
  whole: Set<string>;
  partial: Set<string>;
}

interface Gateway extends AsyncDisposable {
  name: string;
  url: string;
  key: string;
  model: string;
}

const peerKey = "sk-bench-0123456789abcdef0123456789abcdef";

/** How long callers wait for a first byte from one upstream, in ms. */
const firstByteMs = 1_500;

/**
 * Measures calls through gateways while two upstreams fail in all ways: which share is answered,
 * how fast, and whether the ledger has exactly what was answered. `LITELLM` and `BIFROST` name
 * commands of those gateways, which are then measured on the same outages.
 */
export async function benchOutages(long: boolean): Promise<Figure[]> {
  const seconds = long ? 600 : 60;
  const gateways = [
    startFarebox,
    ...peerNamed("LITELLM", startLiteLlm),
    ...peerNamed("BIFROST", startBifrost),
  ];
  const figures: Figure[] = [];
  for (const start of gateways) {
    await using main = await startProcess("outage_upstream.ts", 7, seconds, 0.4);
    await using spare = await startProcess("outage_upstream.ts", 8, seconds, 0.4);
    using folder = makeFolder();
    await using gateway = await start([main.port, spare.port], folder.path);
    const seen = await load(gateway, seconds);
    const { name } = gateway;
    figures.push(
      { name: `${name}: calls answered`, value: (100 * seen.answered) / seen.calls, unit: "%" },
      { name: `${name}: median`, value: seen.p50, unit: "ms" },
      { name: `${name}: p95`, value: seen.p95, unit: "ms" },
    );
    if (gateway instanceof Farebox) figures.push(...await gateway.audit(seen));
  }
  figures.push(await isolation());
  for (const figure of figures) show(figure);
  return figures;
}

const stuckCalls = 200;

/** How much slower one upstream's calls are while another one's hang. */
async function isolation(): Promise<Figure> {
  await using healthy = await startProcess("outage_upstream.ts", 1, 60, 0);
  await using stuck = await startProcess("outage_upstream.ts", 1, 60, 0, 1);
  using folder = makeFolder();
  await using gateway = await startFarebox([healthy.port, stuck.port], folder.path, {
    smart: { targets: [{ upstream: "main", model: "a" }] },
    stuck: { targets: [{ upstream: "spare", model: "b" }] },
  });
  await load(gateway, 5);
  const alone = await load(gateway, 8);
  const asked = { ...gateway, url: gateway.url, key: gateway.key, model: "stuck" };
  const until = performance.now() + 8_000;
  const hanging = Array.from({ length: stuckCalls }, async (_, n) => {
    while (performance.now() < until) {
      await call(asked, { id: `stuck-${n}`, user: n % callers, stream: n % 2 === 0 });
    }
  });
  const beside = await load(gateway, 8);
  await Promise.all(hanging);
  const value = beside.p95 / alone.p95;
  const name = `Farebox: p95 beside ${stuckCalls} calls of an upstream that hangs`;
  return { name, value, unit: "x", bar: "1.2", ok: value <= 1.2 };
}

type Start = (ports: readonly number[], folder: string) => Promise<Gateway>;

function peerNamed(variable: string, start: (command: string) => Start): Start[] {
  const command = Deno.env.get(variable);
  if (!command) console.log(`${variable} is not set: it is not measured`);
  return command ? [start(command)] : [];
}

/** The service, with a route to both upstreams. */
class Farebox implements Gateway {
  readonly name = "Farebox";
  readonly model = "smart";
  readonly url: string;
  readonly key: string;
  readonly #service: Awaited<ReturnType<typeof startService>>;

  constructor(service: Awaited<ReturnType<typeof startService>>) {
    this.#service = service;
    this.url = service.url;
    this.key = service.key;
  }

  /** Each call is charged once, and exactly those that were answered; nothing is left held. */
  async audit({ whole, partial }: Seen): Promise<Figure[]> {
    const charged = new Map<string, number>();
    let sum = 0n;
    let left = 0n;
    for (let user = 0; user < callers; user++) {
      for (let cursor = "";;) {
        const page = await this.#service.json(
          `/v1/user/activities?user=user-${user}&limit=100${cursor}`,
        );
        for (const entry of Array.from(Object(page.activities))) {
          const { usage, delta } = Object(entry);
          sum += BigInt(Math.round(Number(delta) * 1e9));
          if (usage) charged.set(usage.requestId, (charged.get(usage.requestId) ?? 0) + 1);
        }
        if (!page.nextCursor) break;
        cursor = `&cursor=${page.nextCursor}`;
      }
      const { balance, held } = await this.#service.json(`/v1/user/balance?user=user-${user}`);
      left += BigInt(Math.round(Number(balance) * 1e9));
      if (held !== "0") throw new Error(`void: ${held} is still held`);
    }
    const twice = [...charged.values()].filter((count) => count > 1).length;
    const unpaid = [...whole].filter((id) => !charged.has(id)).length;
    const unanswered = [...charged.keys()].filter((id) => !whole.has(id) && !partial.has(id));
    return [
      { name: "Farebox: charged twice", value: twice, unit: "", bar: "0", ok: twice === 0 },
      { name: "Farebox: answered for free", value: unpaid, unit: "", bar: "0", ok: unpaid === 0 },
      {
        name: "Farebox: charged without a response",
        value: unanswered.length,
        unit: "",
        bar: "0",
        ok: unanswered.length === 0,
      },
      {
        name: "Farebox: entries less balances",
        value: Number(sum - left),
        unit: "",
        bar: "0",
        ok: sum === left,
      },
    ];
  }

  async [Symbol.asyncDispose]() {
    await this.#service[Symbol.asyncDispose]();
  }
}

const bothTargets = {
  smart: { targets: [{ upstream: "main", model: "a" }, { upstream: "spare", model: "b" }] },
};

async function startFarebox(
  [main, spare]: readonly number[],
  folder: string,
  routes: Record<string, unknown> = bothTargets,
): Promise<Gateway> {
  const service = await startService({}, folder);
  const timeouts = { connectMs: 500, firstByteMs };
  const upstream = (port?: number) => ({
    url: `http://127.0.0.1:${port}/v1`,
    formats: ["chat"],
    timeouts,
  });
  const response = await fetch(`${service.url}/v1/admin/projects/${service.projectId}`, {
    method: "PATCH",
    headers: { authorization: `Bearer ${adminKey}`, "content-type": "application/json" },
    body: JSON.stringify({
      upstreams: { main: upstream(main), spare: upstream(spare) },
      routes,
      pricing: { models: { "*": { input: "1", output: "2" } } },
    }),
  });
  if (!response.ok) throw new Error(await response.text());
  for (let user = 0; user < callers; user++) {
    await service.json("/v1/user/balance/deposit", { user: `user-${user}`, amount: "100" });
  }
  return new Farebox(service);
}

/** LiteLLM's proxy, with both upstreams behind one name: https://docs.litellm.ai/docs/routing */
function startLiteLlm(command: string): Start {
  return async (ports, folder) => {
    const models = ports.map((port, index) => ({
      model_name: index === 0 ? "smart" : "other",
      litellm_params: {
        model: `openai/${"ab"[index]}`,
        api_base: `http://127.0.0.1:${port}/v1`,
        api_key: "none",
        timeout: firstByteMs / 1000,
        stream_timeout: firstByteMs / 1000,
        max_retries: 0,
      },
    }));
    const config = {
      model_list: models,
      general_settings: { master_key: peerKey },
      router_settings: {
        fallbacks: [{ smart: ["other"] }],
        num_retries: 1,
        allowed_fails: 5,
        cooldown_time: 5,
      },
    };
    const path = `${folder}/litellm.yaml`;
    await Deno.writeTextFile(path, JSON.stringify(config));
    const port = freePort();
    const args = ["--config", path, "--port", String(port), "--host", "127.0.0.1"];
    return await startPeer({ name: "LiteLLM", command, args, port, health: "/health/liveliness" });
  };
}

/** Bifrost, with both upstreams as providers of their own: https://docs.getbifrost.ai */
function startBifrost(command: string): Start {
  return async ([main, spare], folder) => {
    const provider = (port?: number) => ({
      keys: [{ name: "none", value: "none", models: ["*"], weight: 1 }],
      network_config: {
        base_url: `http://127.0.0.1:${port}`,
        default_request_timeout_in_seconds: 2,
        max_retries: 1,
      },
      custom_provider_config: { base_provider_type: "openai" },
    });
    const config = { providers: { main: provider(main), spare: provider(spare) } };
    await Deno.writeTextFile(`${folder}/config.json`, JSON.stringify(config));
    const port = freePort();
    const args = ["-app-dir", folder, "-port", String(port), "-host", "127.0.0.1"];
    return await startPeer({ name: "Bifrost", command, args, port, health: "/health" });
  };
}

async function startPeer(
  { name, command, args, port, health }: {
    name: string;
    command: string;
    args: string[];
    port: number;
    health: string;
  },
): Promise<Gateway> {
  const child = new Deno.Command(command, { args, stdout: "null", stderr: "null" }).spawn();
  const url = `http://127.0.0.1:${port}`;
  for (let tries = 0; tries < 240; tries++) {
    const response = await fetch(url + health).catch(() => null);
    await response?.body?.cancel();
    if (response?.ok) break;
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
  const model = name === "Bifrost" ? "main/a" : "smart";
  return {
    ...{ name, url, key: peerKey, model },
    async [Symbol.asyncDispose]() {
      try {
        child.kill("SIGKILL");
      } catch {
        // It has ended by itself.
      }
      await child.status;
    },
  };
}

function freePort(): number {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return listener.addr.port;
}

/** Calls for so long, by turns whole and streamed. Each call ends within its deadline. */
async function load(gateway: Gateway, seconds: number): Promise<Seen> {
  const until = performance.now() + seconds * 1000;
  const times: number[] = [];
  const whole = new Set<string>();
  const partial = new Set<string>();
  let calls = 0;
  const caller = async (user: number) => {
    while (performance.now() < until) {
      const id = `call-${calls++}`;
      const startedAt = performance.now();
      const outcome = await call(gateway, { id, user, stream: calls % 2 === 0 });
      if (outcome === "partial") partial.add(id);
      if (outcome !== "whole") continue;
      whole.add(id);
      times.push(performance.now() - startedAt);
    }
  };
  await Promise.all(Array.from({ length: callers }, (_, user) => caller(user)));
  times.sort((one, other) => one - other);
  const at = (share: number) => times[Math.floor(times.length * share)] ?? NaN;
  return { calls, answered: whole.size, p50: at(0.5), p95: at(0.95), whole, partial };
}

async function call(
  { url, key, model, name }: Gateway,
  { id, user, stream }: { id: string; user: number; stream: boolean },
): Promise<"whole" | "partial" | "failed"> {
  const messages = [{ role: "user", content: `Count to five. id:${id}` }];
  const body = {
    ...{ model, messages, stream, max_tokens: 100, user: `user-${user}` },
    ...(name === "Bifrost" ? { fallbacks: ["spare/b"] } : {}),
  };
  let text = "";
  try {
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${key}`,
        "content-type": "application/json",
        "x-request-id": id,
      },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(deadlineMs),
    });
    text = await response.text();
    const isWhole = stream ? /data: \[DONE\]/.test(text) && /five/.test(text) : /five/.test(text);
    if (response.status === 200 && isWhole && !/"error"/.test(text)) return "whole";
  } catch (error) {
    if (error instanceof DOMException && error.name === "TimeoutError") {
      console.log(`${name}: ${id} did not end within ${deadlineMs} ms`);
    }
  }
  return /one|two/.test(text) ? "partial" : "failed";
}

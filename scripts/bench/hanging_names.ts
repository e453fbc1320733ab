import type { Figure } from "./figures.ts";
import { adminKey, makeFolder, type Service, startService } from "./service.ts";

const others = 40;
const hangingAtOnce = 200;
const hangingEveryMs = 125;
const roundMs = 250;
const measuredMs = 20_000;
const worstMs = 1_000;

/**
 * What a project takes from the others whose upstream's name hangs: it sends 200 calls at once and
 * then 8 a second. Names lead to a server that takes questions and never answers.
 */
export async function benchHangingNames(): Promise<Figure[]> {
  if (!await mayMount()) {
    console.log("a name that hangs: left out, since only root may mount another resolv.conf");
    return [];
  }
  await using upstream = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen() {} },
    () =>
      Response.json({
        choices: [{ message: { role: "assistant", content: "Hi" }, finish_reason: "stop" }],
        usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
      }),
  );
  using folder = makeFolder();
  const silent = await startSilentServer();
  const names = Array.from({ length: others }, (_, at) => `127.0.0.1 app-${at}.test\n`);
  await Deno.writeTextFile(`${folder.path}/hosts`, `127.0.0.1 localhost\n${names.join("")}`);
  await Deno.writeTextFile(`${folder.path}/resolv.conf`, "nameserver 127.0.0.98\n");
  const script = ["hosts", "resolv.conf"]
    .map((name) => `mount --bind ${folder.path}/${name} /etc/${name}`).join(" && ");
  try {
    await using service = await startService({ LOG_LEVEL: "error" }, folder.path, { script });
    return await measure(service, upstream.addr.port);
  } finally {
    silent.kill("SIGKILL");
    await silent.status;
  }
}

async function measure(service: Service, port: number): Promise<Figure[]> {
  const make = async (upstreamUrl: string) => {
    const made = await service.json("/v1/admin/projects", {
      name: "Bench",
      pricing: { models: { m: { input: "0.15", output: "0.6" } } },
      limits: { user: { concurrent: null } },
      upstream: { url: upstreamUrl, apiKey: "sk-upstream" },
    }, adminKey);
    const key = String(made.apiKey);
    await service.json("/v1/user/balance/deposit", { user: "ada", amount: "1000" }, key);
    return key;
  };
  const hanging = await make("http://name.example.com/v1");
  const keys: string[] = [];
  for (let at = 0; at < others; at++) keys.push(await make(`http://app-${at}.test:${port}/v1`));

  const leave = new AbortController();
  const chat = (key: string, signal?: AbortSignal) =>
    fetch(`${service.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({
        model: "m",
        user: "ada",
        max_tokens: 10,
        messages: [{ role: "user", content: "Hi" }],
      }),
      ...(signal ? { signal } : {}),
    });
  const hang = () => void chat(hanging, leave.signal).then(({ body }) => body?.cancel(), () => {});
  for (let at = 0; at < hangingAtOnce; at++) hang();
  const more = setInterval(hang, hangingEveryMs);

  const watched: Record<string, Watched> = {
    "a call by name": { worst: 0, failed: 0, run: (at) => chat(keys[at % others] ?? "") },
    "a sign-in": { worst: 0, failed: 0, run: () => signIn(service) },
    "a new project": {
      worst: 0,
      failed: 0,
      run: async (at) => {
        await make(`http://app-${at % others}.test:${port}/v1`);
        return new Response();
      },
    },
    "a backup": {
      worst: 0,
      failed: 0,
      run: () =>
        fetch(`${service.url}/v1/admin/backup`, {
          headers: { authorization: `Bearer ${adminKey}` },
        }),
    },
  };
  const until = performance.now() + measuredMs;
  await Promise.all(Object.values(watched).map((each) => watch(each, until)));
  clearInterval(more);
  leave.abort();
  return Object.entries(watched).map(([name, { worst, failed }]) => ({
    name: `${name}, while another project's upstream hangs: the slowest`,
    value: worst,
    unit: `ms, ${failed} failed`,
    bar: `at most ${worstMs}, none failed`,
    ok: worst <= worstMs && failed === 0,
  }));
}

interface Watched {
  worst: number;
  failed: number;
  run: (at: number) => Promise<Response>;
}

async function watch(watched: Watched, until: number): Promise<void> {
  for (let at = 0; performance.now() < until; at++) {
    const startedAt = performance.now();
    try {
      const response = await watched.run(at);
      await response.arrayBuffer();
      if (response.status >= 400) watched.failed++;
    } catch {
      watched.failed++;
    }
    watched.worst = Math.max(watched.worst, performance.now() - startedAt);
    await new Promise((resolve) => setTimeout(resolve, roundMs));
  }
}

function signIn({ url }: Service): Promise<Response> {
  return fetch(`${url}/console/sign-in`, {
    method: "POST",
    redirect: "manual",
    headers: { origin: "http://127.0.0.1:9" },
    body: new URLSearchParams({ key: adminKey }),
  });
}

/** A name server that is bound, so that nothing refuses a question, and never answers one. */
async function startSilentServer(): Promise<Deno.ChildProcess> {
  const program = `Deno.listenDatagram({ transport: "udp", hostname: "127.0.0.98", port: 53 });
console.log("bound");
setInterval(() => {}, 60_000);`;
  const child = new Deno.Command(Deno.execPath(), {
    args: ["eval", "--unstable-net", program],
    stdout: "piped",
  }).spawn();
  await child.stdout.getReader().read();
  return child;
}

async function mayMount(): Promise<boolean> {
  if (Deno.build.os !== "linux") return false;
  return await new Deno.Command("unshare", { args: ["-m", "true"] }).output()
    .then(({ success }) => success, () => false);
}

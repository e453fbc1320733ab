import type { Figure } from "./figures.ts";
import { hostileBodies, type HostileBody } from "./hostile_bodies.ts";
import { startProcess } from "./processes.ts";
import { adminKey, makeFolder, type Service, startService } from "./service.ts";

/** A refused call may cost so many times what reading its body costs. */
const timesMax = 3;
/** A call is repeated for so long, and at least so often. */
const measuredMs = 700;
const callsMin = 3;
const ticksPerSecond = 100;

const pricing = {
  models: {
    m: { input: "0.15", output: "0.6" },
    sound: { input: "0", output: "0", audioMinutes: "0.006" },
    speech: { input: "0", output: "0", characters: "15" },
    image: { input: "0", output: "0", images: { "*": "0.04" } },
  },
};

/**
 * Measures what calls of a user without money cost, against reading the same bodies: CPU time of
 * the process, and the longest wait of another caller.
 */
export async function benchRefusedCalls(): Promise<Figure[]> {
  await using upstream = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen() {} },
    () => Response.json({}),
  );
  await using reader = await startProcess("body_reader.ts");
  using folder = makeFolder();
  const url = `http://127.0.0.1:${upstream.addr.port}/v1`;
  await using service = await startService({ UPSTREAM_URL: url, LOG_LEVEL: "error" }, folder.path);
  await fetch(`${service.url}/v1/admin/projects/${service.projectId}`, {
    method: "PATCH",
    headers: { authorization: `Bearer ${adminKey}`, "content-type": "application/json" },
    body: JSON.stringify({ pricing, unknownFields: "pass" }),
  });
  const plain: HostileBody = {
    name: "Hi",
    path: "/v1/chat/completions",
    body: new TextEncoder().encode(
      '{"model":"m","user":"nobody","messages":[{"role":"user","content":"Hi"}]}',
    ),
  };
  const readerUrl = `http://127.0.0.1:${reader.port}`;
  await measure(service, plain);
  const least = await measure(service, plain);
  const figures: Figure[] = [{
    name: "CPU of a refused 'Hi'",
    value: least.cpuMs,
    unit: "ms",
  }];
  for (const hostile of hostileBodies()) {
    const read = await measure({ url: readerUrl, pid: reader.pid, key: "" }, hostile);
    const refused = await measure(service, hostile);
    // Of a small body, what any refusal costs is more than reading it.
    const times = refused.cpuMs / Math.max(read.cpuMs, least.cpuMs);
    figures.push({
      name: hostile.name,
      value: refused.cpuMs,
      unit: `ms CPU, reading ${read.cpuMs.toFixed(1)}: ${times.toFixed(1)} times; longest wait ` +
        `${refused.worstMs.toFixed(0)} ms, reading ${read.worstMs.toFixed(0)}; ${refused.status}`,
      bar: `at most ${timesMax} times`,
      ok: times <= timesMax,
    });
  }
  return figures;
}

type Measured = Pick<Service, "url" | "pid" | "key">;

/** CPU time of one call, and the longest wait of a probe meanwhile. */
async function measure({ url, pid, key }: Measured, { path, type, headers, body }: HostileBody) {
  const worker = new Worker(new URL("./probe_worker.ts", import.meta.url), { type: "module" });
  worker.postMessage(`${url}/healthz`);
  const cpuBefore = cpuSeconds(pid);
  const startedAt = performance.now();
  let calls = 0;
  let status = 0;
  while (calls < callsMin || performance.now() - startedAt < measuredMs) {
    const response = await fetch(url + path, {
      method: "POST",
      headers: {
        authorization: `Bearer ${key}`,
        "content-type": type ?? "application/json",
        ...headers,
      },
      body,
    });
    await response.body?.cancel();
    status = response.status;
    calls++;
  }
  const cpuMs = (cpuSeconds(pid) - cpuBefore) * 1000 / calls;
  const answered = Promise.withResolvers<number>();
  worker.onmessage = ({ data }: MessageEvent<number>) => answered.resolve(data);
  worker.postMessage("stop");
  const worstMs = await answered.promise;
  worker.terminate();
  return { cpuMs, worstMs, status };
}

/** CPU time that a process has used, by all of its threads. */
export function cpuSeconds(pid: number): number {
  const fields = Deno.readTextFileSync(`/proc/${pid}/stat`).split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}

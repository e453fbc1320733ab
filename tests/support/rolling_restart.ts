import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { startNginx } from "./nginx.ts";
import { startPostgres } from "./postgres.ts";
import { type Farebox, freePort, makeFolder, serviceEnv, startFarebox } from "./process.ts";
import { caPath } from "./receiver.ts";
import { snippetsOf } from "./snippets.ts";
import { makeProject, startSlowUpstream } from "./traffic.ts";

const callersCount = 24;
const answerMs = 15;
const examplePath = fileURLToPath(new URL("../../examples/nginx.conf", import.meta.url));

/** What callers saw of a rolling restart. */
interface Outcome {
  answered: number;
  /** What went wrong, by how often it did. */
  lost: Record<string, number>;
}

/**
 * Replaces three processes on one database, behind the nginx of the example and by the commands of
 * the guide, under chats of callers that keep their connections, until that many have been sent.
 */
export async function restartAll(nginx: string, { calls }: { calls: number }): Promise<Outcome> {
  await using database = await startPostgres();
  await using folder = await makeFolder();
  await using upstream = startSlowUpstream(() => answerMs);
  const env = { ...serviceEnv, KV_PATH: database.url(), UPSTREAM_URL: upstream.url };
  const ports = [freePort(), freePort(), freePort()];
  await using services = new AsyncDisposableStack();
  const start = async (port: number) => {
    const options = { folder: folder.path, env: { ...env, PORT: String(port) } };
    return services.use(await startFarebox(options));
  };
  const processes = await Promise.all(ports.map(start));
  let guide = (await Deno.readTextFile(examplePath)).replaceAll("/etc/nginx/", `${folder.path}/`);
  for (const [at, port] of ports.entries()) {
    guide = guide.replaceAll(`172.28.0.${11 + at}:8000`, `127.0.0.1:${port}`);
  }
  await using proxy = await startNginx(nginx, { guide, folder: folder.path });
  assert.match(await proxy.check(), /test is successful/);

  const load = await startCallers(proxy.url, processes, calls);
  const [toA = "", toB = "", toAll = ""] = (await snippetsOf("postgres"))
    .filter(({ mark }) => mark === "rolling").map(({ code }) => code);
  const run = async (command: string) => {
    load.phase = command.trim();
    const here = command.replaceAll("/etc/nginx/", `${folder.path}/`);
    assert.ok((await new Deno.Command("sh", { args: ["-c", here] }).output()).success, command);
  };
  const replace = async (at: number) => {
    processes[at]?.signal("SIGTERM");
    assert.equal((await processes[at]?.ended)?.code, 0);
    await start(ports[at] ?? 0);
  };
  await run(toA);
  await Promise.all([1, 2].map(replace));
  await run(toB);
  await replace(0);
  await run(toAll);
  return await load.ended();
}

async function startCallers(url: string, [first]: readonly Farebox[], calls: number) {
  assert.ok(first);
  const key = await makeProject(first);
  const users = Array.from({ length: callersCount }, (_, n) => `user-${n}`);
  for (const user of users) {
    await first.json("/v1/user/balance/deposit", { key, body: { user, amount: "9" } });
  }
  const client = Deno.createHttpClient({ caCerts: [await Deno.readTextFile(caPath)] });
  const outcome: Outcome = { answered: 0, lost: {} };
  let sent = 0;
  let isDone = false;
  let phase = "the start";
  const messages = [{ role: "user", content: "Hello" }];
  const ask = async (user: string) => {
    const stream = sent++ % 4 === 0;
    const response = await fetch(`${url}/v1/chat/completions`, {
      client,
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "test-model", user, messages, max_tokens: 9, stream }),
    });
    const text = await response.text();
    const isWhole = response.ok && (!stream || text.trimEnd().endsWith("[DONE]"));
    return isWhole ? null : `${response.status} ${text.slice(0, 200)}`;
  };
  const call = async (user: string) => {
    while (!isDone || sent < calls) {
      const fault = await ask(user).catch(String);
      if (fault === null) outcome.answered++;
      else {
        const told = `after ${phase}: ${fault}`;
        outcome.lost[told] = (outcome.lost[told] ?? 0) + 1;
      }
    }
  };
  const callers = Promise.all(users.map(call));
  return {
    /** What happens now, by which losses are told apart. */
    set phase(now: string) {
      phase = now;
    },
    async ended(): Promise<Outcome> {
      isDone = true;
      await callers;
      client.close();
      return outcome;
    },
  };
}

import assert from "node:assert/strict";
import { startArguments } from "../../scripts/start_arguments.ts";
import { databaseOf, makeFolder, serviceEnv, startFarebox } from "../support/process.ts";
import { makeProject } from "../support/traffic.ts";

// A cgroup of the test's own, of either version: only root of a machine may make one.
const roots = ["/sys/fs/cgroup/memory", "/sys/fs/cgroup"];
const mebibyte = 1024 * 1024;

/** A cgroup with a limit of memory; null where none can be made. */
function makeGroup(limitBytes: number): { path: string } & Disposable | null {
  for (const root of roots) {
    const path = `${root}/farebox-test-${Deno.pid}`;
    try {
      Deno.mkdirSync(path);
    } catch {
      continue;
    }
    for (const name of ["memory.limit_in_bytes", "memory.max"]) {
      try {
        const file = Deno.openSync(`${path}/${name}`, { write: true });
        file.writeSync(new TextEncoder().encode(String(limitBytes)));
        file.close();
        return { path, [Symbol.dispose]: () => Deno.removeSync(path) };
      } catch {
        // The file of the other version.
      }
    }
    Deno.removeSync(path);
  }
  return null;
}

function canMakeGroups(): boolean {
  if (Deno.build.os !== "linux") return false;
  using group = makeGroup(512 * mebibyte);
  return group !== null;
}

Deno.test({
  name: "memory: many large bodies do not end a service in 512 MiB",
  ignore: !canMakeGroups(),
  async fn() {
    using group = makeGroup(512 * mebibyte);
    assert.ok(group);
    await using folder = await makeFolder();
    await using upstream = Deno.serve(
      { hostname: "127.0.0.1", port: 0, onListen() {} },
      async (request) => {
        await request.body?.pipeTo(new WritableStream());
        return Response.json({
          choices: [{ message: { role: "assistant", content: "Hi" }, finish_reason: "stop" }],
          usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
        });
      },
    );
    const env = { ...serviceEnv, UPSTREAM_URL: `http://127.0.0.1:${upstream.addr.port}/v1` };
    const command = startArguments("start", {
      folder: folder.path,
      kvPath: databaseOf(folder.path),
    });
    const inGroup = `${group.path}/cgroup.procs`;
    await using farebox = await startFarebox({ folder: folder.path, env, command, inGroup });
    const keys = [await makeProject(farebox), await makeProject(farebox)];
    for (const key of keys) {
      const body = { user: "ada", amount: "100000" };
      await farebox.json("/v1/user/balance/deposit", { key, body });
    }
    const content = "wörd€ ".repeat(5 * mebibyte / 9);
    const body = {
      model: "test-model",
      user: "ada",
      max_tokens: 5,
      messages: [{ role: "user", content }],
    };
    for (let round = 0; round < 4; round++) {
      const statuses = await Promise.all(
        Array.from({ length: 40 }, async (_, at) => {
          const given = { body, key: keys[at % 2] ?? "" };
          const response = await farebox.call("/v1/chat/completions", given).catch(() => null);
          await response?.body?.cancel();
          return response?.status ?? 0;
        }),
      );
      // A refused caller may still be sending, and then sees a closed connection.
      assert.ok(statuses.every((status) => [0, 200, 503].includes(status)), statuses.join());
      assert.ok(statuses.includes(200));
    }
    assert.equal((await farebox.call("/healthz")).status, 200);
  },
});

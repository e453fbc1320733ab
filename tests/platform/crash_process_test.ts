import assert from "node:assert/strict";
import { findPostgres, startPostgres } from "../support/postgres.ts";
import {
  eventually,
  type Farebox,
  makeFolder,
  serviceEnv,
  startFarebox,
} from "../support/process.ts";
import { makeProject } from "../support/traffic.ts";
import { completion } from "../support/upstream.ts";

/** An upstream that answers all requests but the first, which ends with it. */
function startUpstream() {
  let asked = 0;
  const { promise: never, resolve: end } = Promise.withResolvers<Response>();
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, () => {
    asked++;
    return asked === 1 ? never : completion();
  });
  return {
    url: `http://127.0.0.1:${server.addr.port}`,
    asked: () => asked,
    async [Symbol.asyncDispose]() {
      end(completion());
      await server.shutdown();
    },
  };
}

const chat = (farebox: Farebox, key: string) =>
  farebox.call("/v1/chat/completions", {
    key,
    headers: { "idempotency-key": "order-1" },
    body: {
      model: "test-model",
      user: "ada",
      messages: [{ role: "user", content: "Hello" }],
      max_tokens: 200,
    },
  });

const kinds = async (farebox: Farebox, key: string) => {
  const { activities } = await farebox.json("/v1/user/activities?user=ada", { key });
  return activities.map(({ kind }: { kind: string }) => kind);
};

/** A service whose only call runs, with an idempotency key. */
async function startCall(farebox: Farebox, upstream: ReturnType<typeof startUpstream>) {
  const key = await makeProject(farebox);
  const body = { user: "ada", amount: "1" };
  await farebox.json("/v1/user/balance/deposit", { key, body });
  chat(farebox, key).then((response) => response.body?.cancel(), () => {});
  await eventually(() => upstream.asked() === 1);
  const { held } = await farebox.json("/v1/user/balance?user=ada", { key });
  assert.notEqual(held, "0");
  return key;
}

Deno.test("crash: a killed service holds nothing after its restart, and the repeated chat runs", async () => {
  await using upstream = startUpstream();
  await using folder = await makeFolder();
  const how = { folder: folder.path, env: { ...serviceEnv, UPSTREAM_URL: `${upstream.url}/v1` } };
  await using first = await startFarebox(how);
  const key = await startCall(first, upstream);
  first.signal("SIGKILL");
  await first.ended;
  await using second = await startFarebox(how);
  const { held } = await second.json("/v1/user/balance?user=ada", { key });
  assert.equal(held, "0", "by its first answer");
  assert.equal((await chat(second, key)).status, 200);
  assert.deepEqual(await kinds(second, key), ["usage", "expired", "deposit"]);
});

Deno.test({
  name: "crash: another service on the same PostgreSQL database takes over from a killed one",
  ignore: findPostgres() === null,
  async fn() {
    await using server = await startPostgres();
    await using upstream = startUpstream();
    await using folder = await makeFolder();
    const env = { ...serviceEnv, UPSTREAM_URL: `${upstream.url}/v1`, KV_PATH: server.url() };
    const how = { folder: folder.path, env };
    await using first = await startFarebox(how);
    await using second = await startFarebox(how);
    const key = await startCall(first, upstream);
    first.signal("SIGKILL");
    await first.ended;
    assert.equal((await chat(second, key)).status, 200);
    assert.deepEqual(await kinds(second, key), ["usage", "expired", "deposit"]);
  },
});

import assert from "node:assert/strict";
import { chatBody, completionsPath } from "../support/chat.ts";
import { type Farebox, makeFolder, serviceEnv, startFarebox } from "../support/process.ts";
import { caPath } from "../support/receiver.ts";
import { makeProject } from "../support/traffic.ts";
import { completion, helloStream } from "../support/upstream.ts";

const tls = (name: string) =>
  Deno.readTextFileSync(new URL(`../fixtures/tls/${name}`, import.meta.url));

async function chat(farebox: Farebox, key: string, stream = false) {
  await farebox.json("/v1/user/balance/deposit", { key, body: { user: "ada", amount: "1" } });
  const response = await fetch(farebox.url + completionsPath, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify(chatBody({ stream })),
  });
  return { status: response.status, text: await response.text() };
}

Deno.test("http: an upstream is called by TLS, with the host name that its certificate is for", async () => {
  await using server = Deno.serve({
    hostname: "127.0.0.1",
    port: 0,
    cert: tls("server.pem"),
    key: tls("server.key"),
    onListen() {},
  }, async (request) => ((await request.json()).stream ? helloStream() : completion()));
  const { port } = server.addr;
  for (
    const [host, trusted, status] of [
      ["localhost", true, 200],
      ["localhost", false, 502],
      ["127.0.0.2", true, 502],
    ] as const
  ) {
    await using folder = await makeFolder();
    const env = {
      ...serviceEnv,
      UPSTREAM_URL: `https://${host}:${port}/v1`,
      ...(trusted ? { DENO_CERT: caPath } : {}),
    };
    await using farebox = await startFarebox({ folder: folder.path, env });
    const key = await makeProject(farebox);
    assert.equal((await chat(farebox, key)).status, status, `${host} ${trusted}`);
    if (status !== 200) continue;
    assert.match((await chat(farebox, key, true)).text, /\[DONE\]/);
  }
});

Deno.test("http: if a proxy is set, the upstream is called through it", async () => {
  const asked: string[] = [];
  await using proxy = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, (request) => {
    asked.push(request.url);
    return completion();
  });
  await using folder = await makeFolder();
  const env = {
    ...serviceEnv,
    UPSTREAM_URL: "http://models.test/v1",
    http_proxy: `http://127.0.0.1:${proxy.addr.port}`,
  };
  await using farebox = await startFarebox({ folder: folder.path, env });
  const key = await makeProject(farebox);
  assert.equal((await chat(farebox, key)).status, 200);
  assert.deepEqual(asked, ["http://models.test/v1/chat/completions"]);
});

import assert from "node:assert/strict";
import { variableNames } from "../../src/config.ts";
import { startNginx } from "../support/nginx.ts";
import { makeFolder, serviceEnv, startFarebox } from "../support/process.ts";
import { caPath } from "../support/receiver.ts";
import { snippetOf } from "../support/snippets.ts";
import { findCommand, testWith } from "../support/toolchains.ts";
import { makeProject } from "../support/traffic.ts";
import { chunk, usageChunk } from "../support/upstream.ts";

const nginx = await findCommand("nginx", "/usr/sbin");

testWith(
  nginx,
  "guides: nginx as configured passes each piece of a stream on at once, over TLS",
  async (path) => {
    await using folder = await makeFolder();
    await using upstream = startHeldUpstream();
    const env = { ...serviceEnv, UPSTREAM_URL: upstream.url };
    await using service = await startFarebox({ folder: folder.path, env });
    const key = await makeProject(service);
    await service.json("/v1/user/balance/deposit", { key, body: { user: "ada", amount: "1" } });
    const guide = await snippetOf("nginx", "nginx");
    const { host } = new URL(service.url);
    await using proxy = await startNginx(path, { guide, folder: folder.path, host });
    assert.match(await proxy.check(), /test is successful/);

    using client = Deno.createHttpClient({ caCerts: [await Deno.readTextFile(caPath)] });
    const messages = [{ role: "user", content: "Hello" }];
    const answer = await fetch(`${proxy.url}/v1/chat/completions`, {
      client,
      signal: AbortSignal.timeout(10_000),
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "test-model", user: "ada", stream: true, messages }),
    });
    assert.equal(answer.status, 200);
    const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader() ?? assert.fail();
    let seen = "";
    while (!seen.includes("first words")) {
      const { done, value } = await reader.read();
      if (done) assert.fail(`ended with ${seen}`);
      seen += value;
    }
    // The upstream sends the rest only now: the part that was read did not wait for it.
    assert.ok(!seen.includes("last words"));
    upstream.release();
    for (let next = await reader.read(); !next.done; next = await reader.read()) seen += next.value;
    assert.match(seen, /last words[^]*\[DONE\]/);
  },
);

testWith(
  nginx,
  "guides: nginx as configured keeps operators' pages from strangers, limits them, and demands TLS",
  async (path) => {
    await using folder = await makeFolder();
    const env = { ...serviceEnv, METRICS_TOKEN: "a-token-of-the-metrics" };
    await using service = await startFarebox({ folder: folder.path, env });
    const guide = (await snippetOf("nginx", "nginx"))
      .replace("127.0.0.1 1;", "").replace("allow 127.0.0.1;", "");
    const { host } = new URL(service.url);
    await using proxy = await startNginx(path, { guide, folder: folder.path, host });
    using client = Deno.createHttpClient({ caCerts: [await Deno.readTextFile(caPath)] });
    const call = async (target: string) => {
      const response = await fetch(proxy.url + target, {
        client,
        headers: { authorization: `Bearer ${serviceEnv.ADMIN_KEY}` },
      });
      await response.body?.cancel();
      return response;
    };
    const health = await call("/healthz");
    assert.equal(health.status, 200);
    assert.match(health.headers.get("strict-transport-security") ?? "", /^max-age=\d{8}/);
    const operators = ["/console", "/console/projects", "/metrics", "/v1/admin/projects"];
    for (const target of [...operators, "/v1/%61dmin/projects", "/v1//admin/projects"]) {
      assert.equal((await call(target)).status, 403, target);
    }
    const statuses = new Set<number>();
    for (let n = 0; n < 40; n++) statuses.add((await call("/topup/none")).status);
    assert.ok(statuses.has(429), `${[...statuses]}`);
  },
);

/** An upstream that stops in the middle of a stream until it is told to continue. */
function startHeldUpstream() {
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const encoder = new TextEncoder();
  async function* pieces() {
    const frame = (data: unknown) => encoder.encode(`data: ${JSON.stringify(data)}\n\n`);
    yield frame(chunk({ role: "assistant", content: "first words" }));
    await released;
    yield frame(chunk({ content: "last words" }));
    yield frame(chunk({}, "stop"));
    yield frame(usageChunk());
    yield encoder.encode("data: [DONE]\n\n");
  }
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen() {} },
    () =>
      new Response(ReadableStream.from(pieces()), {
        headers: { "content-type": "text/event-stream" },
      }),
  );
  return {
    url: `http://127.0.0.1:${server.addr.port}`,
    release,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

testWith(
  nginx,
  "guides: the nginx of the compose example passes calls to its services",
  async (path) => {
    await using folder = await makeFolder();
    await using service = await startFarebox({ folder: folder.path, env: serviceEnv });
    const key = await makeProject(service);
    const { host } = new URL(service.url);
    const example = await Deno.readTextFile(
      new URL("../../examples/compose-nginx.conf", import.meta.url),
    );
    const tls = "listen 443 ssl;\n  server_name farebox.example;\n" +
      "  ssl_certificate /etc/letsencrypt/live/x/fullchain.pem;\n" +
      "  ssl_certificate_key /etc/letsencrypt/live/x/privkey.pem;";
    const guide = example.replace("farebox:8000", host).replace("listen 8080;", tls);
    await using proxy = await startNginx(path, { guide, folder: folder.path, host });
    assert.match(await proxy.check(), /test is successful/);
    using client = Deno.createHttpClient({ caCerts: [await Deno.readTextFile(caPath)] });
    const answer = await fetch(`${proxy.url}/v1/user/balance?user=ada`, {
      client,
      headers: { authorization: `Bearer ${key}`, "x-service-user": "ada" },
    });
    assert.equal(answer.status, 200);
    assert.equal((await answer.json()).balance, "0");
  },
);

Deno.test("guides: the compose example names only settings that the service reads", async () => {
  const example = await Deno.readTextFile(new URL("../../examples/compose.yaml", import.meta.url));
  const named = [...example.matchAll(/\b([A-Z]+(?:_[A-Z]+)+)\b/g)].map(([, name = ""]) => name);
  const others = named.filter((name) => !name.startsWith("POSTGRES_"));
  assert.ok(others.includes("KV_PATH"));
  assert.deepEqual(others.filter((name) => !variableNames.includes(name)), []);
});

import assert from "node:assert/strict";
import { chatBody, chatPath } from "../support/books.ts";
import { adminKey, createWorld } from "../support/world.ts";
import { ApiError } from "../../src/base/errors.ts";
import { rowsPerPage } from "../../src/store/listing.ts";
import { makeFolder, serviceEnv, startFarebox } from "../support/process.ts";
import { measureBody } from "../../src/base/response.ts";

const openPaths = [
  chatPath,
  "/v1/ada/chat/completions",
  "/v1/models",
  "/v1/models/test-model",
  "/v1/ada/models",
  "/v1/ada/models/test-model",
];
const closedPaths = [
  "/v1/user/balance",
  "/v1/user/balance/deposit",
  "/v1/user/charge",
  "/v1/admin/projects",
];

Deno.test("headers: nothing under /v1 is stored by a cache, or taken for another type", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const user = { user: "ada", model: "test-model", messages: [{ role: "user", content: "Hi" }] };
  const calls: [path: string, options?: Parameters<typeof world.call>[1]][] = [
    ["/v1/models"],
    ["/v1/user/balance?user=ada"],
    ["/v1/user/balance?user=ada", { method: "HEAD" }],
    ["/v1/user/balance?user=ada", { key: null }],
    ["/v1/user/balance/deposit", { body: { user: "ada", amount: "1" } }],
    ["/v1/user/balance/deposit", { body: { user: "ada", amount: "x" } }],
    [chatPath, { body: user }],
    [chatPath, { body: { ...user, stream: true } }],
    [chatPath, { body: { ...user, user: "bob" } }],
    [chatPath, { method: "OPTIONS", key: null }],
    [chatPath],
    ["/v1/none"],
    ["/v1"],
    ["/v1/webhooks/logs"],
    ["/v1/admin/projects", { key: adminKey }],
    ["/v1/stripe/none", { raw: "{}", key: null }],
  ];
  for (const [path, options] of calls) {
    const response = await world.call(path, options);
    await response.body?.cancel();
    const { status, headers } = response;
    assert.match(headers.get("cache-control") ?? "", /^no-store\b/, `${path} ${status}`);
    assert.equal(headers.get("x-content-type-options"), "nosniff", `${path} ${status}`);
  }
});

Deno.test("headers: a browser may call chat and models from any origin, after a preflight", async () => {
  using world = await createWorld();
  for (const path of openPaths) {
    const response = await world.call(path, {
      method: "OPTIONS",
      key: null,
      headers: {
        origin: "https://app.example",
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization, content-type, x-service-user",
      },
    });
    assert.equal(response.status, 204, path);
    assert.equal(response.headers.get("access-control-allow-origin"), "*", path);
    const methods = response.headers.get("access-control-allow-methods") ?? "";
    assert.match(methods, /POST/, path);
    // A wildcard does not cover Authorization
    // (https://fetch.spec.whatwg.org/#http-new-header-syntax).
    const headers = response.headers.get("access-control-allow-headers")?.toLowerCase() ?? "";
    assert.match(headers, /authorization/, path);
    assert.equal(response.headers.get("access-control-allow-credentials"), null, path);
    assert.equal(await response.text(), "");
  }
});

Deno.test("headers: responses and errors of chat and models can be read by a page", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const headers = { origin: "https://app.example" };
  const answers = [
    await world.call(chatPath, { body: chatBody("ada"), headers }),
    await world.call(chatPath, { body: chatBody("nobody"), headers }),
    await world.call(chatPath, { body: {}, headers }),
    await world.call(chatPath, { body: chatBody("ada"), headers, key: "wrong" }),
    await world.call(chatPath, { method: "DELETE", headers }),
    await world.call("/v1/models", { headers }),
    await world.call("/v1/models/none", { headers }),
  ];
  for (const response of answers) {
    assert.equal(response.headers.get("access-control-allow-origin"), "*", `${response.status}`);
    assert.notEqual(response.headers.get("access-control-expose-headers"), null);
    await response.body?.cancel();
  }
});

Deno.test("headers: money and administration are closed to pages of other origins", async () => {
  using world = await createWorld();
  for (const path of closedPaths) {
    for (const method of ["OPTIONS", "GET", "POST"]) {
      const response = await world.call(path, {
        method,
        headers: { origin: "https://app.example", "access-control-request-method": "POST" },
      });
      assert.equal(response.headers.get("access-control-allow-origin"), null, `${method} ${path}`);
      await response.body?.cancel();
    }
  }
});

const someOfEach: [method: string, path: string, key?: null][] = [
  ["GET", "/healthz", null],
  ["GET", "/readyz", null],
  ["GET", "/v1/models"],
  ["GET", "/v1/models", null],
  ["GET", "/v1/user/balance?user=ada"],
  ["GET", "/v1/user/activities?user=ada"],
  ["GET", "/nowhere"],
  ["PUT", chatPath],
  ["OPTIONS", chatPath, null],
  ["OPTIONS", "/v1/models", null],
  ["GET", "/topup/forged", null],
  ["POST", chatPath],
];

Deno.test("headers: every response names its request, by the caller's own id if there is one", async () => {
  using world = await createWorld();
  for (const [method, path, key] of someOfEach) {
    const options = { method, ...(key === null ? { key } : {}) };
    const ours = await world.call(path, options);
    assert.match(ours.headers.get("x-request-id") ?? "", /^req_[0-9A-Z]{26}$/, `${method} ${path}`);
    await ours.body?.cancel();
    const theirs = await world.call(path, { ...options, headers: { "x-request-id": "my-id/1" } });
    assert.equal(theirs.headers.get("x-request-id"), "my-id/1", `${method} ${path}`);
    await theirs.body?.cancel();
  }
});

Deno.test("headers: a request id that is not 1 to 128 visible ASCII characters is not echoed", async () => {
  using world = await createWorld();
  for (const id of ["", "a b", "a\tb", "é", "\u0080", "a".repeat(129)]) {
    const response = await world.call("/healthz", { headers: { "x-request-id": id } });
    assert.match(response.headers.get("x-request-id") ?? "", /^req_/, JSON.stringify(id));
    await response.body?.cancel();
  }
  for (const id of ["a".repeat(128), "~!", '"<script>"']) {
    const response = await world.call("/healthz", { headers: { "x-request-id": id } });
    assert.equal(response.headers.get("x-request-id"), id);
    await response.body?.cancel();
  }
});

Deno.test("http: HEAD reports a response's length, or none where it is unknown", async () => {
  await using folder = await makeFolder();
  await using farebox = await startFarebox({ folder: folder.path, env: serviceEnv });
  const made = { key: adminKey, body: { name: "Test" } };
  const { project, apiKey } = await farebox.json("/v1/admin/projects", made);
  // What is compressed is longer once it has been read.
  const headers = { authorization: `Bearer ${adminKey}`, "accept-encoding": "identity" };
  const ask = async (method: string, path: string) => {
    const response = await fetch(farebox.url + path, { method, headers });
    const { byteLength } = await response.arrayBuffer();
    return { status: response.status, byteLength, told: response.headers.get("content-length") };
  };
  for (const path of ["/healthz", "/openapi.json", "/v1/admin/projects", "/v1/models", "/wallet"]) {
    const whole = await ask("GET", path);
    const { status, byteLength, told } = await ask("HEAD", path);
    assert.deepEqual([status, byteLength, told], [whole.status, 0, String(whole.byteLength)], path);
  }
  await Promise.all(Array.from({ length: rowsPerPage + 1 }, async () => {
    const body = { user: "ada", amount: "1" };
    await farebox.json("/v1/user/balance/deposit", { key: apiKey, body });
  }));
  const exported = `/v1/admin/projects/${project.id}/export?what=entries`;
  assert.deepEqual(await ask("HEAD", exported), { status: 200, byteLength: 0, told: null });
});

Deno.test("http: a response to HEAD leaves nothing behind that would wait for a reader", async () => {
  const endless = () => {
    const state = { left: false };
    const body = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(new Uint8Array(10)),
      cancel: () => void (state.left = true),
    });
    return { state, body };
  };
  for (const told of [null, "12345"]) {
    const { state, body } = endless();
    const answer = new Response(body, { headers: told ? { "content-length": told } : {} });
    await measureBody(answer);
    assert.deepEqual([state.left, answer.headers.get("content-length")], [true, told]);
  }
});

Deno.test("errors: additional headers do not replace those of an error", () => {
  const own = { "retry-after": "7" };
  const fault = new ApiError(429, { message: "Too fast.", code: "rate_limited", headers: own });
  const both = fault.with({ "retry-after": "1", "x-ratelimit-limit-requests": "9" });
  assert.deepEqual(both.headers, { "retry-after": "7", "x-ratelimit-limit-requests": "9" });
  assert.deepEqual([both.status, both.body()], [429, fault.body()]);
});

Deno.test("log: the path of an unknown route shows known words and ids, and no user", async () => {
  using world = await createWorld();
  const id = "sub_01K9Z0C8Q4R7T2V5X8Z1B3D5F7";
  const paths: [asked: string, logged: string][] = [
    ["/v1/ada@example.com/batches", "/v1/[other]/batches"],
    ["/v1/v1/ada/chat/completions", "/v1/v1/[other]/chat/completions"],
    ["/ada/chat/completions", "/[other]/chat/completions"],
    ["/v1/user/ada/balance", "/v1/user/[other]/balance"],
    ["/v1/users/user_123", "/v1/users/[other]"],
    [
      "/v1/admin/projects/pw_x/users/a%40b.c/expunge",
      "/v1/admin/projects/[other]/users/[user]/[other]",
    ],
    [`/v1/webhooks/subscriptions/${id}/pause`, `/v1/webhooks/subscriptions/${id}/[other]`],
    ["/v1/files/file-secret/content", "/v1/files/[other]/[other]"],
    ["/v1/ada/vector_stores/vs_1/files", "/v1/[other]/vector_stores/[other]/files"],
    ["/files/ada", "/files/[other]"],
    ["/favicon.ico", "/favicon.ico"],
  ];
  for (const [asked, logged] of paths) {
    const response = await world.call(asked, { body: {} });
    await response.body?.cancel();
    assert.equal(response.status, 404, asked);
    assert.equal(world.logged.at(-1)?.path, logged);
    // More refusals in a second have no lines of their own.
    await world.clock.advance(1_000);
  }
});

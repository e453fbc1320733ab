import assert from "node:assert/strict";
import { chatBody, chatPath } from "../support/books.ts";
import { createWorld } from "../support/world.ts";

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

Deno.test("headers: a browser may call chat and models from any origin, after asking", async () => {
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
    // A wildcard does not cover Authorization (https://fetch.spec.whatwg.org/#http-new-header-syntax).
    const headers = response.headers.get("access-control-allow-headers")?.toLowerCase() ?? "";
    assert.match(headers, /authorization/, path);
    assert.equal(response.headers.get("access-control-allow-credentials"), null, path);
    assert.equal(await response.text(), "");
  }
});

Deno.test("headers: answers and errors of chat and models can be read by a page", async () => {
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

Deno.test("headers: money and administration are not open to pages of other origins", async () => {
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

Deno.test("headers: every answer names its request, by the caller's own id where there is one", async () => {
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

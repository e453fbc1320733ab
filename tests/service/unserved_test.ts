import assert from "node:assert/strict";
import { unservedEndpoints } from "../../src/unserved.ts";
import { createWorld } from "../support/world.ts";

const methods = ["GET", "POST", "DELETE"];

for (const { path, advice, api } of unservedEndpoints) {
  Deno.test(`unserved: ${path} is 404 and says what to use in its place, under any base URL`, async () => {
    using world = await createWorld();
    const real = path.replace("*", "x-1");
    const forms = [
      `/v1/${real}`,
      `/${real}`,
      `/v1/v1/${real}`,
      `/v1/ada/${real}`,
      `/v1/ada/v1/${real}`,
      `/v1/${real}/`,
      `/v1/${real}/an-id/more`,
      `/v1/${real}?limit=2`,
    ];
    // By GET and DELETE, a path below responses names a response.
    const asked = path.startsWith("responses/") ? ["POST"] : methods;
    for (const form of forms) {
      for (const method of asked) {
        const { status, body, response } = await world.json(form, { method, key: null });
        assert.equal(status, 404, `${method} ${form}`);
        assert.ok(body.error.message.endsWith(` is not served here. ${advice}`), form);
        assert.equal(response.headers.get("access-control-allow-origin"), "*", form);
        if (api === "anthropic") assert.equal(body.error.type, "not_found_error");
        else assert.equal(body.error.code, "unknown_url");
      }
      const headers = { "access-control-request-method": "DELETE" };
      const preflight = await world.call(form, { method: "OPTIONS", key: null, headers });
      assert.equal(preflight.status, 204, form);
      assert.match(preflight.headers.get("access-control-allow-methods") ?? "", /DELETE/);
    }
  });
}

Deno.test("unserved: a client of Anthropic's API reads its own error body at every path", async () => {
  using world = await createWorld();
  const headers = { "anthropic-version": "2023-06-01" };
  for (const path of ["/v1/files", "/v1/skills", "/v1/nosuch", "/v1/messages/batches"]) {
    const { status, body, response } = await world.json(path, { body: {}, headers });
    const { type, error, request_id } = body;
    const seen = [status, type, error.type, request_id];
    const requestId = response.headers.get("x-request-id");
    assert.deepEqual(seen, [404, "error", "not_found_error", requestId], path);
  }
});

Deno.test("unserved: a slip in the path of an endpoint gets the right one", async () => {
  using world = await createWorld();
  const slips = [
    ["/v1/chat/completion", "Did you mean /v1/chat/completions?"],
    ["/v1/chat/compeltions", "Did you mean /v1/chat/completions?"],
    ["/v1/embedding", "Did you mean /v1/embeddings?"],
    ["/v1/chats/completes", "Please check the URL for typos."],
    [`/v1/${"x".repeat(2_000)}`, "Please check the URL for typos."],
  ];
  for (const [path = "", advice = ""] of slips) {
    const { status, body } = await world.json(path, { body: {} });
    assert.equal(status, 404, path);
    assert.ok(body.error.message.endsWith(advice), body.error.message);
  }
});

Deno.test("unserved: no row of the table hides a path that is served", async () => {
  using world = await createWorld();
  const served = Object.keys(world.app.routes);
  for (const { path } of unservedEndpoints) {
    const hidden = served.filter((route) => `${route}/`.startsWith(`/v1/${path}/`));
    assert.deepEqual(hidden, [], path);
  }
});

Deno.test("unserved: a path without /v1 says what the base URL must be", async () => {
  using world = await createWorld();
  const paths = ["/chat/completions", "/embeddings", "/models", "/models/a", "/user/balance"];
  for (const path of paths) {
    const { status, body } = await world.json(path, { body: {} });
    assert.equal(status, 404, path);
    assert.match(body.error.message, /The base URL must end in \/v1, or in \/v1\/USER\.$/, path);
  }
});

Deno.test("unserved: a WebSocket is 426, and the message says what to use", async () => {
  using world = await createWorld();
  const headers = { connection: "Upgrade", upgrade: "websocket" };
  const paths: [path: string, says: RegExp][] = [
    ["/v1/realtime?model=x", /There is no realtime connection/],
    ["/realtime", /There is no realtime connection/],
    ["/v1/chat/completions", /ordinary POST/],
  ];
  for (const [path, says] of paths) {
    const { status, body, response } = await world.json(path, { headers });
    assert.deepEqual([status, body.error.code], [426, "websocket_not_supported"], path);
    assert.match(body.error.message, says);
    assert.equal(response.headers.get("upgrade"), "HTTP/1.1");
  }
  assert.equal((await world.json("/v1/nosuch", { headers })).status, 404);
});

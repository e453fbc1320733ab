import assert from "node:assert/strict";
import { sharedWorld } from "../support/wallets.ts";
import { createWorld } from "../support/world.ts";

Deno.test("connect: in the default mode every user is connected, and nothing is written", async () => {
  using world = await createWorld();
  const { status, body } = await world.json("/v1/user/connect?user=ada");
  assert.equal(status, 200);
  assert.deepEqual([body.connected, body.connectedUser, typeof body.message], [
    true,
    "ada",
    "string",
  ]);
  assert.deepEqual(await world.activities("ada"), []);
  assert.equal((await world.json("/v1/user/connect")).body.error.code, "user_required");
  assert.equal((await world.json("/v1/user/connect?user=ada", { key: null })).status, 401);
});

Deno.test("connect: in the default mode there is nothing to disconnect", async () => {
  using world = await createWorld();
  for (const method of ["GET", "POST"]) {
    const { status, body } = await world.json("/v1/user/disconnect?user=ada", { method });
    assert.deepEqual([status, body.error.code], [400, "mode_conflict"]);
  }
});

Deno.test("connect: over a socket too, an empty body may be omitted", async () => {
  using world = await sharedWorld();
  await using server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen() {} },
    (request) => world.app.fetch(request),
  );
  const ask = async (query: string, headers: Record<string, string> = {}, body?: string) => {
    const response = await fetch(
      `http://127.0.0.1:${server.addr.port}/v1/user/disconnect${query}`,
      {
        method: "POST",
        headers: { authorization: `Bearer ${world.apiKey}`, ...headers },
        ...(body === undefined ? {} : { body }),
      },
    );
    const { disconnected, error } = await response.json();
    return [response.status, disconnected ?? error.code];
  };
  const json = { "content-type": "application/json" };
  const text = { "content-type": "text/plain" };
  assert.deepEqual(await ask("?user=ada"), [200, true]);
  assert.deepEqual(await ask("", { "x-service-user": "ada" }), [200, true]);
  assert.deepEqual(await ask("?user=ada", json, ""), [200, true]);
  assert.deepEqual(await ask("?user=ada", text, ""), [200, true], "nothing is of any type");
  assert.deepEqual(await ask("", json, '{"user":"ada"}'), [200, true]);
  assert.deepEqual(await ask(""), [400, "user_required"]);
  assert.deepEqual(await ask("?user=ada", json, "{"), [400, null]);
  assert.deepEqual(await ask("?user=ada", text, "{}"), [415, "unsupported_media_type"]);
});

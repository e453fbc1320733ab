import assert from "node:assert/strict";
import { adminKey, createWorld } from "../support/world.ts";

Deno.test("routes: no log line shows the token or the user that a path names", async () => {
  using world = await createWorld();
  for (const [path, { secretParams = [] }] of Object.entries(world.app.routes)) {
    const named = path.replace(/:(\w+)/g, "secret-of-$1").replace("*", "rest");
    for (const suffix of ["", "/more"]) {
      await (await world.call(named + suffix, { key: adminKey })).body?.cancel();
      const line = String(world.logged.findLast(({ event }) => event === "request")?.path);
      for (const param of secretParams) {
        assert.ok(!line.includes(`secret-of-${param}`), `${path}${suffix}: ${line}`);
      }
    }
  }
});

Deno.test("routes: every parameter that opens a page or names a person is secret", async () => {
  using world = await createWorld();
  for (const [path, { secretParams = [] }] of Object.entries(world.app.routes)) {
    if (path.startsWith("/console")) continue;
    for (const param of ["token", "user"]) {
      if (path.includes(`/:${param}`)) assert.ok(secretParams.includes(param), path);
    }
  }
});

Deno.test("routes: a path segment below /v1 names no user in a path", async () => {
  using world = await createWorld();
  const words = Object.keys(world.app.routes).flatMap((path) => {
    const word = /^\/v1\/([^/:]+)/.exec(path)?.[1];
    return word ? [word] : [];
  });
  for (const word of new Set([...words, "v1"])) {
    const body = { model: "test-model", messages: [{ role: "user", content: "Hi" }] };
    const encoded = `%${word.charCodeAt(0).toString(16)}${word.slice(1)}`;
    const { status } = await world.json(`/v1/${encoded}/chat/completions`, { body });
    assert.equal(status, 400, word);
  }
});

Deno.test("routes: pages of any origin may call models, and read why a path is not served", async () => {
  using world = await createWorld();
  const corsOf = async (path: string, method = "GET") => {
    const response = await world.call(path, { method });
    await response.body?.cancel();
    return response.headers.get("access-control-allow-origin");
  };
  for (const path of ["/v1/chat/completions", "/v1/ada/completions"]) {
    assert.equal(await corsOf(path, "OPTIONS"), "*", path);
    assert.equal(await corsOf(path), "*", `${path} answers 405`);
  }
  for (const path of ["/v1/batches", "/chat/completions", "/v1/v1/models/x"]) {
    assert.equal(await corsOf(path, "POST"), "*", path);
    const headers = { "access-control-request-method": "POST" };
    const preflight = await world.call(path, { method: "OPTIONS", headers });
    assert.deepEqual([preflight.status, preflight.headers.get("access-control-allow-origin")], [
      204,
      "*",
    ]);
  }
  for (const path of ["/v1/user/balance", "/v1/admin/projects"]) {
    assert.equal(await corsOf(path, "OPTIONS"), null, path);
  }
});

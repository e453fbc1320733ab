import assert from "node:assert/strict";
import { devApiKey } from "../../src/base/dev_keys.ts";
import { devProjectId } from "../../src/projects/auth.ts";
import { devProject } from "../../src/projects/dev_project.ts";
import { chatBody, storedRows } from "../support/books.ts";
import { createWorld, type World } from "../support/world.ts";

async function devWorld(): Promise<World> {
  const world = await createWorld({ dev: true });
  await world.app.admin.ensure(devProjectId, devProject);
  return world;
}

function ask(world: World, headers: Record<string, string> = {}, origin = "http://localhost:8000") {
  return world.app.fetch(
    new Request(`${origin}/v1/models`, {
      headers: { authorization: `Bearer ${devApiKey}`, ...headers },
    }),
  );
}

Deno.test("dev key: opens the development project from this machine", async () => {
  using world = await devWorld();
  for (const origin of ["http://localhost:8000", "http://127.0.0.1:8000", "http://[::1]:8000"]) {
    assert.equal((await ask(world, {}, origin)).status, 200, origin);
    const own = { origin, "sec-fetch-site": "same-origin" };
    assert.equal((await ask(world, own, origin)).status, 200, origin);
  }
});

const foreign: Record<string, string>[] = [
  { "x-forwarded-for": "203.0.113.9" },
  { "x-forwarded-for": "127.0.0.1" },
  { "x-forwarded-host": "localhost" },
  { "x-forwarded-proto": "https" },
  { "X-Forwarded-Server": "proxy" },
  { forwarded: "for=127.0.0.1" },
  { via: "1.1 proxy" },
  { "x-real-ip": "203.0.113.9" },
  { "cf-connecting-ip": "203.0.113.9" },
  { origin: "https://evil.example" },
  { origin: "http://localhost.evil.example" },
  { origin: "null" },
  { origin: "" },
  { origin: "nonsense" },
];

Deno.test("dev key: is refused behind forwarding headers and for pages of a foreign origin", async () => {
  using world = await devWorld();
  for (const headers of foreign) {
    const response = await ask(world, headers);
    assert.equal(response.status, 401, JSON.stringify(headers));
    assert.equal((await response.json()).error.code, "invalid_api_key");
  }
});

Deno.test("dev key: is refused under a foreign host name", async () => {
  using world = await devWorld();
  const origins = [
    "http://evil.example:8000",
    "http://localhost.evil.example",
    "http://192.168.1.5:8000",
    "http://0.0.0.0:8000",
    "https://abc.tunnel.example",
  ];
  for (const origin of origins) assert.equal((await ask(world, {}, origin)).status, 401, origin);
});

Deno.test("dev key: is not a key outside development, even if the project exists", async () => {
  using world = await createWorld();
  await world.app.admin.ensure(devProjectId, devProject);
  assert.equal((await ask(world)).status, 401);
});

Deno.test("dev key: is never stored", async () => {
  using world = await devWorld();
  await (await ask(world)).body?.cancel();
  await world.json("/v1/user/balance/deposit", {
    key: devApiKey,
    body: { user: "ada", amount: "1" },
  });
  const rows = await storedRows(world);
  assert.ok(rows.length > 0);
  for (const { key, value } of rows) {
    const text = JSON.stringify(key) + new TextDecoder().decode(value ?? new Uint8Array());
    assert.ok(!text.includes(devApiKey), text);
    assert.ok(key[0] !== "key_hash", "nor its hash");
  }
});

Deno.test("dev key: creating the project again leaves it unchanged", async () => {
  using world = await devWorld();
  await world.json("/v1/user/balance/deposit", {
    key: devApiKey,
    body: { user: "ada", amount: "1" },
  });
  await world.app.admin.ensure(devProjectId, { ...devProject, name: "Other" });
  const { body } = await world.json("/v1/user/balance?user=ada", { key: devApiKey });
  assert.equal(body.balance, "1");
});

Deno.test("dev key: without an upstream, the error names the model that works", async () => {
  using world = await createWorld({ dev: true, env: { UPSTREAM_URL: "", UPSTREAM_API_KEY: "" } });
  await world.app.admin.ensure(devProjectId, devProject);
  const response = await world.app.fetch(
    new Request("http://localhost:8000/v1/chat/completions", {
      method: "POST",
      headers: { authorization: `Bearer ${devApiKey}`, "content-type": "application/json" },
      body: JSON.stringify({ ...chatBody("ada"), model: "gpt-4o-mini" }),
    }),
  );
  assert.equal(response.status, 502);
  const { error } = await response.json();
  assert.match(error.message, /'sandbox\/echo' answers without UPSTREAM_URL/);
});

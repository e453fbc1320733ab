import assert from "node:assert/strict";
import { devAdminKey, devApiKey } from "../../src/base/dev_keys.ts";
import { devProjectId } from "../../src/projects/auth.ts";
import { devProject } from "../../src/projects/dev_project.ts";
import { chatBody, storedRows } from "../support/books.ts";
import { adminKey, createWorld, type World } from "../support/world.ts";

async function devWorld(): Promise<World> {
  const world = await createWorld({ dev: true });
  await world.app.admin.ensure(devProjectId, devProject);
  return world;
}

type Asked = { key?: string; path?: string; origin?: string };

/** A request with a key of development, as `origin` is asked. */
function ask(
  world: World,
  headers: Record<string, string> = {},
  { key = devApiKey, path = "/v1/models", origin = "http://localhost:8000" }: Asked = {},
) {
  const request = new Request(`${origin}${path}`, {
    headers: { authorization: `Bearer ${key}`, ...headers },
  });
  return world.app.fetch(request);
}

/** Signs in at the console; returns the cookie, or null where it is refused. */
async function signIn(
  world: World,
  key: string,
  headers: Record<string, string> = {},
  origin = "http://localhost:8000",
): Promise<string | null> {
  const request = new Request(`${origin}/console/sign-in`, {
    method: "POST",
    headers: { "content-type": "application/x-www-form-urlencoded", ...headers },
    body: new URLSearchParams({ key }),
  });
  const { status, headers: answered } = await world.app.fetch(request);
  const cookie = answered.get("set-cookie")?.split(";")[0] ?? null;
  assert.equal(status === 303, cookie !== null, `${status}`);
  return cookie;
}

const credentials: readonly Required<Pick<Asked, "key" | "path">>[] = [
  { key: devApiKey, path: "/v1/models" },
  { key: devAdminKey, path: "/v1/admin/projects" },
];

Deno.test("dev key: opens the development project, or all, from this machine", async () => {
  using world = await devWorld();
  for (const asked of credentials) {
    for (const origin of ["http://localhost:8000", "http://127.0.0.1:8000", "http://[::1]:8000"]) {
      const own = { origin, "sec-fetch-site": "same-origin" };
      for (const headers of [{}, own, { origin: "http://localhost:3000" }]) {
        const { status } = await ask(world, headers, { ...asked, origin });
        assert.equal(status, 200, `${asked.key} ${origin} ${JSON.stringify(headers)}`);
      }
      assert.ok(await signIn(world, asked.key, own, origin));
    }
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
  { "true-client-ip": "203.0.113.9" },
  { "x-original-host": "abc.tunnel.example" },
  { host: "evil.example" },
  { host: "localhost.evil.example:8000" },
  { origin: "https://evil.example" },
  { origin: "http://localhost.evil.example" },
  { origin: "null" },
  { origin: "" },
  { origin: "nonsense" },
];

Deno.test("dev key: is refused behind forwarding headers and for pages of a foreign origin", async () => {
  using world = await devWorld();
  for (const asked of credentials) {
    for (const headers of foreign) {
      const response = await ask(world, headers, asked);
      assert.equal(response.status, 401, `${asked.key} ${JSON.stringify(headers)}`);
      assert.equal((await response.json()).error.code, "invalid_api_key");
      assert.equal(await signIn(world, asked.key, headers), null, JSON.stringify(headers));
      const seen = { ...headers, "sec-fetch-site": "same-origin" };
      assert.equal(await signIn(world, asked.key, seen), null, JSON.stringify(seen));
    }
  }
});

const foreignHosts = [
  "http://evil.example:8000",
  "http://localhost.evil.example",
  "http://192.168.1.5:8000",
  "http://0.0.0.0:8000",
  "https://abc.tunnel.example",
];

Deno.test("dev key: is refused under a foreign host name", async () => {
  using world = await devWorld();
  for (const asked of credentials) {
    for (const origin of foreignHosts) {
      assert.equal((await ask(world, {}, { ...asked, origin })).status, 401, origin);
      // As a browser sends it whose DNS was made to lead here.
      const page = { origin, "sec-fetch-site": "same-origin" };
      assert.equal(await signIn(world, asked.key, page, origin), null, origin);
    }
  }
});

Deno.test("dev key: its sessions of the console end where the key would not count", async () => {
  using world = await devWorld();
  for (const { key } of credentials) {
    const cookie = await signIn(world, key) ?? assert.fail();
    const visit = (headers: Record<string, string>, origin?: string) =>
      ask(world, { cookie, ...headers }, {
        path: `/console/projects/${devProjectId}`,
        ...(origin ? { origin } : {}),
      });
    assert.equal((await visit({})).status, 200);
    for (const headers of foreign) assert.equal((await visit(headers)).status, 303);
    for (const origin of foreignHosts) assert.equal((await visit({}, origin)).status, 303);
  }
});

Deno.test("dev key: the operator's own ADMIN_KEY in development works from anywhere, as it is secret", async () => {
  using world = await createWorld({ dev: true, env: { ADMIN_KEY: adminKey } });
  const asked = { key: adminKey, path: "/v1/admin/projects", origin: "http://dev.internal:8000" };
  assert.equal((await ask(world, { "x-forwarded-for": "10.0.0.9" }, asked)).status, 200);
  const known = { ...asked, key: devAdminKey, origin: "http://localhost:8000" };
  assert.equal((await ask(world, {}, known)).status, 401);
});

Deno.test("dev key: a simulated payment is made on this machine only", async () => {
  using world = await devWorld();
  const { body } = await world.json("/v1/user/balance/topup?user=ada", { key: devApiKey });
  const { pathname } = new URL(body.url);
  const page = await (await world.call(pathname, { key: null })).text();
  const formId = /name="formId" value="([^"]+)"/.exec(page)?.[1] ?? assert.fail(page);
  const pay = async (headers: Record<string, string>, origin = "http://localhost:8000") => {
    const request = new Request(`${origin}${pathname}`, {
      method: "POST",
      headers: { "content-type": "application/x-www-form-urlencoded", ...headers },
      body: new URLSearchParams({ formId, amount: "5" }),
    });
    return (await world.app.fetch(request)).status;
  };
  for (const headers of foreign) assert.equal(await pay(headers), 403, JSON.stringify(headers));
  for (const host of foreignHosts) {
    assert.equal(await pay({ origin: host, "sec-fetch-site": "same-origin" }, host), 403, host);
  }
  assert.equal(await pay({}), 303);
  const { body: books } = await world.json("/v1/user/balance?user=ada", { key: devApiKey });
  assert.equal(books.balance, "5");
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

import assert from "node:assert/strict";
import { createFindClient } from "../../src/base/client_address.ts";
import { signedIn, textOf, Visitor } from "../support/console.ts";
import { adminKey, createWorld, type World } from "../support/world.ts";

const trusted = ["10.0.0.0/8", "fd00::/8", "127.0.0.1/32"];

const cases: [peer: string | null, forwarded: string | null, client: string | null][] = [
  ["10.0.0.1", "203.0.113.9", "203.0.113.9"],
  ["10.0.0.1", "203.0.113.9, 10.0.0.2", "203.0.113.9"],
  ["10.0.0.1", "1.1.1.1, 203.0.113.9, 10.0.0.2", "203.0.113.9"],
  ["10.0.0.1", "203.0.113.9:4711", "203.0.113.9"],
  ["10.0.0.1", "[2001:db8::1]:4711", "2001:db8::1"],
  ["fd00::1", "2001:db8::1", "2001:db8::1"],
  ["::ffff:127.0.0.1", "::ffff:203.0.113.9", "203.0.113.9"],
  ["10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"],
  ["10.0.0.1", "203.0.113.9, unknown", "10.0.0.1"],
  ["10.0.0.1", "203.0.113.9, _hidden, 10.0.0.2", "10.0.0.2"],
  ["10.0.0.1", "", "10.0.0.1"],
  ["10.0.0.1", null, "10.0.0.1"],
  ["10.0.0.1", `${"1.1.1.1, ".repeat(2_000)}203.0.113.9`, "203.0.113.9"],
  ["203.0.113.5", "1.1.1.1", "203.0.113.5"],
  [null, "1.1.1.1", null],
];

Deno.test("client address: X-Forwarded-For is read from its end, as far as proxies are trusted", () => {
  const findClient = createFindClient(trusted);
  for (const [peer, forwarded, client] of cases) {
    assert.equal(findClient(peer, forwarded), client, `${peer} ${forwarded?.slice(-60)}`);
  }
  const withoutProxies = createFindClient([]);
  for (const [peer, forwarded] of cases) {
    const own = peer?.replace("::ffff:", "") ?? null;
    assert.equal(withoutProxies(peer, forwarded), own);
  }
});

/** Creates a project, from a peer, as an operator does. */
async function createProject(world: World, peer: string, forwarded: string): Promise<void> {
  const headers = {
    authorization: `Bearer ${adminKey}`,
    "content-type": "application/json",
    "x-forwarded-for": forwarded,
  };
  const body = JSON.stringify({ name: "Test" });
  const request = new Request("http://localhost/v1/admin/projects", {
    method: "POST",
    headers,
    body,
  });
  const response = await world.app.fetch(request, { remoteAddr: { hostname: peer } });
  assert.equal(response.status, 201);
  await response.body?.cancel();
}

Deno.test("client address: the log and the audit trail have it, by the API and in the console", async () => {
  using world = await createWorld({ env: { TRUSTED_PROXIES: trusted.join() } });
  await createProject(world, "10.0.0.1", "1.1.1.1, 203.0.113.9");
  await createProject(world, "198.51.100.7", "1.1.1.1");
  const { body } = await world.json("/v1/admin/audit", { key: adminKey });
  const addresses = body.actions.map(({ address }: { address?: string }) => address);
  assert.ok(addresses.includes("203.0.113.9") && addresses.includes("198.51.100.7"), addresses);
  assert.ok(!addresses.includes("1.1.1.1"));
  const clients = world.logged.map(({ client }) => client).filter(Boolean);
  assert.deepEqual(clients, ["203.0.113.9", "198.51.100.7"]);

  const visitor = new Visitor(world, "198.51.100.8");
  await visitor.signIn();
  assert.match(
    textOf((await visitor.get("audit")).html),
    /signed in to the console.*Console, 198\.51\.100\.8/,
  );
  const unknown = await signedIn(world);
  assert.equal((await unknown.get("audit")).status, 200);
});

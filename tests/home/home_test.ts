import assert from "node:assert/strict";
import { createWorld, type World } from "../support/world.ts";

const open = (world: World, method = "GET") => world.call("/", { method, key: null });

/** A page has the headers of all pages: strict CSP, no storing, an id. */
function assertPage(response: Response): void {
  assert.equal(response.status, 200);
  assert.match(response.headers.get("content-type") ?? "", /^text\/html/);
  const policy = response.headers.get("content-security-policy") ?? "";
  assert.match(policy, /^default-src 'none'; style-src 'self';/);
  assert.doesNotMatch(policy, /unsafe|\*/);
  assert.equal(response.headers.get("cache-control"), "no-store");
  assert.match(response.headers.get("x-request-id") ?? "", /^req_/);
}

Deno.test("home: in development, / says what to do first, and every link on it works", async () => {
  using world = await createWorld({ dev: true });
  const response = await open(world);
  assertPage(response);
  const html = await response.text();
  assert.match(html, /curl http:\/\/localhost\/v1\/chat\/completions -H/);
  assert.match(html, /Bearer sk_dev/);
  const links = [...html.matchAll(/<a href="([^"]+)"/g)].map(([, path = ""]) => path);
  assert.deepEqual(links, [
    "/console/sign-in",
    "/console/projects/pw_00000000000000000000000DEV/live",
    "/docs/guides/first-five-minutes",
    "/docs",
  ]);
  for (const path of links) {
    const { status } = await world.call(path, { key: null });
    assert.ok([200, 303].includes(status), `${path}: ${status}`);
  }
});

Deno.test("home: in production, / says what this server is for, and shows no key and no project", async () => {
  using world = await createWorld();
  const response = await open(world);
  assertPage(response);
  const html = await response.text();
  assert.match(html, /open the link that your app shows you/);
  assert.doesNotMatch(html, /sk_|curl|simulated|Test project/i);
});

Deno.test("home: links are below the path of BASE_URL", async () => {
  using world = await createWorld({ env: { BASE_URL: "https://farebox.test/pay" } });
  assert.match(await (await open(world)).text(), /href="\/pay\/console"/);
});

Deno.test("home: with HOME_URL, / of production leads there, and that of development does not", async () => {
  const env = { HOME_URL: "https://app.test/welcome" };
  using world = await createWorld({ env });
  for (const method of ["GET", "HEAD"]) {
    const response = await open(world, method);
    assert.equal(response.status, 302);
    assert.equal(response.headers.get("location"), env.HOME_URL);
  }
  using development = await createWorld({ dev: true, env });
  assertPage(await open(development));
});

Deno.test("home: HEAD has the headers of GET, and no body", async () => {
  for (const dev of [true, false]) {
    using world = await createWorld({ dev });
    const [got, head] = [await open(world), await open(world, "HEAD")];
    assertPage(head);
    assert.equal(await head.text(), "");
    assert.equal(Number(head.headers.get("content-length")), (await got.bytes()).length);
  }
});

Deno.test("home: a request that is meant for the API is told so", async () => {
  using world = await createWorld();
  const response = await world.call("/", { body: { model: "m", messages: [] } });
  assert.equal(response.status, 405);
});

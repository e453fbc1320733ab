import assert from "node:assert/strict";
import { version } from "../../src/base/version.ts";
import { textOf } from "../support/console.ts";
import { createWorld } from "../support/world.ts";

Deno.test("home: development has a start page with a request to paste and where to look", async () => {
  using world = await createWorld({ dev: true });
  const response = await world.call("/", { key: null });
  assert.equal(response.status, 200);
  const html = await response.text();
  const text = textOf(html);
  assert.match(text, /It is running/);
  assert.match(text, /curl http:\/\/localhost:8000\/v1\/chat\/completions/);
  assert.match(text, /Authorization: Bearer sk_dev/);
  for (const [, link = ""] of html.matchAll(/href="(\/[^"]+)"/g)) {
    const page = await world.call(link, { key: null });
    assert.ok([200, 303].includes(page.status), link);
    await page.body?.cancel();
  }
});

Deno.test("home: production has a plain page, or leads to the owner's own", async () => {
  using plain = await createWorld();
  const page = await plain.call("/", { key: null });
  assert.equal(page.status, 200);
  const text = await page.text();
  assert.match(text, /A prepaid balance for AI apps/);
  assert.doesNotMatch(text, /sk_dev/);
  using own = await createWorld({ env: { HOME_URL: "https://my.app/start" } });
  const redirect = await own.call("/", { key: null });
  assert.deepEqual([redirect.status, redirect.headers.get("location")], [
    303,
    "https://my.app/start",
  ]);
});

Deno.test("version: the same in the program, in deno.json, in the changelog and in /healthz", async () => {
  const config = JSON.parse(await Deno.readTextFile("deno.json"));
  assert.equal(config.version, version);
  const changes = await Deno.readTextFile("CHANGELOG.md");
  assert.equal(/^## (\d[\d.]*)/m.exec(changes)?.[1], version);
  using world = await createWorld();
  const { body } = await world.json("/healthz", { key: null });
  assert.deepEqual(body, { status: "ok", service: "farebox", version });
});

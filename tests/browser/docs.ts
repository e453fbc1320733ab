import assert from "node:assert/strict";
import { apiDoc } from "../../src/api_doc.ts";
import { eventTypes } from "../../src/events/catalogue.ts";
import { assertAccessible, picture, type Screen, visit } from "../support/browser.ts";
import { createWorld } from "../support/world.ts";

const kinds: { screen: Screen; scheme: "light" | "dark" }[] = [
  { screen: "desktop", scheme: "light" },
  { screen: "desktop", scheme: "dark" },
  { screen: "phone", scheme: "light" },
  { screen: "phone", scheme: "dark" },
];

const pages = [
  ["overview", "/docs"],
  ["chat", "/docs/api/chat"],
  ["balances", "/docs/api/balances#charge"],
  ["events", "/docs/api/events"],
  ["search", "/docs/search?q=balance"],
  ["guide", "/docs/guides/prices"],
] as const;

for (const { screen, scheme } of kinds) {
  Deno.test(`browser: the docs are accessible on a ${screen} in ${scheme}, and call no other server`, async () => {
    using world = await createWorld();
    await using visitor = await visit(world, { screen, scheme });
    const { page } = visitor;
    for (const [name, path] of pages) {
      await page.goto(visitor.url + path);
      await picture(page, `docs-${name}-${screen}-${scheme}`, false);
      const widths = "[document.documentElement.scrollWidth, document.documentElement.clientWidth]";
      const [wide, screenWide] = await page.evaluate<[number, number]>(widths);
      assert.ok(wide <= screenWide, `${path} is ${wide} pixels wide`);
      await page.evaluate("document.querySelectorAll('details').forEach((one) => one.open = true)");
      await assertAccessible(page);
    }
    for (const url of visitor.requests) assert.ok(url.startsWith(visitor.url), url);
    assert.deepEqual(visitor.complaints, []);
  });
}

Deno.test("browser: the reference has every endpoint, event and schema, and no broken link", async () => {
  using world = await createWorld();
  await using visitor = await visit(world, { screen: "desktop", script: false });
  const { page } = visitor;
  const idsOf = new Map<string, string[]>();
  const links = new Set<string>();
  const look = async (path: string) => {
    await page.goto(visitor.url + path);
    const ids = await page.locator("[id]").evaluateAll((all) => all.map(({ id }) => id));
    assert.equal(new Set(ids).size, ids.length, `${path}: every place has a name of its own`);
    idsOf.set(path, ids);
    const found = await page.locator("a").evaluateAll((all) => all.map(({ href }) => String(href)));
    found.forEach((link) => links.add(link.replace(visitor.url, "")));
    const levels = await page.locator("h1, h2, h3, h4").evaluateAll((all) =>
      all.map(({ tagName }) => Number(tagName.slice(1)))
    );
    assert.equal(levels.filter((level) => level === 1).length, 1);
    levels.reduce((before, level) => (assert.ok(level <= before + 1, `h${level}`), level), 0);
  };
  await look("/docs");
  for (const path of [...links].filter((link) => /^\/docs\/api\/\w+$/.test(link))) await look(path);
  const ids = [...idsOf.values()].flat();
  for (const methods of Object.values(apiDoc)) {
    for (const { operationId } of Object.values(methods)) assert.ok(ids.includes(operationId));
  }
  for (const type of eventTypes) assert.ok(ids.includes(`event-${type}`), type);
  for (const link of links) {
    const [path = "", anchor = ""] = link.split("#");
    const known = idsOf.get(path);
    if (known && anchor !== "") assert.ok(known.includes(anchor), link);
    else if (!known) assert.equal((await fetch(visitor.url + link)).status, 200, link);
  }
});

Deno.test("browser: the docs are usable by keyboard alone, without a script", async () => {
  using world = await createWorld();
  await using visitor = await visit(world, { screen: "desktop", script: false });
  const { page } = visitor;
  await page.goto(`${visitor.url}/docs`);
  const focused = () => page.locator(":focus").textContent();
  await page.keyboard.press("Tab");
  assert.equal(await focused(), "Skip to the content");
  await page.keyboard.press("Enter");
  await page.waitForURL(/#content$/);
  await page.keyboard.press("Tab");
  assert.equal(await focused(), "OpenAPI 3.1");
  await page.getByLabel("Search the documentation").fill("refused deposit");
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/docs\/search/);
  await page.goto(`${visitor.url}/docs/api/chat`);
  await page.locator("#createChatCompletion-curl").focus();
  assert.ok(!await page.getByText("from openai import OpenAI").first().isVisible());
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  assert.ok(await page.getByText("from openai import OpenAI").first().isVisible());
  await page.goto(`${visitor.url}/docs/api/balances`);
  await page.locator("summary", { hasText: "refused" }).first().focus();
  await page.keyboard.press("Enter");
  assert.ok(await page.getByText('"success": false').first().isVisible());
});

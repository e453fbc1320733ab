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

for (const { screen, scheme } of kinds) {
  Deno.test(`browser: the reference is accessible on a ${screen} in ${scheme}, and calls no other server`, async () => {
    using world = await createWorld();
    await using visitor = await visit(world, { screen, scheme });
    const { page } = visitor;
    await page.goto(`${visitor.url}/docs`);
    await picture(page, `docs-${screen}-${scheme}`, false);
    const widths = "[document.documentElement.scrollWidth, document.documentElement.clientWidth]";
    const [wide, screenWide] = await page.evaluate<[number, number]>(widths);
    assert.ok(wide <= screenWide, `${wide} pixels wide`);
    await page.goto(`${visitor.url}/docs#charge`);
    await picture(page, `docs-charge-${screen}-${scheme}`, false);
    await page.evaluate("document.querySelectorAll('details').forEach((one) => one.open = true)");
    await assertAccessible(page);
    for (const url of visitor.requests) assert.ok(url.startsWith(visitor.url), url);
    assert.deepEqual(visitor.complaints, []);
  });
}

Deno.test("browser: the reference has every endpoint, event and schema, and no broken link", async () => {
  using world = await createWorld();
  await using visitor = await visit(world, { screen: "desktop", script: false });
  const { page } = visitor;
  await page.goto(`${visitor.url}/docs`);
  const ids = await page.locator("[id]").evaluateAll((all) => all.map(({ id }) => id));
  assert.equal(new Set(ids).size, ids.length, "every place has a name of its own");
  for (const methods of Object.values(apiDoc)) {
    for (const { operationId } of Object.values(methods)) {
      assert.ok(ids.includes(operationId), operationId);
    }
  }
  for (const type of eventTypes) assert.ok(ids.includes(`event-${type}`), type);
  const links = await page.locator("a").evaluateAll((all) =>
    all.map((link) => link.getAttribute("href") ?? "")
  );
  for (const link of links) {
    if (link.startsWith("#")) assert.ok(ids.includes(link.slice(1)), link);
    else assert.equal((await fetch(visitor.url + link)).status, 200, link);
  }
  const levels = await page.locator("h1, h2, h3, h4").evaluateAll((all) =>
    all.map(({ tagName }) => Number(tagName.slice(1)))
  );
  assert.equal(levels.filter((level) => level === 1).length, 1);
  levels.reduce((before, level) => (assert.ok(level <= before + 1, `h${level}`), level), 0);
});

Deno.test("browser: the reference is usable by keyboard alone", async () => {
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
  await page.locator("summary", { hasText: "Example: refused" }).first().focus();
  await page.keyboard.press("Enter");
  assert.ok(await page.getByText('"success": false').first().isVisible());
});

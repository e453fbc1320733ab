import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { assetNames } from "../../src/pages/assets.ts";
import { devApiKey } from "../../src/base/dev_keys.ts";
import { devProjectId } from "../../src/projects/auth.ts";
import { devProject } from "../../src/projects/dev_project.ts";
import { assertAccessible, assertFits, picture, visit } from "../support/browser.ts";
import { busyWorld } from "../support/console_data.ts";
import { createWorld } from "../support/world.ts";

const folder = new URL("../../docs/pictures/", import.meta.url);

/** Saves a picture of the README; `deno task pictures` replaces the one that it shows. */
async function readmePicture(page: Page, name: string): Promise<void> {
  await picture(page, `readme-${name}`, false);
  if (Deno.env.get("UPDATE_PICTURES") !== "1") return;
  await page.screenshot({ path: new URL(`${name}.png`, folder).pathname });
}

Deno.test("browser: the README's pictures of the paywall and the top-up page can be taken", async () => {
  using world = await createWorld({ dev: true });
  const brand = { accent: "#0a6b4d", supportUrl: "mailto:help@poems.example" };
  await world.app.admin.ensure(devProjectId, {
    ...devProject,
    name: "Poems",
    brand: {
      logoUrl: null,
      ...brand,
    },
  });
  const ask = async () => {
    const messages = [{ role: "user", content: "Write a haiku about ferries" }];
    const body = { model: "sandbox/echo", user: "ada", messages };
    return (await world.json("/v1/chat/completions", { key: devApiKey, body })).body;
  };
  const { choices: [{ message: { content } }] } = await ask();
  await using visitor = await visit(world, { screen: "desktop" });
  const { page, url } = visitor;
  await page.setViewportSize({ width: 720, height: 560 });
  await page.goto(url);
  await page.setContent(`<!doctype html><html lang="en"><head><title>Chat</title>
    <link rel="stylesheet" href="${url}/assets/${assetNames.style}"></head>
    <body class="payer"><main><h1>Poems</h1><div class="card"><div class="bubbles">
    <p class="bubble mine">Write a haiku about ferries</p>
    <p class="bubble">${content}</p></div></div></main></body></html>`);
  await page.waitForLoadState("networkidle");
  await readmePicture(page, "paywall");
  const [link = ""] = /http\S+/.exec(content) ?? [];
  await page.goto(url + new URL(link).pathname);
  await page.waitForLoadState("networkidle");
  await assertAccessible(page);
  await readmePicture(page, "top-up");
});

Deno.test("browser: the README's picture of the overview can be taken, and it exists", async () => {
  using world = await busyWorld({ name: "Poems", healthy: true });
  await using visitor = await visit(world, { screen: "desktop" });
  const { page, url } = visitor;
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.goto(`${url}/console`);
  await page.getByLabel("Key").fill(world.ownerKey);
  await page.keyboard.press("Enter");
  await page.waitForSelector("h1:text-is('Overview')");
  await page.waitForLoadState("networkidle");
  await readmePicture(page, "overview");
  for (const name of ["paywall", "top-up", "overview"]) {
    assert.ok((await Deno.stat(new URL(`${name}.png`, folder))).size > 5_000, name);
  }
});

for (const scheme of ["light", "dark"] as const) {
  Deno.test(`browser: the parts of pages and the start page are accessible in ${scheme}, wide and narrow`, async () => {
    using world = await createWorld({ dev: true });
    await world.app.admin.ensure(devProjectId, devProject);
    await using visitor = await visit(world, { screen: "desktop", scheme });
    const { page, url } = visitor;
    await page.goto(`${url}/console`);
    await page.getByLabel("Key").fill(devApiKey);
    await page.keyboard.press("Enter");
    await page.waitForSelector("h1:text-is('Overview')");
    for (const width of [1440, 390]) {
      await page.setViewportSize({ width, height: 900 });
      for (const [name, path] of [["kit", "/console/_kit"], ["start", "/"]] as const) {
        await page.goto(url + path);
        await assertAccessible(page);
        await assertFits(page);
        await picture(page, `${name}-${width}-${scheme}`);
      }
    }
    assert.deepEqual(visitor.complaints, []);
  });
}

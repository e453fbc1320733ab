import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { chatBody, chatPath } from "../support/books.ts";
import { assertAccessible, assertFits, picture, signIn, visit } from "../support/browser.ts";
import { signedIn } from "../support/console.ts";
import { busyWorld } from "../support/console_data.ts";
import { chunk, fedStream } from "../support/upstream.ts";
import { deliver, logs } from "../support/webhooks.ts";
import { adminKey, createWorld, type World } from "../support/world.ts";

const env = { BASE_URL: "http://localhost:8000" };

/** Opens a section by the navigation, which is behind a menu on a phone. */
async function openSection(page: Page, name: string): Promise<void> {
  const menu = page.locator(".menu summary");
  if (await menu.isVisible()) await menu.click();
  await page.getByRole("navigation", { name: "Project" }).getByRole("link", { name, exact: true })
    .filter({ visible: true }).click();
}

/** Every page of the console that can be opened by URL, by the name of its screenshot. */
async function allPages(world: World & { subscriptionId: string }): Promise<[string, string][]> {
  const project = `/console/projects/${world.projectId}`;
  const [failed] = await logs(world, "&status=error");
  const { body } = await world.json(`/v1/admin/projects/${world.projectId}/keys`, {
    key: adminKey,
  });
  const [activity] = await world.activities("ada");
  await world.app.flush();
  const owner = await signedIn(world);
  const { html } = await owner.get("requests?outcome=completed");
  const [, place] = /one\?place=([\w.]+)/.exec(html) ?? [];
  const webhook = `${project}/webhooks/${world.subscriptionId}`;
  const named = `user=ada&activityId=${activity?.id}`;
  return [
    ["overview", project],
    ["overview-90", `${project}?days=90`],
    ["overview-model", `${project}?days=7&model=test-model`],
    ["live", `${project}/live`],
    ["requests", `${project}/requests`],
    ["request", `${project}/requests/one?place=${place}`],
    ["requests-refused", `${project}/requests?outcome=refused`],
    ["activity", `${project}/activity`],
    ["users", `${project}/users`],
    ["user", `${project}/users/one?user=ada`],
    ["user-limits", `${project}/users/limits?user=ada`],
    ["user-erase", `${project}/users/erase?user=ada`],
    ["deposit", `${project}/deposit?user=ada`],
    ["refund", `${project}/refund?${named}`],
    ["webhooks", `${project}/webhooks`],
    ["webhook", webhook],
    ["webhook-rotate", `${webhook}/rotate`],
    ["webhook-redeliver", `${webhook}/redeliver`],
    ["webhook-deactivate", `${webhook}/deactivate`],
    ["deliveries", `${project}/deliveries?status=error`],
    ["delivery", `${project}/deliveries/${failed?.id}`],
    ["keys", `${project}/keys`],
    ["key-revoke", `${project}/keys/${body.keys[0].id}/revoke`],
    ["pricing", `${project}/pricing`],
    ["catalogue", `${project}/pricing/catalogue?q=gpt`],
    ["payments", `${project}/payments`],
    ["upstreams", `${project}/upstreams`],
    ["limits", `${project}/limits`],
    ["messages", `${project}/messages?language=de`],
    ["alerts", `${project}/alerts`],
    ["settings", `${project}/settings`],
    ["archive", `${project}/archive`],
    ["audit", `${project}/audit`],
  ];
}

const widerTables = `[...document.querySelectorAll(".table")]
  .filter((region) => region.scrollWidth > region.clientWidth).length`;

for (const scheme of ["light", "dark"] as const) {
  Deno.test(`browser: every page of the console is accessible in ${scheme} and fits a phone`, async () => {
    using world = await busyWorld();
    await using visitor = await visit(world, { scheme });
    const { page, url } = visitor;
    await page.goto(`${url}/console`);
    await assertAccessible(page);
    await picture(page, `console-sign-in-${scheme}`);
    await signIn(page, url, world.ownerKey);
    for (const [name, path] of await allPages(world)) {
      const answer = await page.goto(url + path);
      assert.equal(answer?.status(), 200, path);
      for (const summary of await page.locator("summary").all()) await summary.click();
      await assertAccessible(page);
      await assertFits(page);
      await picture(page, `console-${name}-${scheme}`);
    }
    assert.deepEqual(visitor.complaints, []);
    for (const asked of visitor.requests) assert.ok(asked.startsWith(url), asked);
  });

  Deno.test(`browser: every page of the console is accessible in ${scheme} and fits a wide screen`, async () => {
    using world = await busyWorld();
    await using visitor = await visit(world, { scheme, screen: "desktop" });
    const { page, url } = visitor;
    await page.setViewportSize({ width: 1_440, height: 900 });
    await signIn(page, url, world.ownerKey);
    for (const [name, path] of await allPages(world)) {
      await page.goto(url + path);
      await assertAccessible(page);
      await assertFits(page);
      assert.equal(await page.evaluate(widerTables), 0, `a table of ${path} is cut off`);
      await picture(page, `console-${name}-wide-${scheme}`);
    }
    assert.deepEqual(visitor.complaints, []);
  });
}

Deno.test("browser: no figure of a chart is cut off, however small, large or long it is", async () => {
  using world = await createWorld({ env });
  await using visitor = await visit(world, { screen: "desktop" });
  const { page, url } = visitor;
  await signIn(page, url, adminKey);
  const charges = [
    ...["usd", "chf", "sek"].flatMap((currency) => [[currency, "0.00125"], [currency, "48000"]]),
    ["chf", "0.000000001"],
    ["jpy", "12345678"],
    ["usd", "480"],
  ] as const;
  for (const [currency, amount] of charges) {
    const { projectId, apiKey: key } = await world.makeProject({ currency });
    const body = { user: "ada", amount };
    await world.json("/v1/user/balance/deposit", { key, body });
    await world.json("/v1/user/charge", { key, body });
    for (const days of [1, 7]) {
      await page.goto(`${url}/console/projects/${projectId}?days=${days}`);
      const cut = await page.evaluate(`
        [...document.querySelectorAll("figure > svg text")].filter((text) => {
          const { x, width } = text.getBBox();
          return x < 0 || x + width > text.ownerSVGElement.viewBox.baseVal.width;
        }).map((text) => text.textContent)`);
      assert.deepEqual(cut, [], `${amount} ${currency}`);
      assert.equal(await page.locator("figure:first-of-type .wide text.peak").count(), 1);
    }
    await picture(page, `console-chart-${currency}-${amount}`, false);
  }
});

Deno.test("browser: on a phone the rows of a table stack, and none is cut off", async () => {
  using world = await busyWorld();
  await using visitor = await visit(world);
  const { page, url } = visitor;
  await page.setViewportSize({ width: 360, height: 640 });
  await signIn(page, url, world.ownerKey);
  let stacked = 0;
  for (const [, path] of await allPages(world)) {
    await page.goto(url + path);
    const tables = await page.evaluate(`
      [...document.querySelectorAll(".table")].map((region) => {
        const words = document.createRange();
        words.selectNodeContents(region.querySelector("caption"));
        const isWider = region.scrollWidth > region.clientWidth;
        const { right } = words.getBoundingClientRect();
        return [isWider, right, region.classList.contains("stacks")];
      })`);
    for (const [isWider, right, isStacked] of tables as [boolean, number, boolean][]) {
      assert.ok(right <= 360, `${path}: to ${right}`);
      if (!isStacked) continue;
      stacked++;
      assert.equal(isWider, false, path);
    }
  }
  assert.ok(stacked > 10, `${stacked} tables`);
});

Deno.test("browser: names without spaces fit a phone on every page of the console", async () => {
  const long = "d".repeat(100);
  using world = await busyWorld({ name: `Shop${long}`, description: long });
  await world.deposit(long, "5");
  await using visitor = await visit(world);
  const { page, url } = visitor;
  await signIn(page, url, world.ownerKey);
  const user = `/console/projects/${world.projectId}/users/one?user=${long}`;
  for (const [name, path] of [...await allPages(world), ["user-long", user]]) {
    await page.goto(url + path);
    await assertFits(page);
    await picture(page, `console-${name}-long`);
  }
});

Deno.test("browser: an operator at a desk opens any project from the list", async () => {
  using world = await busyWorld();
  await world.makeProject({ name: "Other shop" });
  await using visitor = await visit(world, { screen: "desktop" });
  const { page, url } = visitor;
  await signIn(page, url, adminKey);
  await assertAccessible(page);
  await picture(page, "console-projects");
  await page.getByRole("link", { name: "Ada’s shop" }).click();
  await page.waitForSelector("h1:text-is('Overview')");
  await assertAccessible(page);
  await picture(page, "console-overview-desk");
  for (const name of ["Users", "Activity", "Requests", "Webhooks", "Pricing", "Audit trail"]) {
    await page.getByRole("navigation", { name: "Project" }).getByRole("link", { name }).click();
    await page.waitForSelector(`h1:text-is('${name}')`);
    await assertFits(page);
    await picture(page, `console-${name.toLowerCase().replace(" ", "-")}-desk`);
  }
  await page.getByRole("link", { name: "All projects" }).click();
  await page.getByRole("link", { name: "Audit trail of the instance" }).click();
  await assertAccessible(page);
  assert.deepEqual(visitor.complaints, []);
});

Deno.test("browser: a wrong key is refused, and throttled after ten; the right one is not", async () => {
  using world = await createWorld({ env });
  await using visitor = await visit(world);
  const { page, url } = visitor;
  await page.goto(`${url}/console/projects/${world.projectId}/keys`);
  for (let n = 0; n < 10; n++) {
    await page.getByLabel("Key").fill(`sk_wrong${n}`);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.waitForSelector("[role=alert]:has-text('not valid')");
  }
  await assertAccessible(page);
  await page.getByLabel("Key").fill("sk_wrong");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.waitForSelector("[role=alert]:has-text('Try again in 6 seconds')");
  await picture(page, "console-limited");
  await page.goto(`${url}/console/projects/${world.projectId}/keys`);
  await page.getByLabel("Key").fill(world.ownerKey);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.waitForSelector("h1:text-is('API keys')");
});

for (const script of [true, false]) {
  const how = script ? "" : ", without JavaScript";
  Deno.test(`browser: a deposit is recorded once, also after a double click${how}`, async () => {
    using world = await busyWorld();
    await using visitor = await visit(world, { script });
    const { page, url } = visitor;
    await signIn(page, url, world.ownerKey);
    await openSection(page, "Users");
    await page.getByLabel("Find by id").fill("char");
    await page.getByRole("button", { name: "Search" }).click();
    await page.getByRole("link", { name: "charlie@example.com" }).click();
    const before = (await world.balance("charlie@example.com")).balance;
    await page.getByRole("link", { name: "Deposit USD…" }).click();
    await page.getByLabel("Amount, USD").fill("10,50");
    await page.getByLabel("Reason").fill("Sorry for the outage");
    await page.getByRole("button", { name: "Review" }).click();
    await page.waitForSelector("text=The balance of charlie@example.com increases by");
    if (script) {
      await assertAccessible(page);
      await picture(page, "console-deposit-confirm");
    }
    await page.getByRole("button", { name: "Record 10.5 USD" }).dblclick();
    await page.waitForSelector("[role=status]:has-text('recorded')");
    const after = (await world.balance("charlie@example.com")).balance;
    assert.equal(Math.round((Number(after) - Number(before)) * 1e6), 10.5e6);
    await page.getByRole("link", { name: /^Refund the deposit/ }).first().click();
    await page.getByRole("button", { name: "Review" }).click();
    await page.getByRole("button", { name: "Record 10.5 USD" }).click();
    await page.waitForSelector("text=The refund is recorded");
    assert.equal((await world.balance("charlie@example.com")).balance, before);
    assert.deepEqual(visitor.complaints, []);
  });
}

Deno.test("browser: a key is created, shown once and revoked; prices show their effect", async () => {
  using world = await busyWorld();
  await using visitor = await visit(world);
  const { page, url } = visitor;
  await signIn(page, url, world.ownerKey);
  await openSection(page, "Keys");
  await page.getByLabel("Name", { exact: true }).fill("till");
  await page.getByRole("button", { name: "Create the key" }).click();
  const apiKey = await page.textContent("#secret") ?? "";
  world.seenSecrets.add(apiKey);
  assert.equal((await world.call("/v1/models", { key: apiKey })).status, 200);
  await assertAccessible(page);
  await page.getByRole("link", { name: "Back to API keys" }).click();
  await page.getByRole("link", { name: `Revoke the key …${apiKey.slice(-4)}` }).click();
  await page.getByRole("button", { name: "Revoke the key" }).click();
  await page.waitForSelector("text=The key is revoked");
  assert.equal((await world.call("/v1/models", { key: apiKey })).status, 401);
  await openSection(page, "Pricing");
  await page.getByLabel("Fee per response, USD").fill("0.002");
  await page.getByLabel("Model", { exact: true }).fill("gpt-4o-mini");
  await page.getByRole("button", { name: "Review changes" }).click();
  await page.waitForSelector("text=gpt-4o-mini");
  await assertAccessible(page);
  await assertFits(page);
  await picture(page, "console-pricing-effect");
  await page.getByRole("button", { name: "Save the prices" }).click();
  await page.waitForSelector("text=Saved.");
  assert.deepEqual(visitor.complaints, []);
});

Deno.test("browser: a test event is sent and its delivery inspected", async () => {
  using world = await busyWorld();
  await using visitor = await visit(world);
  const { page, url } = visitor;
  await signIn(page, url, world.ownerKey);
  world.subscriber.reply(() => ({}));
  await openSection(page, "Webhooks");
  await page.getByRole("link", { name: "https://crm.example.com/in" }).click();
  await page.getByLabel("Event").selectOption("payment.pending");
  await page.getByRole("button", { name: "Send", exact: true }).click();
  await page.waitForSelector("text=The test event was sent");
  await world.clock.advance(11 * 60_000);
  await deliver(world);
  await page.reload();
  const test = page.locator("table tbody tr", { hasText: "payment.pending" }).first();
  assert.match(await test.textContent() ?? "", /payment\.pending.*Delivered.*200/);
  await test.getByRole("link").click();
  await page.getByText('"test": true').first().waitFor();
  await assertAccessible(page);
  assert.deepEqual(visitor.complaints, []);
});

Deno.test("browser: running calls are updated without a reload", async () => {
  using world = await createWorld({ env });
  await world.deposit("ada", "5");
  await using visitor = await visit(world);
  const { page, url } = visitor;
  await signIn(page, url, world.ownerKey);
  await openSection(page, "Live");
  await page.waitForSelector("text=Nothing is running");
  const navigations: string[] = [];
  page.on("framenavigated", (frame) => navigations.push(frame.url()));
  const stream = fedStream();
  world.upstream.once(() => stream.response);
  const running = await world.call(chatPath, { body: chatBody("ada", { stream: true }) });
  const text = running.text();
  stream.send(chunk({ content: "One two three four" }));
  await page.waitForSelector("text=1 response is running", { timeout: 10_000 });
  await assertAccessible(page);
  await picture(page, "console-live-running");
  stream.send(chunk({}, "stop"));
  stream.send("[DONE]");
  stream.end();
  await text;
  await page.waitForSelector("text=Nothing is running", { timeout: 10_000 });
  assert.deepEqual([navigations, visitor.complaints], [[], []]);
});

Deno.test("browser: the keyboard alone leads from the sign-in to a page's content and back out", async () => {
  using world = await createWorld({ env });
  await using visitor = await visit(world, { screen: "desktop" });
  const { page, url } = visitor;
  const focused = () => page.evaluate("document.activeElement.textContent");
  const arriveAt = async (title: string) => {
    await page.waitForSelector(`h1:text-is('${title}')`);
    await page.waitForLoadState();
  };
  const tabTo = async (text: string) => {
    for (let n = 0; n < 40; n++) {
      await page.keyboard.press("Tab");
      if (await focused() === text) return;
    }
    assert.fail(`no way to ${text}`);
  };
  await page.goto(`${url}/console`);
  // The field receives the focus by itself, some time after the page has loaded.
  await page.waitForSelector("input[name=key]:focus");
  await page.keyboard.type(world.ownerKey);
  await page.keyboard.press("Enter");
  await arriveAt("Overview");
  await page.keyboard.press("Tab");
  assert.equal(await focused(), "Skip to the content");
  const visible = await page.evaluate("document.activeElement.getBoundingClientRect().left >= 0");
  assert.ok(visible, "the skip link shows once it is reached");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#main:focus");
  await page.goto(`${url}/console`);
  await tabTo("Keys");
  const outline = await page.evaluate("getComputedStyle(document.activeElement).outlineStyle");
  assert.equal(outline, "solid", "what is reached is seen");
  await page.keyboard.press("Enter");
  await arriveAt("API keys");
  await tabTo("Revoke…");
  await page.keyboard.press("Enter");
  await arriveAt("Revoke this key?");
  await tabTo("Cancel");
  await page.keyboard.press("Enter");
  await arriveAt("API keys");
  await tabTo("Sign out");
  await page.keyboard.press("Enter");
  await page.waitForSelector("text=You are signed out");
});

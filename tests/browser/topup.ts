import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { devApiKey } from "../../src/base/dev_keys.ts";
import { devProjectId } from "../../src/projects/auth.ts";
import { devProject } from "../../src/projects/dev_project.ts";
import { assertAccessible, assertFits, picture, visit } from "../support/browser.ts";
import { createWorld, type World } from "../support/world.ts";

async function devWorld(): Promise<World> {
  const world = await createWorld({ dev: true });
  await world.app.admin.ensure(devProjectId, devProject);
  return world;
}

async function ask(world: World, user = "ada"): Promise<string> {
  const messages = [{ role: "user", content: "Hello" }];
  const { body } = await world.json("/v1/chat/completions", {
    key: devApiKey,
    body: { model: "sandbox/echo", user, messages },
  });
  return body.choices[0].message.content;
}

/** The page that the paywall message links to, at the visitor's origin. */
async function linked(world: World, url: string, user?: string): Promise<string> {
  const [link] = /http\S+/.exec(await ask(world, user)) ?? [];
  return url + new URL(link ?? assert.fail("no link")).pathname;
}

/** Chooses an amount and sends the form. */
async function choose(page: Page, amount: string): Promise<void> {
  await page.getByLabel(amount, { exact: true }).check();
  await page.click("form button.primary");
}

for (const script of [true, false]) {
  Deno.test(`browser: from the paywall message to the paid response, on a phone${script ? "" : ", without JavaScript"}`, async () => {
    using world = await devWorld();
    await using visitor = await visit(world, { script });
    const { page } = visitor;
    await page.goto(await linked(world, visitor.url));
    assert.equal(await page.textContent("#balance"), "$0.00");
    if (script) await picture(page, "topup-empty");
    await choose(page, "$5.00");
    assert.equal(await page.textContent("#balance"), "$5.00");
    assert.match(await page.textContent("#state") ?? "", /\$5\.00 added/);
    if (script) await picture(page, "topup-paid");
    assert.equal(await ask(world), "You said: Hello");
    await page.goBack();
    await page.reload();
    assert.equal(await page.textContent("#balance"), "$4.99", "going back paid nothing again");
    await page.fill("#other", "0.5");
    await page.click("form:has(#other) button");
    assert.match(await page.textContent("[role=alert]") ?? "", /from \$1\.00 to \$1,000\.00/);
    await page.fill("#other", "12,50");
    await page.keyboard.press("Enter");
    await page.waitForSelector("text=$17.49");
    assert.deepEqual(visitor.complaints.filter((text) => !/400/.test(text)), []);
  });
}

Deno.test("browser: a double click and two tabs make one deposit per page", async () => {
  using world = await devWorld();
  await using visitor = await visit(world);
  const { page } = visitor;
  const address = await linked(world, visitor.url);
  await page.goto(address);
  await page.getByLabel("$5.00", { exact: true }).check();
  await page.dblclick("form button.primary");
  await page.waitForSelector("text=$5.00");
  const second = await page.context().newPage();
  await second.goto(address);
  await choose(second, "$10.00");
  await second.waitForSelector("text=$15.00");
});

Deno.test("browser: an id without spaces fits a phone", async () => {
  using world = await devWorld();
  await using visitor = await visit(world);
  const { page, url } = visitor;
  await page.goto(await linked(world, url, "a1".repeat(32)));
  await assertFits(page);
  await choose(page, "$5.00");
  await page.waitForSelector("#activities li");
  await assertFits(page);
  await picture(page, "topup-long");
});

Deno.test("browser: a payment that arrives is shown without a reload", async () => {
  using world = await devWorld();
  await using visitor = await visit(world);
  const { page } = visitor;
  await page.goto(await linked(world, visitor.url));
  const navigations: string[] = [];
  page.on("framenavigated", (frame) => navigations.push(frame.url()));
  await world.json("/v1/user/balance/deposit", {
    key: devApiKey,
    body: { user: "ada", amount: "42" },
  });
  await page.waitForSelector("#balance :text-is('$42.00')", { timeout: 10_000 });
  assert.match(await page.textContent("#activities") ?? "", /Money added.*\+\$42\.00/);
  assert.deepEqual(navigations, []);
});

/** A third party's server, at its own origin. */
function elsewhere(answer: (request: Request) => Response) {
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, answer);
  return { origin: `http://127.0.0.1:${server.addr.port}`, close: () => server.shutdown() };
}

Deno.test("browser: an own checkout may redirect to another site, as payment services do", async () => {
  const payment = elsewhere((request) =>
    new Response(`<h1>Pay ${new URL(request.url).search}</h1>`, {
      headers: { "content-type": "text/html" },
    })
  );
  const shop = elsewhere((request) =>
    Response.redirect(`${payment.origin}/session${new URL(request.url).search}`, 303)
  );
  const checkoutUrl = `${shop.origin}/pay?u={user}&a={amount}`;
  using world = await createWorld({
    env: { BASE_URL: "http://localhost:8000" },
    project: { topUp: { checkoutUrl } },
  });
  const { body } = await world.json("/v1/user/balance/topup?user=ada");
  await using visitor = await visit(world);
  const { page, url } = visitor;
  await page.goto(url + new URL(body.url).pathname);
  await choose(page, "$5.00");
  await page.waitForSelector("text=Pay ?u=ada&a=5");
  assert.deepEqual(visitor.complaints, []);
  await Promise.all([shop.close(), payment.close()]);
});

for (const scheme of ["light", "dark"] as const) {
  Deno.test(`browser: the page is accessible in ${scheme}, by keyboard too, and calls no other server`, async () => {
    using world = await devWorld();
    await using visitor = await visit(world, { scheme });
    const { page } = visitor;
    await page.goto(await linked(world, visitor.url));
    await assertAccessible(page);
    await picture(page, `topup-${scheme}`);
    await page.keyboard.press("Tab");
    const focused = () => page.evaluate("document.activeElement.value");
    assert.equal(await focused(), "10");
    await page.keyboard.press("ArrowRight");
    assert.equal(await focused(), "25");
    await page.keyboard.press("Enter");
    await page.waitForSelector("#balance :text-is('$25.00')");
    await assertAccessible(page);
    await picture(page, `topup-paid-${scheme}`);
    await assertFits(page);
    for (const url of visitor.requests) assert.ok(url.startsWith(visitor.url), url);
    assert.deepEqual(visitor.complaints, []);
    await page.goto(`${visitor.url}/topup/forged`);
    await assertAccessible(page);
    assert.match(await page.textContent("h1") ?? "", /no longer valid/);
  });
}

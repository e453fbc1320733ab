import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { assertAccessible, picture, visit } from "../support/browser.ts";
import { tellServer } from "../support/wallets.ts";
import { completion, usage } from "../support/upstream.ts";
import { adminKey, createWorld, type World } from "../support/world.ts";

/** What a new owner may take, beside the time that reading takes. */
const clicksMax = 15;
const msMax = 3 * 60_000;

/** Stripe reports the last session as paid, to the webhook that was made there. */
async function payAtStripe(world: World, amountUnits: number): Promise<void> {
  const session = [...world.stripe.sessions.values()].at(-1) ?? assert.fail("no session");
  assert.equal(session.amount_total, amountUnits);
  const [{ url, secret } = assert.fail("no webhook")] = world.stripe.endpoints;
  const object = { ...session, payment_status: "paid" };
  const event = {
    id: "evt_paid",
    object: "event",
    type: "checkout.session.completed",
    data: { object },
  };
  const { status } = await tellServer(world, event, String(secret), new URL(String(url)).pathname);
  assert.equal(status, 200);
}

Deno.test("browser: from the sign-in to the margin of the first paid response, with few clicks", async () => {
  using world = await createWorld();
  await using visitor = await visit(world, { screen: "desktop" });
  const { page, url } = visitor;
  const startedAt = performance.now();
  let clicks = 0;
  const click = async (role: "button" | "link", name: string) => {
    clicks++;
    await page.getByRole(role, { name, exact: true }).first().click();
  };

  // Signs in, and creates a project with a markup, an upstream and Stripe.
  await page.goto(`${url}/console`);
  await page.getByLabel("Key").fill(adminKey);
  await click("button", "Sign in");
  await click("link", "New project");
  await page.getByLabel("Name", { exact: true }).fill("Poem shop");
  await page.getByLabel("Markup, percent").fill("25");
  await page.getByLabel("Upstream URL").fill("https://models.example.com/v1");
  await page.getByLabel("Upstream key").fill("key-of-the-upstream");
  await page.getByLabel("Stripe secret key").fill("sk_test_of_the_owner");
  await click("button", "Create the project");
  await assertAccessible(page);
  const apiKey = (await page.locator("#app-key").textContent() ?? "").trim();
  assert.match(apiKey, /^sk_\w+$/);

  // The first request gets the paywall, and its link leads to the top-up page.
  const ask = async () => {
    const messages = [{ role: "user", content: "Hello" }];
    const body = { model: "gpt-4o-mini", user: "ada", messages };
    return (await world.json("/v1/chat/completions", { key: apiKey, body })).body;
  };
  const [link = assert.fail("no link")] =
    /https?:\S+/.exec((await ask()).choices[0].message.content) ?? [];
  const payer = await page.context().newPage();
  await payer.goto(url + new URL(link).pathname);
  await toStripe(payer, () => clicks++);
  await payAtStripe(world, 1_000);
  await payer.goto(`${url}${new URL(link).pathname}?paid=yes`);
  assert.equal(await payer.textContent("#balance"), "$10.00");

  // The next one is answered and charged, and the overview has its margin.
  world.upstream.once(() => completion({ usage: usage(80, 10_000) }));
  const paid = await ask();
  assert.ok(!/top up/i.test(paid.choices[0].message.content), paid.choices[0].message.content);
  await world.app.flush();
  await click("link", "Open the project");
  await page.waitForSelector("text=Margin");
  await picture(page, "whole-way-overview");
  const text = (await page.locator("main").textContent() ?? "").replaceAll(/\s+/g, " ");
  // gpt-4o-mini: 0.000012 for the input and 0.006 for the output, and a quarter more for the user.
  assert.match(text, /^.{0,200}Revenue\$0\.0075.{0,60}Margin\$0\.001520 %/);

  assert.ok(clicks <= clicksMax, `${clicks} clicks`);
  assert.ok(performance.now() - startedAt < msMax);
  assert.deepEqual(visitor.complaints, []);
});

/** Chooses an amount on the top-up page; the browser goes on to Stripe, which is not there. */
async function toStripe(page: Page, clicked: () => void): Promise<void> {
  await page.route("https://checkout.stripe.com/**", (route) => route.fulfill({ body: "Stripe" }));
  await page.getByLabel("$10.00", { exact: true }).check();
  clicked();
  await page.click("form button.primary");
  clicked();
  await page.waitForURL(/^https:\/\/checkout\.stripe\.com\//);
}

import assert from "node:assert/strict";
import type { BrowserContext, CDPSession } from "playwright-core";
import { addAuthenticator, freePort } from "../support/authenticator.ts";
import { assertAccessible, assertFits, picture, visit } from "../support/browser.ts";
import { adminKey, type Body, createWorld, type World } from "../support/world.ts";

async function sharedWorld(port: number): Promise<World> {
  const env = { BASE_URL: `http://localhost:${port}`, ADMIN_KEY: adminKey };
  const world = await createWorld({ dev: true, env });
  const pricing = { models: { "sandbox/echo": { input: "1000", output: "1000" } } };
  const made = await world.makeProject({ name: "Helper", mode: "shared", pricing });
  return Object.assign(world, made);
}

async function ask(world: World, user = "ada"): Promise<Body> {
  const messages = [{ role: "user", content: "Hello" }];
  const body = { model: "sandbox/echo", user, max_tokens: 100, messages };
  return (await world.json("/v1/chat/completions", { body })).body;
}

/** Another device of the same person: no cookie, and the synchronized passkey. */
async function otherDevice(context: BrowserContext, from: { session: CDPSession; id: string }) {
  const { credentials } = await from.session.send("WebAuthn.getCredentials", {
    authenticatorId: from.id,
  });
  const page = await (await context.browser()?.newContext())?.newPage() ?? assert.fail();
  const { session, id } = await addAuthenticator(page);
  for (const credential of credentials) {
    await session.send("WebAuthn.addCredential", { authenticatorId: id, credential });
  }
  return page;
}

Deno.test("browser: a user authorizes, pays in and gets the response; then returns on another device", async () => {
  const port = freePort();
  using world = await sharedWorld(port);
  await using visitor = await visit(world, { port });
  const { page, complaints, requests } = visitor;
  const authenticator = await addAuthenticator(page);
  const { paywall } = await ask(world);
  assert.equal(paywall.reason, "authorization_required");
  await page.goto(paywall.url);
  await assertAccessible(page);
  await picture(page, "authorize");
  await page.getByLabel("$10.00", { exact: true }).check();
  await page.getByRole("button", { name: "Allow", exact: true }).click();
  await page.waitForSelector("text=Helper may charge your wallet");
  await assertAccessible(page);
  await picture(page, "authorized");
  await page.getByRole("link", { name: "Add money" }).click();
  await page.getByLabel("$5.00", { exact: true }).check();
  await page.click("form button.primary");
  assert.equal(await page.textContent("#balance"), "$5.00");
  assert.equal((await ask(world)).choices[0].message.content, "You said: Hello");

  await page.goto(`http://localhost:${port}/wallet`);
  await page.waitForSelector("text=As ada");
  await page.click("#add-passkey");
  await page.waitForSelector("text=Your passkey opens this wallet");
  await assertAccessible(page);
  await picture(page, "wallet");

  const other = await otherDevice(page.context(), authenticator);
  await other.goto(`http://localhost:${port}/wallet`);
  await other.waitForSelector("text=There is no wallet on this device");
  await assertAccessible(other);
  await other.click("#use-passkey");
  await other.waitForSelector("text=As ada");
  await other.click("text=Daily limit");
  await other.click("text=End permission of Helper");
  await other.waitForSelector("text=No longer allowed");
  assert.equal((await ask(world)).paywall.reason, "authorization_required");
  assert.deepEqual(complaints, []);
  for (const url of requests) assert.ok(url.startsWith(`http://localhost:${port}/`), url);
});

Deno.test("browser: a lost device is shut out, by its cookie and by its passkey", async () => {
  const port = freePort();
  using world = await sharedWorld(port);
  await using visitor = await visit(world, { port });
  const { page, complaints } = visitor;
  const authenticator = await addAuthenticator(page);
  await page.goto((await ask(world)).paywall.url);
  await page.getByRole("button", { name: "Allow", exact: true }).click();
  await page.goto(`http://localhost:${port}/wallet`);
  await page.click("#add-passkey");
  await page.waitForSelector("text=Your passkey opens this wallet");
  const lost = await otherDevice(page.context(), authenticator);
  await lost.goto(`http://localhost:${port}/wallet`);
  await lost.click("#use-passkey");
  await lost.waitForSelector("text=As ada");

  await page.reload();
  await page.waitForSelector("text=last used");
  await picture(page, "wallet-devices");
  await page.getByRole("button", { name: "Remove the passkey of" }).click();
  await page.waitForSelector("text=Only this device opens your wallet");
  await page.getByRole("button", { name: "Sign out all other devices" }).click();
  await page.waitForLoadState();
  await assertAccessible(page);
  assert.match(await page.content(), /As <bdi>ada/);
  await lost.reload();
  await lost.waitForSelector("text=There is no wallet on this device");
  await lost.click("#use-passkey");
  await lost.waitForSelector("text=This passkey could not be used");
  assert.deepEqual(complaints, []);
});

Deno.test("browser: a wallet without a passkey is forgotten only after a confirmation", async () => {
  const port = freePort();
  using world = await sharedWorld(port);
  await using visitor = await visit(world, { port });
  const { page, complaints } = visitor;
  await page.goto((await ask(world)).paywall.url);
  await page.getByRole("button", { name: "Allow", exact: true }).click();
  await page.goto(`http://localhost:${port}/wallet`);
  await page.getByRole("button", { name: "Forget the wallet on this device" }).click();
  await page.waitForSelector("text=Forget your wallet for good?");
  await assertAccessible(page);
  await assertFits(page);
  await picture(page, "wallet-forget");
  await page.getByRole("link", { name: "Back to your wallet" }).click();
  await page.waitForSelector("text=As ada");
  await page.getByRole("button", { name: "Forget the wallet on this device" }).click();
  await page.getByRole("button", { name: "Forget it for good" }).click();
  await page.waitForSelector("text=There is no wallet on this device");
  assert.deepEqual(complaints, []);
});

Deno.test("browser: an id without spaces fits a phone on the authorization page", async () => {
  const port = freePort();
  using world = await sharedWorld(port);
  await using visitor = await visit(world, { port });
  const { page } = visitor;
  await page.goto((await ask(world, "a1".repeat(32))).paywall.url);
  await assertFits(page);
  await page.getByRole("button", { name: "Allow", exact: true }).click();
  await page.waitForSelector("text=may charge your wallet");
  await assertFits(page);
  await page.goto(`http://localhost:${port}/wallet`);
  await page.waitForSelector("text=As a1a1");
  await assertFits(page);
  await picture(page, "wallet-long");
});

Deno.test("browser: an unknown passkey, and a response sent twice, open nothing", async () => {
  const port = freePort();
  using world = await sharedWorld(port);
  await using visitor = await visit(world, { port });
  const { page } = visitor;
  const authenticator = await addAuthenticator(page);
  const { paywall } = await ask(world);
  await page.goto(paywall.url);
  await page.getByRole("button", { name: "Allow", exact: true }).click();
  await page.goto(`http://localhost:${port}/wallet`);
  await page.click("#add-passkey");
  await page.waitForSelector("text=Your passkey opens this wallet");
  const other = await otherDevice(page.context(), authenticator);
  let sent: string | null = null;
  other.on("request", (request) => {
    if (request.url().endsWith("/wallet/sign-in")) sent = request.postData();
  });
  await other.goto(`http://localhost:${port}/wallet`);
  await other.click("#use-passkey");
  await other.waitForSelector("text=As ada");
  const raw = sent ?? assert.fail("nothing was sent");
  const again = await world.json("/wallet/sign-in", { key: null, raw, headers: json });
  assert.deepEqual([again.status, again.body.error.code], [400, "invalid_passkey"]);
  assert.equal(again.response.headers.get("set-cookie"), null);
  const unknown = JSON.stringify({ ...JSON.parse(raw), id: "AAAA", rawId: "AAAA" });
  for (const bad of [unknown, "{}", JSON.stringify({ id: "x" })]) {
    const answer = await world.json("/wallet/sign-in", { key: null, raw: bad, headers: json });
    assert.equal(answer.status, 400, bad);
  }
  const foreign = await world.call("/wallet/sign-in", {
    key: null,
    raw,
    headers: { ...json, "sec-fetch-site": "cross-site" },
  });
  assert.equal(foreign.status, 403);
  await foreign.body?.cancel();
});

Deno.test("browser: an authorization can be given and declined without JavaScript, in dark mode", async () => {
  const port = freePort();
  using world = await sharedWorld(port);
  await using visitor = await visit(world, { port, script: false, scheme: "dark" });
  const { page } = visitor;
  await page.goto((await ask(world)).paywall.url);
  await picture(page, "authorize-dark");
  await page.getByRole("button", { name: "Do not allow" }).click();
  await page.waitForSelector("text=Not allowed");
  await page.goBack();
  await page.reload();
  await page.waitForSelector("text=Not allowed");
  await world.clock.advance(1);
  await page.goto((await ask(world)).paywall.url);
  await page.getByLabel("Another amount").fill("0");
  await page.getByRole("button", { name: "Allow", exact: true }).click();
  await page.waitForSelector("[role=alert]:has-text('Choose an amount from')");
  await page.getByLabel("Another amount").fill("2.50");
  await page.getByRole("button", { name: "Allow", exact: true }).click();
  await page.waitForSelector("text=Up to $2.50 a day");
});

const json = { "content-type": "application/json" };

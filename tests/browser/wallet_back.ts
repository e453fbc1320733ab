import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import type { Mail } from "../../src/deps.ts";
import { addAuthenticator, freePort } from "../support/authenticator.ts";
import { assertAccessible, assertFits, picture, type Screen, visit } from "../support/browser.ts";
import { eventually } from "../support/process.ts";
import { adminKey, type Body, createWorld, type World } from "../support/world.ts";

// The ways back to a wallet with money in it: after a rotation, without cookies, on a new device,
// and by the operator.

const key = (n: number) => new Uint8Array(32).fill(n).toBase64();
const looks: readonly (readonly [Screen, "light" | "dark"])[] = [
  ["phone", "light"],
  ["phone", "dark"],
  ["desktop", "light"],
  ["desktop", "dark"],
];

interface Stage extends Disposable {
  /** What the browser talks to: the process that `use` chose last. */
  world: World;
  sent: Mail[];
  /** Puts another process on the same store in front, with these keys. */
  rotate(keys: string): Promise<void>;
}

async function openStage(port: number): Promise<Stage> {
  const sent: Mail[] = [];
  const sendMail = (mail: Mail) => Promise.resolve(void sent.push(mail));
  const env = (keys: string) => ({
    BASE_URL: `http://localhost:${port}`,
    ADMIN_KEY: adminKey,
    SECRETS_KEY: keys,
  });
  const first = await createWorld({ dev: true, env: env(key(1)), sendMail });
  const pricing = { models: { "sandbox/echo": { input: "1000", output: "1000" } } };
  const made = await first.makeProject({ name: "Helper", mode: "shared", pricing });
  Object.assign(first, made);
  let current = first;
  let seed = 1;
  const front = {
    ...first,
    app: { ...first.app, fetch: (request: Request) => current.app.fetch(request) },
  };
  return {
    world: Object.assign(front, made),
    sent,
    async rotate(keys) {
      const options = { dev: true, env: env(keys), sendMail, shareWith: first, seed: ++seed };
      current = Object.assign(await createWorld(options), made);
    },
    [Symbol.dispose]: () => first[Symbol.dispose](),
  };
}

async function ask(world: World, user = "ada"): Promise<Body> {
  const messages = [{ role: "user", content: "Hello" }];
  const body = { model: "sandbox/echo", user, max_tokens: 100, messages };
  return (await world.json("/v1/chat/completions", { body })).body;
}

/** Allows the app to charge a new wallet, and pays 5 into it. */
async function begin(page: Page, world: World): Promise<void> {
  await page.goto((await ask(world)).paywall.url);
  await page.getByRole("button", { name: "Allow", exact: true }).click();
  await page.waitForSelector("text=Helper may charge your wallet");
  await page.getByRole("link", { name: "Add money" }).click();
  await page.getByLabel("$5.00", { exact: true }).check();
  await page.click("form button.primary");
  assert.equal(await page.textContent("#balance"), "$5.00");
}

/** The app may not charge the user any more: their next message leads to a page that asks. */
async function disconnect(world: World): Promise<string> {
  await world.json("/v1/user/disconnect?user=ada", { method: "POST" });
  await world.clock.advance(1);
  return (await ask(world)).paywall.url;
}

async function look(page: Page, name: string): Promise<void> {
  await assertAccessible(page);
  await assertFits(page);
  await picture(page, name);
}

/** The link in the e-mail that is sent next: the page says so before it has left. */
async function linkSent({ sent }: Stage): Promise<string> {
  await eventually(() => sent.length > 0, { what: "an e-mail" });
  const { text = "" } = sent.pop() ?? {};
  return /http:\S+\/wallet\/mail\/\S+/.exec(text)?.[0] ?? assert.fail("no link");
}

for (const [screen, scheme] of looks) {
  const on = `${screen}-${scheme}`;

  Deno.test(`browser: after a rotation the wallet is there, ${on}`, async () => {
    const port = freePort();
    using stage = await openStage(port);
    await using visitor = await visit(stage.world, { port, screen, scheme });
    const { page, complaints } = visitor;
    await begin(page, stage.world);
    // Nobody visits the wallet while both keys are set.
    await stage.rotate(`${key(2)},${key(1)}`);
    await stage.rotate(key(2));
    await page.goto(`http://localhost:${port}/wallet`);
    await page.waitForSelector("text=As ada");
    assert.match(await page.textContent(".balance") ?? "", /\$5\.00/);
    await look(page, `rotated-${on}`);
    assert.equal((await ask(stage.world)).choices[0].message.content, "You said: Hello");
    assert.deepEqual(complaints, []);
  });

  Deno.test(`browser: without cookies, a passkey opens the wallet that paid, ${on}`, async () => {
    const port = freePort();
    using stage = await openStage(port);
    await using visitor = await visit(stage.world, { port, screen, scheme });
    const { page, complaints } = visitor;
    await addAuthenticator(page);
    await page.goto((await ask(stage.world)).paywall.url);
    await page.getByRole("button", { name: "Allow", exact: true }).click();
    await page.waitForSelector("text=Before you add money");
    await look(page, `way-back-${on}`);
    await page.click("#add-passkey");
    await page.waitForSelector("#way-back", { state: "detached" });
    await page.getByRole("link", { name: "Add money" }).click();
    await page.getByLabel("$5.00", { exact: true }).check();
    await page.click("form button.primary");
    assert.equal(await page.textContent("#balance"), "$5.00");

    await page.context().clearCookies();
    await page.goto(await disconnect(stage.world));
    await page.waitForSelector("text=Another wallet has paid for ada until now");
    await look(page, `other-wallet-${on}`);
    await page.click("#use-passkey");
    await page.waitForSelector("text=In your wallet: $5.00");
    await page.getByRole("button", { name: "Allow", exact: true }).click();
    await page.waitForSelector("text=Helper may charge your wallet");
    assert.equal((await ask(stage.world)).choices[0].message.content, "You said: Hello");
    assert.deepEqual(complaints, []);
  });

  Deno.test(`browser: on a new device, an e-mail opens the wallet, ${on}`, async () => {
    const port = freePort();
    using stage = await openStage(port);
    await using visitor = await visit(stage.world, { port, screen, scheme });
    const { page, complaints } = visitor;
    await begin(page, stage.world);
    await page.goto(`http://localhost:${port}/wallet`);
    await page.getByLabel("Your e-mail address").fill("ada@example.com");
    await page.getByRole("button", { name: "Add this address" }).click();
    await page.waitForSelector("text=Look into your inbox");
    await look(page, `mail-sent-${on}`);
    await page.goto(await linkSent(stage));
    await look(page, `mail-confirm-${on}`);
    await page.getByRole("button", { name: "Confirm the address" }).click();
    await page.waitForSelector("text=The address is confirmed");

    await page.context().clearCookies();
    await page.goto(`http://localhost:${port}/wallet`);
    await page.waitForSelector("text=There is no wallet on this device");
    await look(page, `no-wallet-${on}`);
    await page.getByLabel("Your e-mail address").fill("ada@example.com");
    await page.getByRole("button", { name: "Send me a link" }).click();
    await page.waitForSelector("text=Look into your inbox");
    const link = await linkSent(stage);
    await page.goto(link);
    await look(page, `mail-open-${on}`);
    await page.getByRole("button", { name: "Open the wallet: $5.00" }).click();
    await page.waitForSelector("text=As ada");
    await page.waitForSelector("text=Remove a•••@example.com");
    await look(page, `wallet-email-${on}`);
    assert.match(await page.textContent(".balance") ?? "", /\$5\.00/);
    assert.deepEqual(complaints, []);
    await page.goto(link);
    await page.waitForSelector("text=Ask for a new e-mail");
  });

  Deno.test(`browser: with no way back, the operator joins the lost wallet with a new one, ${on}`, async () => {
    const port = freePort();
    using stage = await openStage(port);
    await using visitor = await visit(stage.world, { port, screen, scheme });
    const { page, complaints } = visitor;
    await begin(page, stage.world);
    await page.goto(`http://localhost:${port}/wallet`);
    await page.getByRole("button", { name: "Forget the wallet on this device" }).click();
    await page.getByRole("button", { name: "Forget it for good" }).click();
    await page.goto(await disconnect(stage.world));
    await page.getByRole("button", { name: "Allow, with a new, empty wallet" }).click();
    await page.waitForSelector("text=Helper may charge your wallet");
    const { projectId } = stage.world;
    const find = `/v1/admin/wallets?projectId=${projectId}&user=ada`;
    const [into, from] = (await stage.world.json(find, { key: adminKey })).body.wallets;
    const reasons = { from: "Showed the receipt of the payment." };
    const body = { into: into.id, reasons };
    await stage.world.json(`/v1/admin/wallets/${from.id}/join`, { key: adminKey, body });
    await page.goto(`http://localhost:${port}/wallet`);
    await page.waitForSelector("text=Are both wallets yours?");
    await look(page, `join-${on}`);
    await page.getByRole("button", { name: "Both are mine: join them" }).click();
    await page.waitForSelector("text=Joined wallets");
    assert.match(await page.textContent(".balance") ?? "", /\$5\.00/);
    await look(page, `joined-${on}`);
    assert.equal((await ask(stage.world)).choices[0].message.content, "You said: Hello");
    assert.deepEqual(complaints, []);
  });
}

import assert from "node:assert/strict";
import type { Mail } from "../../src/deps.ts";
import { textOf } from "../support/console.ts";
import { storeAsText } from "../support/books.ts";
import { allow, charge, Device, env, linkFor, pathOf, pay } from "../support/wallets.ts";
import { adminKey, createWorld, type World } from "../support/world.ts";

// The way back to a wallet by e-mail.

const email = "Ada@Example.com";
const minuteMs = 60_000;

/** A world that sends e-mail, and what it has sent. */
async function mailWorld() {
  const sent: Mail[] = [];
  const sendMail = (mail: Mail) => Promise.resolve(void sent.push(mail));
  const project = { name: "Helper", mode: "shared" };
  return { world: await createWorld({ env, project, sendMail }), sent };
}

const linkIn = ({ text }: Mail) =>
  pathOf(/https:\S+\/wallet\/mail\/\S+/.exec(text)?.[0] ?? assert.fail(text));

/** Lets what goes on beside the response end. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setTimeout(resolve, 0));
}

/** A person with 46 whose address is confirmed. */
async function begin(world: World, sent: Mail[]) {
  const device = new Device(world);
  await allow(device);
  await pay(world, { amount: "46" });
  assert.equal((await device.post("/wallet", { action: "add-email", email })).status, 200);
  await confirm(world, sent);
  return device;
}

async function confirm(world: World, sent: Mail[]) {
  const path = linkIn(sent.pop() ?? assert.fail("no e-mail"));
  const { status } = await new Device(world).post(path, {});
  assert.equal(status, 200);
}

async function ask(device: Device, address = email) {
  const answer = await device.post("/wallet/email", { email: address });
  await settle();
  return answer;
}

Deno.test("e-mail: a confirmed address opens the wallet on another device, once", async () => {
  const { world, sent } = await mailWorld();
  using _ = world;
  await begin(world, sent);
  const other = new Device(world);
  assert.match((await other.get("/wallet")).html, /action="\/wallet\/email"/);
  assert.equal((await ask(other)).status, 200);
  const [mail] = sent;
  assert.deepEqual([sent.length, mail?.to], [1, [email]]);
  const path = linkIn(mail ?? assert.fail());
  // A scanner that follows links uses nothing up.
  for (let times = 0; times < 3; times++) {
    const { status, html, headers } = await new Device(world).get(path);
    assert.equal(status, 200);
    assert.match(textOf(html), /A•••@Example\.com opens this wallet.*\$46\.00/);
    assert.equal(headers.get("set-cookie"), null);
    assert.equal(headers.get("cache-control"), "no-store");
  }
  const wallet = await walletIn(other, path);
  const opened = await other.post(path, { wallet });
  assert.deepEqual([opened.status, opened.location], [303, "/wallet"]);
  assert.match((await other.get("/wallet")).html, /\$46\.00/);
  const thief = new Device(world);
  assert.equal((await thief.post(path, { wallet })).status, 404);
  assert.equal((await thief.get(path)).status, 404);
});

async function walletIn(device: Device, path: string): Promise<string> {
  const { html } = await device.get(path);
  return /name="wallet" value="(per_\w+)"/.exec(html)?.[1] ?? assert.fail(html);
}

Deno.test("e-mail: neither the address nor a token is stored or logged, only hashes", async () => {
  const { world, sent } = await mailWorld();
  using _ = world;
  await begin(world, sent);
  await ask(new Device(world));
  const stored = await storeAsText(world);
  const token = linkIn(sent[0] ?? assert.fail()).split("/").at(-1) ?? "";
  await new Device(world).get(linkIn(sent[0] ?? assert.fail()));
  for (const secret of [email, email.toLowerCase(), token]) {
    assert.ok(!stored.includes(secret), secret);
    assert.ok(!JSON.stringify(world.logged).includes(secret), secret);
  }
});

Deno.test("e-mail: nobody learns whether an address opens a wallet", async () => {
  const { world, sent } = await mailWorld();
  using _ = world;
  await begin(world, sent);
  const [known, unknown] = [await ask(new Device(world)), await ask(new Device(world), "x@y.org")];
  assert.deepEqual([known.status, known.html], [unknown.status, unknown.html]);
  assert.deepEqual(sent.map(({ to }) => to), [[email]]);
  // Once the known address has got its five, it is answered as before.
  for (let n = 0; n < 6; n++) {
    await world.clock.advance(2 * minuteMs);
    assert.equal((await ask(new Device(world))).html, unknown.html);
  }
  assert.equal(sent.length, 5);
  // Nor does a request to confirm it tell.
  await world.clock.advance(10 * minuteMs);
  const stranger = new Device(world);
  await allow(stranger, { user: "eve" });
  const asks = await stranger.post("/wallet", { action: "add-email", email });
  assert.equal(asks.status, 200);
});

Deno.test("e-mail: a link ends after half an hour, and with its address", async () => {
  const { world, sent } = await mailWorld();
  using _ = world;
  const device = await begin(world, sent);
  await ask(new Device(world));
  const late = linkIn(sent.pop() ?? assert.fail());
  const wallet = await walletIn(new Device(world), late);
  await world.clock.advance(30 * minuteMs);
  assert.equal((await new Device(world).post(late, { wallet })).status, 404);
  await ask(new Device(world));
  const path = linkIn(sent.pop() ?? assert.fail());
  const { html } = await device.get("/wallet");
  const hash = /name="email" value="([\w-]+)"/.exec(html)?.[1] ?? assert.fail(html);
  assert.equal((await device.post("/wallet", { action: "remove-email", email: hash })).status, 303);
  assert.equal((await new Device(world).post(path, { wallet })).status, 404);
  await world.clock.advance(2 * minuteMs);
  await ask(new Device(world));
  assert.deepEqual(sent, []);
  await world.clock.advance(24 * 60 * minuteMs);
  await world.app.sweep();
  for (const prefix of [["wallet_link"], ["wallet_mail"], ["wallet_email"], ["email_wallet"]]) {
    assert.deepEqual(await world.deps.kv.list({ prefix, limit: 9 }), [], prefix[0]);
  }
});

Deno.test("e-mail: an address that nobody has confirmed opens nothing", async () => {
  const { world, sent } = await mailWorld();
  using _ = world;
  const device = new Device(world);
  await allow(device);
  await device.post("/wallet", { action: "add-email", email });
  const confirming = linkIn(sent.pop() ?? assert.fail());
  await ask(new Device(world));
  assert.deepEqual(sent, []);
  // The link that confirms opens nothing either, whatever is sent to it.
  const [row] = await world.deps.kv.list({ prefix: ["connection"], limit: 1 });
  const thief = new Device(world);
  assert.equal((await thief.post(confirming, { wallet: String(row?.key[1]) })).status, 404);
  assert.equal(thief.cookie, null);
});

Deno.test("e-mail: one network asks ten times in ten minutes, one wallet five times a day", async () => {
  const { world, sent } = await mailWorld();
  using _ = world;
  for (let n = 0; n < 10; n++) assert.equal((await ask(new Device(world))).status, 200);
  assert.equal((await ask(new Device(world))).status, 429);
  const device = new Device(world);
  await allow(device);
  for (let n = 0; n < 5; n++) {
    await device.post("/wallet", { action: "add-email", email: `ada${n}@example.com` });
  }
  const more = await device.post("/wallet", { action: "add-email", email });
  assert.deepEqual([more.status, sent.length], [400, 5]);
  assert.match(textOf(more.html), /Too many e-mails were asked for/);
});

Deno.test("e-mail: no other site asks for a link, or uses one", async () => {
  const { world, sent } = await mailWorld();
  using _ = world;
  await begin(world, sent);
  const foreign = { "sec-fetch-site": "cross-site" };
  const device = new Device(world);
  assert.equal((await device.post("/wallet/email", { email }, foreign)).status, 403);
  await ask(device);
  const path = linkIn(sent.pop() ?? assert.fail());
  const wallet = await walletIn(device, path);
  assert.equal((await device.post(path, { wallet }, foreign)).status, 403);
  assert.equal((await device.post(path, { wallet })).status, 303);
});

Deno.test("e-mail: the page of an authorization offers it, and is where the person comes back to", async () => {
  const { world, sent } = await mailWorld();
  using _ = world;
  await begin(world, sent);
  await world.clock.advance(1);
  const link = pathOf((await charge(world, "20")).url);
  const cleared = new Device(world);
  const { html } = await cleared.get(link);
  assert.match(html, /action="\/wallet\/email"/);
  assert.ok(html.includes(`name="from" value="${link}"`));
  await cleared.post("/wallet/email", { email, from: link });
  await settle();
  const path = linkIn(sent.pop() ?? assert.fail());
  const opened = await cleared.post(path, { wallet: await walletIn(cleared, path) });
  assert.equal(opened.location, link);
  assert.match(textOf((await cleared.get(link)).html), /In your wallet: \$46\.00/);
  for (const from of ["https://evil.example", "//evil.example", "/console/sign-out", "/a/../x"]) {
    await world.clock.advance(2 * minuteMs);
    await cleared.post("/wallet/email", { email, from });
    await settle();
    const path = linkIn(sent.pop() ?? assert.fail());
    const opened = await new Device(world).post(path, { wallet: await walletIn(cleared, path) });
    assert.equal(opened.location, "/wallet", from);
  }
});

Deno.test("e-mail: an address of two wallets opens the one that is chosen", async () => {
  const { world, sent } = await mailWorld();
  using _ = world;
  await begin(world, sent);
  const second = new Device(world);
  await allow(second, { user: "bob" });
  await world.clock.advance(2 * minuteMs);
  await second.post("/wallet", { action: "add-email", email });
  await confirm(world, sent);
  await world.clock.advance(2 * minuteMs);
  const device = new Device(world);
  await ask(device);
  const path = linkIn(sent.pop() ?? assert.fail());
  const { html } = await device.get(path);
  const wallets = [...html.matchAll(/value="(per_\w+)"><button[^>]*>[^:]*: ([^<]+)</g)];
  assert.equal(wallets.length, 2, html);
  const [, rich = ""] = wallets.find(([, , amounts]) => amounts?.includes("46")) ?? [];
  assert.equal((await device.post(path, { wallet: rich })).status, 303);
  assert.match((await device.get("/wallet")).html, /\$46\.00/);
});

Deno.test("e-mail: it is offered before the first payment, and only where the server sends any", async () => {
  const { world } = await mailWorld();
  using _ = world;
  const device = new Device(world);
  const link = await linkFor(world);
  await device.post(link, { decision: "approve", cap: "10" });
  const { html } = await device.get(link);
  assert.match(html, /id="way-back"[^]*value="add-email"[^]*Add money/);
  using silent = await createWorld({ env, project: { mode: "shared" } });
  const other = new Device(silent);
  await allow(other);
  for (const visitor of [other, new Device(silent)]) {
    assert.doesNotMatch((await visitor.get("/wallet")).html, /e-mail/);
  }
  assert.equal((await other.post("/wallet/email", { email })).status, 404);
  assert.equal((await other.post("/wallet", { action: "add-email", email })).status, 404);
});

Deno.test("e-mail: an empty wallet whose users were erased keeps no device, passkey or address", async () => {
  const { world, sent } = await mailWorld();
  using _ = world;
  const device = await begin(world, sent);
  await device.post("/wallet", {
    action: "revoke",
    projectId: world.projectId,
    user: "ada",
  });
  const forget = async (user: string) => {
    const path = `/v1/admin/projects/${world.projectId}/users/${user}/forget`;
    const body = { forfeit: true };
    const { status } = await world.json(path, { key: adminKey, body });
    assert.ok(status === 200 || status === 202, String(status));
    for (let sweeps = 0; sweeps < 20; sweeps++) await world.app.sweep();
  };
  await forget("ada");
  const ways = async () => {
    const rows = ["device", "person_device", "wallet_email", "email_wallet"].map((name) =>
      world.deps.kv.list({ prefix: [name], limit: 9 })
    );
    return (await Promise.all(rows)).map(({ length }) => length);
  };
  assert.deepEqual(await ways(), [1, 1, 1, 1], "there is money left, and its owner may come back");
  const poor = new Device(world);
  await allow(poor, { user: "bob" });
  await poor.post("/wallet", { action: "revoke", projectId: world.projectId, user: "bob" });
  assert.deepEqual(await ways(), [2, 2, 1, 1]);
  await forget("bob");
  assert.deepEqual(await ways(), [1, 1, 1, 1]);
});

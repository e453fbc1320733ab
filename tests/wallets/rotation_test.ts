import assert from "node:assert/strict";
import { hashOfCookie, readDevice } from "../../src/wallets/device_rows.ts";
import { createSecrets } from "../../src/store/secrets.ts";
import { createSignedTokens } from "../../src/store/signed_tokens.ts";
import { allConnectionsPrefix } from "../../src/store/keys.ts";
import { textOf } from "../support/console.ts";
import { allow, charge, Device, env, linkFor, pathOf, pay } from "../support/wallets.ts";
import { createWorld, type World } from "../support/world.ts";

// A wallet is its owner's, whichever key signs: by a rotation of SECRETS_KEY, without cookies, and
// on another device.

const key = (n: number) => new Uint8Array(32).fill(n).toBase64();
const [old, fresh] = [key(1), key(2)];

const project = { name: "Helper", mode: "shared" };

let processes = 1;

/** The same store, by a process with other keys. */
const withKeys = (world: World, keys: string) =>
  createWorld({ env: { ...env, SECRETS_KEY: keys }, shareWith: world, seed: ++processes });

/** The same browser, in front of another process. */
function at(world: World, { cookie, newcomer }: Device): Device {
  return Object.assign(new Device(world), { cookie, newcomer });
}

const showsMoney = async (device: Device) => /\$46\.00/.test((await device.get("/wallet")).html);

/** Two people who have paid 50 and spent 4. */
async function begin(world: World) {
  const people = { ada: new Device(world), bob: new Device(world) };
  for (const [user, device] of Object.entries(people)) {
    await allow(device, { user });
    await pay(world, { user, amount: "50" });
    assert.equal((await charge(world, "4", { user })).success, true);
  }
  return people;
}

Deno.test("rotation: both keep their wallets, whether they visited meanwhile or not", async () => {
  using before = await createWorld({ env: { ...env, SECRETS_KEY: old }, project });
  const { ada, bob } = await begin(before);
  using between = await withKeys(before, `${fresh},${old}`);
  assert.equal(await showsMoney(at(between, ada)), true);
  using after = await withKeys(before, fresh);
  for (const [user, device] of [["ada", ada], ["bob", bob]] as const) {
    assert.equal(await showsMoney(at(after, device)), true, user);
    assert.equal((await charge(after, "1", { user })).success, true);
  }
});

/** Gives a device the cookie that 0.9.0 signed, and forgets what this version stored of it. */
async function asOf090(world: World, device: Device, purpose: string): Promise<void> {
  const { config, committer, kv } = world.deps;
  const secrets = await createSecrets(config.secretsKeys, (length) => new Uint8Array(length));
  const tokens = await createSignedTokens(secrets, purpose);
  const [name = "", secret = ""] = device.cookie?.split("=") ?? [];
  const hash = hashOfCookie(secret);
  const { personId } = await readDevice(kv, hash) ?? assert.fail("no device");
  const token = await tokens.make([personId, world.clock.now(), 0, "dev_1"]);
  const isNew = purpose.startsWith("newcomers");
  device.cookie = isNew ? null : `${name}=${token}`;
  device.newcomer = isNew ? `${name.replace("_wallet", "_newcomer")}=${token}` : null;
  const rows = [...await kv.list({ prefix: ["device"], limit: 100 })];
  const own = [...rows, ...await kv.list({ prefix: ["person_device"], limit: 100 })]
    .filter(({ key }) => key.includes(hash)).map(({ key }) => key);
  await committer.commit({ checks: [], sets: [], deletes: own });
}

for (const purpose of ["device cookies", "newcomers' cookies"]) {
  Deno.test(`rotation: one of the ${purpose} of 0.9.0 needs one visit while its key is known`, async () => {
    using before = await createWorld({ env: { ...env, SECRETS_KEY: old }, project });
    const { ada, bob } = await begin(before);
    await asOf090(before, ada, purpose);
    await asOf090(before, bob, purpose);
    using between = await withKeys(before, `${fresh},${old}`);
    assert.equal(await showsMoney(at(between, ada)), true);
    using after = await withKeys(before, fresh);
    assert.equal(await showsMoney(at(after, ada)), true, "its hash is stored");
    const { html } = await at(after, bob).get("/wallet");
    assert.match(html, /no wallet on this device/, "a passkey, an e-mail or the operator helps");
  });
}

Deno.test("rotation: links of an old key end with it, and say so", async () => {
  using before = await createWorld({ env: { ...env, SECRETS_KEY: old }, project });
  // So many links at once are signed instead of stored.
  const links: string[] = [];
  for (let n = 0; n < 12; n++) links.push(await linkFor(before, `user${n}`));
  const signed = links.filter((link) => link.startsWith("/authorize/"));
  assert.ok(signed.length > 0);
  using after = await withKeys(before, fresh);
  for (const link of signed) {
    const { status, html } = await new Device(after).get(link);
    assert.deepEqual([status, /send your message again/.test(html)], [404, true]);
  }
});

/** The link of a refused charge of a user whose wallet is open elsewhere. */
async function linkForMore(world: World): Promise<string> {
  await world.clock.advance(1);
  return pathOf((await charge(world, "9")).url);
}

Deno.test("cleared cookies: the page says that another wallet has paid, and opens none in silence", async () => {
  using world = await createWorld({ env, project });
  const device = new Device(world);
  await allow(device, { cap: "8" });
  await pay(world, { amount: "46" });
  const link = await linkForMore(world);
  const cleared = new Device(world);
  const { html } = await cleared.get(link);
  assert.match(textOf(html), /Another wallet has paid for ada until now/);
  assert.match(html, /id="use-passkey"/);
  assert.match(html, /name="wallet" value="new"/);
  assert.doesNotMatch(html, /action="\/wallet\/email"/, "this server sends no e-mail");
  const approve = { decision: "approve", cap: "20" };
  const refused = await cleared.post(link, approve);
  assert.deepEqual([refused.status, refused.set], [400, null]);
  assert.match(textOf(refused.html), /Open it, or go on with a new, empty one/);
  assert.equal((await world.deps.kv.list({ prefix: allConnectionsPrefix, limit: 9 })).length, 1);
  assert.equal((await cleared.post(link, { ...approve, wallet: "new" })).status, 303);
  assert.match((await cleared.get("/wallet")).html, /Your wallet is empty|\$0\.00/);
  assert.match((await device.get("/wallet")).html, /\$46\.00/, "the money stays where it is");
});

Deno.test("cleared cookies: a device with a wallet of its own is told too, and may go on with it", async () => {
  using world = await createWorld({ env, project });
  const [device, other] = [new Device(world), new Device(world)];
  await allow(other, { user: "bob" });
  await allow(device, { cap: "8" });
  await pay(world, { amount: "46" });
  const link = await linkForMore(world);
  const { html } = await other.get(link);
  assert.match(textOf(html), /Another wallet has paid.*the wallet on this device can pay/);
  assert.equal((await other.post(link, { decision: "approve", cap: "20" })).status, 303);
  assert.doesNotMatch(
    textOf((await device.get(await linkFor(world, "eve"))).html),
    /Another wallet/,
  );
});

Deno.test("devices: what is stored of a cookie opens nothing, and ends with it", async () => {
  using world = await createWorld({ env, project });
  const device = new Device(world);
  await allow(device);
  const rows = await world.deps.kv.list({ prefix: ["device"], limit: 9 });
  assert.equal(rows.length, 1);
  const [name] = device.cookie?.split("=") ?? [];
  const thief = new Device(world);
  thief.cookie = `${name}=${rows[0]?.key[1]}`;
  assert.match((await thief.get("/wallet")).html, /no wallet on this device/);
  await device.post("/wallet", { action: "leave", confirmed: "yes" });
  for (const prefix of [["device"], ["person_device"]]) {
    assert.deepEqual(await world.deps.kv.list({ prefix, limit: 9 }), []);
  }
});

Deno.test("devices: one that is not used for 400 days leaves nothing behind", async () => {
  using world = await createWorld({ env, project });
  await allow(new Device(world));
  await world.clock.advance(400 * 24 * 60 * 60 * 1000 + 1);
  await world.app.sweep();
  for (const prefix of [["device"], ["person_device"]]) {
    assert.deepEqual(await world.deps.kv.list({ prefix, limit: 9 }), []);
  }
});

import assert from "node:assert/strict";
import { createSecrets } from "../../src/store/secrets.ts";
import { createDeviceCookies } from "../../src/wallets/device_cookies.ts";
import { hashOfCookie, readDevice } from "../../src/wallets/device_rows.ts";
import { createSignedTokens } from "../../src/store/signed_tokens.ts";
import { textOf } from "../support/console.ts";
import { rowsNaming } from "../support/forget.ts";
import { SoftPasskey } from "../support/passkey.ts";
import { createScriptedStore } from "../support/store.ts";
import { allow, Device, env, linkFor, pay, sharedWorld } from "../support/wallets.ts";
import { createWorld, type World } from "../support/world.ts";

const origin = "https://farebox.test";
const dayMs = 24 * 60 * 60 * 1000;

const send = (world: World, path: string, body: unknown, cookie: string | null = null) =>
  world.json(path, { key: null, body, headers: cookie === null ? {} : { cookie } });

async function addPasskey(device: Device, n = 1) {
  const { world, cookie } = device;
  const passkey = new SoftPasskey(new Uint8Array(32).fill(n), { origin, step: 0 });
  const options = await send(world, "/wallet/passkeys/options", {}, cookie);
  if (options.status !== 200) return options.body.error;
  const made = passkey.created(options.body.challenge);
  assert.equal((await send(world, "/wallet/passkeys", made, cookie)).status, 200);
  return passkey;
}

/** Signs another device in by a passkey, and returns the result. */
async function comeBack(passkey: SoftPasskey, device: Device): Promise<number> {
  const { body } = await send(device.world, "/wallet/sign-in/options", {});
  const answer = await send(device.world, "/wallet/sign-in", passkey.answered(body.challenge));
  device.cookie = answer.response.headers.get("set-cookie")?.split(";")[0] ?? device.cookie;
  return answer.status;
}

const secretsOf = (world: World) =>
  createSecrets(world.deps.config.secretsKeys, (length) => new Uint8Array(length));

const hashOf = ({ cookie }: Device) => hashOfCookie(cookie?.split("=")[1] ?? "");

const isKnown = async (device: Device) =>
  (await device.get("/wallet")).html.includes("As <bdi>ada");

/** A person with a phone, a laptop that signed in with the phone's passkey, and that passkey. */
async function begin(world: World) {
  const [phone, laptop] = [new Device(world), new Device(world)];
  await allow(phone);
  const passkey = await addPasskey(phone);
  await world.clock.advance(1_000);
  assert.equal(await comeBack(passkey, laptop), 200);
  return { phone, laptop, passkey };
}

Deno.test("devices: a removed passkey opens nothing, and no other is affected", async () => {
  using world = await sharedWorld();
  const { phone, laptop, passkey } = await begin(world);
  const second = await addPasskey(laptop, 2);
  const { html } = await laptop.get("/wallet");
  assert.match(html, /last used 20\d\d-\d\d-\d\d \d\d:\d\d/);
  assert.match(html, /not used yet/);
  const form = { action: "remove-passkey", passkey: passkey.id };
  for (let times = 0; times < 2; times++) {
    assert.equal((await laptop.post("/wallet", form)).status, 303);
  }
  assert.equal(await comeBack(passkey, new Device(world)), 400);
  assert.equal(await comeBack(second, new Device(world)), 200);
  assert.equal(await isKnown(phone), true, "the device itself is signed out apart from that");
  assert.ok(!(await laptop.get("/wallet")).html.includes(passkey.id));
  assert.deepEqual(await rowsNaming(world, passkey.id), []);
});

Deno.test("devices: a passkey that is used while it is removed is removed", async () => {
  const store = createScriptedStore();
  using world = await createWorld({ env, project: { mode: "shared" }, wrapKv: store.wrap });
  const { laptop, passkey } = await begin(world);
  using other = await createWorld({ env, shareWith: world, seed: 2 });
  await world.clock.advance(1_000);
  const statuses: number[] = [];
  store.atomic = async (write, real) => {
    store.atomic = null;
    statuses.push(await comeBack(passkey, new Device(other)));
    return await real(write);
  };
  const form = { action: "remove-passkey", passkey: passkey.id };
  statuses.push((await laptop.post("/wallet", form)).status);
  assert.deepEqual(statuses, [200, 303]);
  await world.clock.advance(1_000);
  assert.equal(await comeBack(passkey, new Device(world)), 400);
});

Deno.test("devices: no one removes another person's passkey, nor an unknown one", async () => {
  using world = await sharedWorld();
  const { passkey } = await begin(world);
  const stranger = new Device(world);
  await allow(stranger, { user: "bob" });
  const form = { action: "remove-passkey", passkey: passkey.id };
  assert.equal((await stranger.post("/wallet", form)).status, 303);
  assert.equal((await new Device(world).post("/wallet", form)).status, 403);
  for (const bad of ["", "not an id", "a".repeat(1_365)]) {
    assert.equal((await stranger.post("/wallet", { ...form, passkey: bad })).status, 400, bad);
  }
  await world.clock.advance(1_000);
  assert.equal(await comeBack(passkey, new Device(world)), 200);
});

Deno.test("devices: a device that signs the others out is the only one, until another returns", async () => {
  using world = await sharedWorld();
  const { phone, laptop, passkey } = await begin(world);
  assert.equal((await laptop.post("/wallet", { action: "sign-out-others" })).status, 303);
  assert.deepEqual([await isKnown(phone), await isKnown(laptop)], [false, true]);
  const lost = await phone.post("/wallet", { action: "sign-out-others" });
  assert.deepEqual([lost.status, lost.set], [403, null]);
  // Nor where it was still known when its response began.
  const devices = await createDeviceCookies(world.deps, await secretsOf(world));
  const late = new Request(`${origin}/wallet`, { headers: { cookie: phone.cookie ?? "" } });
  assert.equal(await devices.signOutOthers(late), null);
  assert.equal(await isKnown(laptop), true);
  await world.clock.advance(1_000);
  assert.equal(await comeBack(passkey, phone), 200);
  assert.deepEqual([await isKnown(phone), await isKnown(laptop)], [true, true]);
  await phone.post("/wallet", { action: "sign-out-others" });
  assert.deepEqual([await isKnown(phone), await isKnown(laptop)], [true, false]);
});

Deno.test("devices: a device whose response was lost is still known, and can sign the others out again", async () => {
  using world = await sharedWorld();
  const { phone, laptop, passkey } = await begin(world);
  const before = laptop.cookie;
  await laptop.post("/wallet", { action: "sign-out-others" });
  laptop.cookie = before;
  assert.equal(await isKnown(laptop), true);
  await world.clock.advance(1_000);
  assert.equal(await comeBack(passkey, phone), 200);
  // Its page sets the cookie again, which signs the others out once more.
  const { headers } = await laptop.get("/wallet");
  laptop.cookie = headers.get("set-cookie")?.split(";")[0] ?? null;
  await laptop.post("/wallet", { action: "sign-out-others" });
  assert.deepEqual([await isKnown(phone), await isKnown(laptop)], [false, true]);
});

Deno.test("devices: a repeated request returns the lost cookie, and signs no one else out", async () => {
  using world = await sharedWorld();
  const { phone, laptop, passkey } = await begin(world);
  const before = laptop.cookie;
  const press = () => laptop.post("/wallet", { action: "sign-out-others" });
  await press();
  laptop.cookie = before;
  await world.clock.advance(1_000);
  assert.equal(await comeBack(passkey, phone), 200);
  await press();
  assert.notEqual(laptop.cookie, before);
  assert.deepEqual([await isKnown(phone), await isKnown(laptop)], [true, true]);
  await press();
  assert.deepEqual([await isKnown(phone), await isKnown(laptop)], [false, true]);
});

Deno.test("devices: of two that sign each other out at once, one is left", async () => {
  using world = await sharedWorld();
  const { phone, laptop } = await begin(world);
  const slow = createScriptedStore();
  using other = await createWorld({ env, shareWith: world, seed: 2, wrapKv: slow.wrap });
  const late = new Device(other);
  late.cookie = phone.cookie;
  slow.atomic = async (write, real) => {
    slow.atomic = null;
    await laptop.post("/wallet", { action: "sign-out-others" });
    return await real(write);
  };
  const { status, set } = await late.post("/wallet", { action: "sign-out-others" });
  assert.deepEqual([status, set, slow.atomic], [303, null, null]);
  assert.deepEqual([await isKnown(late), await isKnown(laptop)], [false, true]);
});

for (const way of ["shows its wallet", "allows a charge", "comes back by a passkey"] as const) {
  Deno.test(`devices: one that ${way} while it is signed out gets no valid cookie`, async () => {
    using world = await sharedWorld();
    const { phone, laptop, passkey } = await begin(world);
    const slow = createScriptedStore();
    using other = await createWorld({ env, shareWith: world, seed: 2, wrapKv: slow.wrap });
    const lost = new Device(other);
    lost.cookie = phone.cookie;
    const link = await linkFor(world, "bob");
    await world.clock.advance(1_000);
    const signOut = async () => {
      slow.get = slow.atomic = null;
      assert.equal((await laptop.post("/wallet", { action: "sign-out-others" })).status, 303);
    };
    slow.get = async (key, real) => {
      if (way === "shows its wallet" && key[0] === "account") await signOut();
      return await real(key);
    };
    slow.atomic = async (write, real) => {
      if (way !== "shows its wallet") await signOut();
      return await real(write);
    };
    if (way === "shows its wallet") {
      const { headers, html } = await lost.get("/wallet");
      assert.match(html, /As <bdi>ada/, "it was known as it asked");
      lost.cookie = headers.get("set-cookie")?.split(";")[0] ?? null;
    } else if (way === "allows a charge") {
      const allowed = await lost.post(link, { decision: "approve", cap: "10" });
      assert.equal(allowed.status, 303);
    } else assert.equal(await comeBack(passkey, lost), 200);
    assert.equal(slow.atomic, null, "it was signed out meanwhile");
    if (way === "comes back by a passkey") assert.notEqual(lost.cookie, phone.cookie);
    assert.deepEqual([await isKnown(lost), await isKnown(laptop)], [false, true]);
  });
}

Deno.test("devices: a button pressed twice at once does not sign out the device that pressed it", async () => {
  using first = await sharedWorld();
  using second = await createWorld({ shareWith: first });
  const { phone, laptop } = await begin(first);
  const tabs = [first, second].map((world) => {
    const tab = new Device(world);
    tab.cookie = laptop.cookie;
    return tab;
  });
  await Promise.all(tabs.map((tab) => tab.post("/wallet", { action: "sign-out-others" })));
  for (const tab of tabs) assert.equal(await isKnown(tab), true);
  assert.equal(await isKnown(phone), false);
});

Deno.test("devices: a cookie of 0.9.0 is valid until the others are signed out", async () => {
  using world = await sharedWorld();
  const { phone, laptop } = await begin(world);
  const tokens = await createSignedTokens(await secretsOf(world), "device cookies");
  const [name = ""] = phone.cookie?.split("=") ?? [];
  const { personId } = await readDevice(world.deps.kv, hashOf(phone)) ?? assert.fail("no device");
  phone.cookie = `${name}=${await tokens.make([personId, world.clock.now(), 0, "dev_1"])}`;
  assert.equal(await isKnown(phone), true);
  await laptop.post("/wallet", { action: "sign-out-others" });
  assert.equal(await isKnown(phone), false);
});

Deno.test("devices: a device in use stays known, and an unused one expires after 400 days", async () => {
  using world = await sharedWorld();
  const { phone, laptop } = await begin(world);
  const use = async () => {
    const { headers } = await laptop.get("/wallet");
    laptop.cookie = headers.get("set-cookie")?.split(";")[0] ?? null;
  };
  await world.clock.advance(200 * dayMs);
  await use();
  // It came a second before the other, which was used since.
  await world.clock.advance(200 * dayMs - 1_000);
  assert.deepEqual([await isKnown(phone), await isKnown(laptop)], [false, true]);
  await use();
  await world.clock.advance(200 * dayMs);
  assert.equal(await isKnown(laptop), true);
});

Deno.test("devices: a person has at most 20 passkeys, and can replace one by removing it", async () => {
  using world = await sharedWorld();
  const device = new Device(world);
  await allow(device);
  const first = await addPasskey(device, 1);
  for (let n = 2; n <= 20; n++) await addPasskey(device, n);
  assert.equal((await addPasskey(device, 21)).code, "too_many_passkeys");
  await device.post("/wallet", { action: "remove-passkey", passkey: first.id });
  assert.ok(await addPasskey(device, 21) instanceof SoftPasskey);
});

Deno.test("devices: a wallet without a passkey is forgotten after a confirmation that states the loss", async () => {
  using world = await sharedWorld();
  const device = new Device(world);
  await allow(device, { cap: "100" });
  await pay(world, { amount: "50" });
  const asked = await device.post("/wallet", { action: "leave" });
  assert.deepEqual([asked.status, asked.set], [200, null]);
  const text = textOf(asked.html);
  assert.match(
    text,
    /no passkey.*You would lose access to \$50\.00 .*Helper , as ada .*up to \$100\.00/,
  );
  assert.match(asked.html, /<a href="\/wallet">/);
  assert.equal(await isKnown(device), true, "asking forgets nothing");
  const fields = [...asked.html.matchAll(/name="(\w+)" value="(\w+)"/g)];
  const form = Object.fromEntries(fields.map(([, name, value]) => [name, value]));
  assert.equal((await device.post("/wallet", form)).status, 303);
  assert.equal(await isKnown(device), false);
});

Deno.test("devices: a wallet with a passkey is forgotten at once", async () => {
  using world = await sharedWorld();
  const { laptop, passkey } = await begin(world);
  assert.equal((await laptop.post("/wallet", { action: "leave" })).status, 303);
  assert.equal(await isKnown(laptop), false);
  await world.clock.advance(1_000);
  assert.equal(await comeBack(passkey, laptop), 200);
  assert.equal(await isKnown(laptop), true);
});

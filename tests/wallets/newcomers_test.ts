import assert from "node:assert/strict";
import { allConnectionsPrefix } from "../../src/store/keys.ts";
import { createSecrets } from "../../src/store/secrets.ts";
import { createDeviceCookies } from "../../src/wallets/device_cookies.ts";
import { storeAsText } from "../support/books.ts";
import { allow, charge, Device, linkFor, pay, sharedWorld } from "../support/wallets.ts";
import type { World } from "../support/world.ts";

const approve = { decision: "approve", cap: "10" };

/** A device whose first decision arrived, and whose response was lost. */
async function cutOff(world: World, user = "ada") {
  const link = await linkFor(world, user);
  const device = new Device(world);
  await device.get(link);
  assert.equal((await device.post(link, approve)).status, 303);
  device.cookie = null;
  return { device, link };
}

const ends = async (device: Device) =>
  (await device.get("/wallet")).html.includes("no wallet on this device");

Deno.test("newcomers: a person who misses the response has the wallet, and can send the form again", async () => {
  using world = await sharedWorld();
  const { device, link } = await cutOff(world);
  const again = await device.post(link, approve);
  assert.deepEqual([again.status, again.location], [303, link]);
  const { html, headers } = await device.get(link);
  assert.match(html, /Helper may charge your wallet/);
  await pay(world, { amount: "50" });
  assert.equal((await charge(world, "1")).success, true);
  // From then on it is known as any device is.
  device.newcomer = null;
  device.cookie = headers.get("set-cookie")?.split(";")[0] ?? null;
  assert.match(device.cookie ?? "", /farebox_wallet=/);
  assert.match((await device.get("/wallet")).html, /\$49\.00/);
});

Deno.test("newcomers: a person who misses the response finds the wallet at its own URL too", async () => {
  using world = await sharedWorld();
  const { device } = await cutOff(world);
  const { html, headers } = await device.get("/wallet");
  assert.match(html, /As <bdi>ada/);
  assert.match(headers.get("set-cookie") ?? "", /farebox_wallet=/);
  const next = await linkFor(world, "bob");
  await device.post(next, approve);
  assert.match(
    (await device.get("/wallet")).html,
    /As <bdi>ada[^]*As <bdi>bob|As <bdi>bob[^]*As <bdi>ada/,
  );
});

Deno.test("newcomers: opening a link stores nothing, and creates no wallet", async () => {
  using world = await sharedWorld();
  const link = await linkFor(world);
  const before = await storeAsText(world);
  const device = new Device(world);
  const first = await device.get(link);
  const cookie = device.newcomer;
  assert.match(
    first.headers.get("set-cookie") ?? "",
    /^__Host-farebox_newcomer=.+; Path=\/; .*HttpOnly; SameSite=Lax; Secure$/,
  );
  assert.equal((await device.get(link)).headers.get("set-cookie"), null, "once is enough");
  const html = (await device.get("/wallet")).html;
  assert.match(html, /no wallet on this device/);
  const [, token = ""] = cookie?.split("=") ?? [];
  for (const sent of [cookie ?? "", `__Host-farebox_wallet=${token}`]) {
    const headers = { cookie: sent };
    for (const form of [{ action: "sign-out-others" }, { action: "leave" }]) {
      assert.equal((await new Device(world).post("/wallet", form, headers)).status, 403);
    }
    const options = { key: null, body: {}, headers };
    assert.equal((await world.json("/wallet/passkeys/options", options)).status, 403);
  }
  assert.equal(await storeAsText(world), before);
});

Deno.test("newcomers: a link opened by two devices is decided by one, and the other has no wallet", async () => {
  using world = await sharedWorld();
  const link = await linkFor(world);
  const [one, other] = [new Device(world), new Device(world)];
  await one.get(link);
  await other.get(link);
  assert.notEqual(one.newcomer, other.newcomer);
  await one.post(link, approve);
  const { status, set, location } = await other.post(link, { ...approve, cap: "9999" });
  assert.deepEqual([status, set, location], [303, null, link]);
  assert.match((await other.get(link)).html, /This link has been used/);
  assert.match((await one.get(link)).html, /Up to \$10\.00 a day/);
  assert.deepEqual([await ends(one), await ends(other)], [false, true]);
});

Deno.test("newcomers: a browser without cookies is told that it needs one, and may decline", async () => {
  using world = await sharedWorld();
  const link = await linkFor(world);
  const send = (form: Record<string, string>, cookie = "a=b") =>
    world.call(link, {
      key: null,
      raw: new URLSearchParams(form).toString(),
      headers: { "content-type": "application/x-www-form-urlencoded", cookie },
    });
  const before = await storeAsText(world);
  for (const cookie of ["a=b", "__Host-farebox_newcomer=W10.AAAA"]) {
    const refused = await send(approve, cookie);
    assert.equal(refused.status, 400);
    const html = await refused.text();
    assert.match(html, /Allow cookies for this site/);
    assert.ok(html.includes(`href="${link}"`), "the way back is to the page that gives one");
  }
  assert.equal(await storeAsText(world), before);
  assert.equal((await send({ decision: "decline" })).status, 303);
});

Deno.test("newcomers: a late page does not replace a wallet, and leaving forgets both", async () => {
  using world = await sharedWorld();
  const late = new Device(world);
  await late.get(await linkFor(world, "bob"));
  const device = new Device(world);
  await allow(device);
  device.newcomer = late.newcomer;
  await device.post(await linkFor(world, "bob"), approve);
  const { html } = await device.get("/wallet");
  assert.match(html, /As <bdi>ada/);
  assert.match(html, /As <bdi>bob/);
  assert.equal(await ends(late), true, "no wallet was created with it");
  const { device: second } = await cutOff(world, "eve");
  second.cookie = device.cookie;
  await second.post("/wallet", { action: "leave", confirmed: "yes" });
  assert.equal(second.newcomer, null);
  second.cookie = null;
  assert.equal(await ends(second), true);
});

Deno.test("newcomers: a device signed out from elsewhere is signed out with either cookie", async () => {
  using world = await sharedWorld();
  const { device } = await cutOff(world);
  await device.get("/wallet");
  const [row] = await world.deps.kv.list({ prefix: allConnectionsPrefix, limit: 1 });
  const laptop = new Device(world);
  const secrets = await createSecrets(world.deps.config.secretsKeys, world.deps.randomBytes);
  const devices = await createDeviceCookies(world.deps, secrets);
  const grant = await devices.grantFor(String(row?.key[1]));
  laptop.cookie = (await grant.cookie()).split(";")[0] ?? null;
  await laptop.post("/wallet", { action: "sign-out-others" });
  assert.deepEqual([await ends(device), await ends(laptop)], [true, false]);
  assert.equal((await device.post(await linkFor(world, "bob"), approve)).status, 400);
});

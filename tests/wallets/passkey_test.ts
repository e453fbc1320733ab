import assert from "node:assert/strict";
import { fromBytes } from "../../src/base/json.ts";
import { passkeyKey } from "../../src/store/keys.ts";
import { chatBody, chatPath, storedRows } from "../support/books.ts";
import { SoftPasskey } from "../support/passkey.ts";
import { allow, Device, sharedWorld } from "../support/wallets.ts";
import { type Body, createWorld, type World } from "../support/world.ts";

const origin = "https://farebox.test";
const dayMs = 24 * 60 * 60 * 1000;
const minuteMs = 60_000;

const send = (world: World, path: string, body: unknown, cookie: string | null = null) =>
  world.json(path, { key: null, body, headers: cookie === null ? {} : { cookie } });

/** What the service knows about the device's person: their id and their passkeys. */
async function known(world: World, cookie: string | null) {
  const { body } = await send(world, "/wallet/passkeys/options", {}, cookie);
  return { person: body.user.id, ids: body.excludeCredentials.map(({ id }: Body) => id) };
}

/** A passkey of this device's person. */
async function addPasskey(world: World, { cookie }: Device, { n = 1, step = 0 as 0 | 1 } = {}) {
  const passkey = new SoftPasskey(new Uint8Array(32).fill(n), { origin, step });
  const { body: { challenge } } = await send(world, "/wallet/passkeys/options", {}, cookie);
  const added = await send(world, "/wallet/passkeys", passkey.created(challenge), cookie);
  assert.deepEqual([added.status, added.body], [200, { added: true }]);
  return passkey;
}

async function ask(world: World): Promise<string> {
  return (await send(world, "/wallet/sign-in/options", {})).body.challenge;
}

/** The new cookie, or the reason why there is none. */
async function answer(world: World, response: unknown): Promise<string> {
  const { status, body, response: { headers } } = await send(world, "/wallet/sign-in", response);
  const cookie = headers.get("set-cookie")?.split(";")[0];
  if (status === 200) return cookie ?? assert.fail("no cookie");
  assert.equal(cookie, undefined);
  return `${status} ${body.error.code}`;
}

const signIn = async (world: World, passkey: SoftPasskey) =>
  await answer(world, passkey.answered(await ask(world)));

/** A person with a passkey. */
async function begin(world: World, options?: { step?: 0 | 1 }) {
  const device = new Device(world);
  await allow(device);
  return { device, passkey: await addPasskey(world, device, options) };
}

const refused = "400 invalid_passkey";

for (const step of [0, 1] as const) {
  Deno.test(`passkey: opens the wallet of its own person, as often as it is used (counting ${step})`, async () => {
    using world = await sharedWorld();
    const { device, passkey } = await begin(world, { step });
    const other = new Device(world);
    await allow(other, { user: "bob" });
    const bobs = await addPasskey(world, other, { n: 2 });
    for (let times = 0; times < 3; times++) {
      await world.clock.advance(1_000);
      const [mine, theirs] = [await signIn(world, passkey), await signIn(world, bobs)];
      assert.deepEqual(await known(world, mine), await known(world, device.cookie));
      assert.deepEqual(await known(world, theirs), await known(world, other.cookie));
    }
    assert.deepEqual((await known(world, device.cookie)).ids, [passkey.id]);
    const rows = (await storedRows(world)).map(({ key }) => String(key[0]));
    assert.equal(rows.filter((name) => name.endsWith("passkey")).length, 2 * 2);
  });
}

Deno.test("passkey: a response counts once, even if it is sent several times at once", async () => {
  using world = await sharedWorld();
  const { passkey } = await begin(world);
  const response = passkey.answered(await ask(world));
  const answers = await Promise.all([1, 2, 3].map(() => answer(world, response)));
  assert.deepEqual(answers.filter((told) => told === refused), [refused, refused]);
  assert.equal(await answer(world, response), refused);
});

Deno.test("passkey: is registered once, and only by the person who requested it", async () => {
  using world = await sharedWorld();
  const { device, passkey } = await begin(world);
  const other = new Device(world);
  await allow(other, { user: "bob" });
  const { body } = await send(world, "/wallet/passkeys/options", {}, device.cookie);
  const add = async (made: SoftPasskey, { cookie }: Device) => {
    const { status } = await send(
      world,
      "/wallet/passkeys",
      made.created(body.challenge),
      cookie,
    );
    return status;
  };
  assert.equal(await add(passkey, device), 400, "it is known");
  const next = new SoftPasskey(new Uint8Array(32).fill(9), { origin });
  assert.equal(await add(next, other), 400, "it was for another person");
  assert.equal(await signIn(world, next), refused);
  const foreign = new SoftPasskey(new Uint8Array(32).fill(9), { origin: "https://other.test" });
  assert.equal(await add(foreign, device), 400, "of another site");
  assert.equal(await add(next, device), 200);
  assert.equal(await signIn(world, foreign), refused);
  assert.deepEqual(
    await known(world, await signIn(world, next)),
    await known(world, device.cookie),
  );
});

/** Responses of a page and a device that misbehave. */
const wrong: Record<string, { origin: string; site?: string; isVerified?: boolean }> = {
  "another page of the site": { origin: "https://evil.farebox.test", site: "farebox.test" },
  "a page that asks for another site's": { origin, site: "other.test" },
  "a device that knows not who uses it": { origin, isVerified: false },
};

for (const [what, options] of Object.entries(wrong)) {
  Deno.test(`passkey: what ${what} creates is rejected, and opens nothing`, async () => {
    using world = await sharedWorld();
    const { device, passkey } = await begin(world);
    const same = new SoftPasskey(new Uint8Array(32).fill(1), options);
    assert.equal(same.id, passkey.id);
    assert.equal(await signIn(world, same), refused);
    const { body } = await send(world, "/wallet/passkeys/options", {}, device.cookie);
    const made = new SoftPasskey(new Uint8Array(32).fill(2), options).created(body.challenge);
    const { status } = await send(world, "/wallet/passkeys", made, device.cookie);
    assert.equal(status, 400);
    assert.match(await signIn(world, passkey), /=/);
  });
}

Deno.test("passkey: no other key opens the wallet with its id", async () => {
  using world = await sharedWorld();
  const { passkey } = await begin(world);
  const thief = new SoftPasskey(new Uint8Array(32).fill(2), { origin });
  const { id, rawId } = passkey.answered("");
  assert.equal(await answer(world, { ...thief.answered(await ask(world)), id, rawId }), refused);
  assert.match(await signIn(world, passkey), /=/);
});

Deno.test("passkey: a copy of one that counts its uses opens nothing", async () => {
  using world = await sharedWorld();
  const { passkey } = await begin(world, { step: 1 });
  for (let times = 0; times < 2; times++) {
    await world.clock.advance(1_000);
    assert.match(await signIn(world, passkey), /=/);
  }
  await world.clock.advance(1_000);
  const copy = new SoftPasskey(new Uint8Array(32).fill(1), { origin, step: 1 });
  assert.equal(await signIn(world, copy), refused);
});

Deno.test("passkey: a browser is asked for any passkey, without a list of them", async () => {
  using world = await sharedWorld();
  const { device, passkey } = await begin(world);
  const { body } = await send(world, "/wallet/passkeys/options", {}, device.cookie);
  const { residentKey, userVerification } = body.authenticatorSelection;
  assert.deepEqual([residentKey, userVerification], ["required", "required"]);
  assert.deepEqual(body.excludeCredentials.map(({ id }: Body) => id), [passkey.id]);
  const asked = await send(world, "/wallet/sign-in/options", {});
  assert.deepEqual([asked.body.userVerification, asked.body.rpId], ["required", "farebox.test"]);
});

Deno.test("passkey: two devices may start at the same time, and finish in any order", async () => {
  using world = await sharedWorld();
  const { passkey } = await begin(world);
  const first = await ask(world);
  await world.clock.advance(1_000);
  const second = await ask(world);
  assert.match(await answer(world, passkey.answered(second)), /=/);
  assert.match(await answer(world, passkey.answered(first)), /=/);
  for (const challenge of [first, second]) {
    assert.equal(await answer(world, passkey.answered(challenge)), refused);
  }
});

Deno.test("passkey: a challenge expires after five minutes, and is for signing in only", async () => {
  using world = await sharedWorld();
  const { device, passkey } = await begin(world);
  const challenge = await ask(world);
  const { body } = await send(world, "/wallet/passkeys/options", {}, device.cookie);
  assert.equal(await answer(world, passkey.answered(body.challenge)), refused);
  await world.clock.advance(5 * minuteMs);
  assert.equal(await answer(world, passkey.answered(challenge)), refused);
});

Deno.test("passkey: at most 32 responses in a challenge's lifetime, and none of them twice", async () => {
  using world = await sharedWorld();
  const { passkey } = await begin(world);
  const responses = [];
  for (let n = 0; n < 33; n++) {
    responses.push(passkey.answered(await ask(world)));
    world.clock.set(1);
  }
  const last = responses.pop();
  for (const response of responses) assert.match(await answer(world, response), /=/);
  assert.equal(await answer(world, last), refused);
  for (const response of responses) assert.equal(await answer(world, response), refused);
  await world.clock.advance(5 * minuteMs);
  assert.match(await signIn(world, passkey), /=/);
  const { value } = await world.deps.kv.get(passkeyKey(passkey.id));
  assert.equal(fromBytes<Body>(value ?? assert.fail()).answered.length, 32);
});

Deno.test("passkey: one used by a clock far ahead opens the wallet when that is set back", async () => {
  using world = await sharedWorld();
  const { passkey } = await begin(world);
  const response = passkey.answered(await ask(world));
  assert.match(await answer(world, response), /=/);
  world.clock.set(dayMs);
  const ahead = passkey.answered(await ask(world));
  await world.clock.advance(1);
  assert.match(await signIn(world, passkey), /=/);
  await world.clock.advance(1_000);
  world.clock.set(-dayMs);
  assert.equal(await answer(world, response), refused, "it counted before");
  assert.equal(await answer(world, ahead), refused, "its time is not yet");
  assert.match(await signIn(world, passkey), /=/);
});

Deno.test("passkey: a challenge created by a clock that is ahead is accepted by one that is behind", async () => {
  using world = await sharedWorld();
  const { device, passkey } = await begin(world);
  world.clock.set(minuteMs);
  const challenge = await ask(world);
  const { body } = await send(world, "/wallet/passkeys/options", {}, device.cookie);
  world.clock.set(-2 * minuteMs);
  assert.match(await answer(world, passkey.answered(challenge)), /=/);
  const next = new SoftPasskey(new Uint8Array(32).fill(2), { origin });
  const made = await send(world, "/wallet/passkeys", next.created(body.challenge), device.cookie);
  assert.equal(made.status, 200);
});

Deno.test("passkeys: none is offered where the host is an IP address, for which browsers make none", async () => {
  for (
    const [BASE_URL, isOffered] of [
      ["https://farebox.test", true],
      ["http://localhost:8000", true],
      ["http://192.0.2.7:8000", false],
      ["https://[2001:db8::7]/pay", false],
    ] as const
  ) {
    using world = await createWorld({ env: { BASE_URL }, project: { mode: "shared" } });
    const device = new Device(world);
    const asked = await world.json(chatPath, { body: chatBody("ada") });
    const { pathname } = new URL(asked.body.paywall.url);
    const path = pathname.replace(/^\/pay/, "");
    for (const page of ["/wallet", path]) {
      const { html } = await device.get(page);
      assert.equal(/<button[^>]*passkey/.test(html), isOffered, `${BASE_URL} ${page}`);
    }
  }
});

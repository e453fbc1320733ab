import assert from "node:assert/strict";
import { formFields, hiddenFields, signedIn, textOf } from "../support/console.ts";
import { ada, forget, makePeople, rowsNaming, usersOf } from "../support/forget.ts";
import { allow, Device, env } from "../support/wallets.ts";
import { deliver, operate } from "../support/webhooks.ts";
import { put } from "../support/verify.ts";
import { encodeForgetJob } from "../../src/ledger/forget_account.ts";
import { forgetJobKey } from "../../src/store/keys.ts";
import { adminKey, createWorld, type World } from "../support/world.ts";

const page = `users/erase?user=${encodeURIComponent(ada)}`;

async function trailOf(world: World) {
  const { body } = await operate(world, "/audit?limit=5", { method: "GET" });
  // deno-lint-ignore no-explicit-any -- what a test reads of a row, it asserts
  return body.actions.filter(({ action }: any) => action === "user.forgotten");
}

for (const holder of ["owner", "operator"] as const) {
  Deno.test(`console: the ${holder} erases a user, and says that the balance is forfeited`, async () => {
    using world = await createWorld();
    await makePeople(world);
    const visitor = await signedIn(world, holder === "owner" ? world.ownerKey : adminKey);
    const user = await visitor.get(`users/one?user=${encodeURIComponent(ada)}`);
    assert.match(user.html, /href="[^"]*\/users\/erase\?user=ada\.lovelace%40example\.com"/);
    const asked = await visitor.get(page);
    assert.match(textOf(asked.html), /Erase ada\.lovelace@example\.com \?.*cannot be undone/);
    assert.match(textOf(asked.html), /Forfeit the balance of \$6\.2/);
    const form = formFields(asked.html, "/users/erase");
    const refused = await visitor.post("users/erase", form);
    assert.equal(refused.status, 400);
    assert.match(textOf(refused.html), /A balance is left\. Pay it out first, or choose below/);
    assert.ok((await rowsNaming(world, ada)).length > 0);
    const fields = { ...formFields(refused.html, "/users/erase"), forfeit: "on" };
    let shown = await visitor.submit("users/erase", fields);
    for (let tries = 0; tries < 50 && !/The user is erased/.test(shown.html); tries++) {
      assert.match(textOf(shown.html), /is being erased\. It continues by itself/);
      await deliver(world);
      await world.app.sweep();
      const [, again = ""] = /href="([^"]*users\/erase[^"]*as=[^"]*)"/.exec(shown.html) ?? [];
      shown = await visitor.get(again.replaceAll("&amp;", "&"));
      if (shown.status === 303) shown = await visitor.get(shown.location ?? "");
    }
    assert.match(textOf(shown.html), /User forgotten_\w{22} .*The user is erased\./);
    assert.doesNotMatch(shown.html, /users\/erase|\/deposit\?user|top-up-link/);
    assert.deepEqual(await rowsNaming(world, ada), []);
    const erased = (await usersOf(world)).find(({ user }) => user.startsWith("forgotten_"));
    assert.equal(erased?.balance, "0");
    const [row, ...more] = await trailOf(world);
    assert.deepEqual(more, []);
    assert.deepEqual(
      [row.actor.type, row.via, row.target, row.detail],
      [holder === "owner" ? "key" : "operator", "console", erased?.user, { forfeit: true }],
    );
    const [charge] = await world.activities(erased?.user);
    assert.equal(charge?.reason, "forfeit");
    assert.equal(charge?.actor.id, row.actor.id);
    const repeated = await visitor.submit("users/erase", fields);
    assert.match(textOf(repeated.html), /This form was already submitted/);
    assert.equal((await trailOf(world)).length, 1, "someone new of that name stays");
  });
}

Deno.test("console: an erasure under way is shown as such, and asks nothing", async () => {
  using world = await createWorld();
  await makePeople(world);
  const owner = await signedIn(world);
  const job = {
    ...{ projectId: world.projectId, user: ada, pseudonym: `forgotten_${"x".repeat(22)}` },
    ...{ until: "evt_0", forfeit: true, step: "topUsers", place: null },
    erased: { forfeited: 1, entries: 4, walletEntries: 0 },
  };
  await put(world, forgetJobKey(world.projectId, ada), encodeForgetJob(job));
  const waiting = await owner.get(page);
  assert.match(textOf(waiting.html), /is being erased\. It continues by itself.*forgotten_\w{22}/);
  assert.match(
    textOf(waiting.html),
    /Records erased so far.*forfeited 1.*entries 4 wallet entries 0/,
  );
  assert.doesNotMatch(waiting.html, /<form[^>]*users\/erase/);
  const [, again = ""] = /href="([^"]*users\/erase[^"]*as=[^"]*)"/.exec(waiting.html) ?? [];
  for (let tries = 0; tries < 50; tries++) {
    await world.app.sweep();
    if ((await owner.get(again.replaceAll("&amp;", "&"))).status === 303) return;
  }
  assert.fail("it comes to no end by itself");
});

Deno.test("console: who cannot be erased yet is refused in the API's words", async () => {
  using world = await createWorld();
  await makePeople(world);
  world.subscriber.reply(() => ({ status: 503 }));
  await world.deposit(ada, "1");
  await deliver(world);
  const owner = await signedIn(world);
  const sent = { ...formFields((await owner.get(page)).html, "/users/erase"), forfeit: "on" };
  const refused = await owner.post("users/erase", sent);
  const { code, message } = (await forget(world, { forfeit: true })).body.error;
  assert.equal(code, "deliveries_pending");
  assert.equal(refused.status, 400);
  assert.ok(textOf(refused.html).includes(message), message);
});

Deno.test("console: a user whose wallet is connected is refused as by the API", async () => {
  using world = await createWorld({ env, project: { mode: "shared" } });
  await allow(new Device(world));
  const owner = await signedIn(world);
  const { html } = await owner.get("users/erase?user=ada");
  assert.doesNotMatch(html, /name="forfeit"/);
  const refused = await owner.post("users/erase", hiddenFields(html, "/users/erase"));
  assert.equal(refused.status, 400);
  const { message, code } = (await forget(world, {}, "ada")).body.error;
  assert.equal(code, "user_connected");
  assert.ok(textOf(refused.html).includes(message));
  await world.json("/v1/user/disconnect?user=ada", { method: "POST" });
  const again = hiddenFields(refused.html, "/users/erase");
  const done = await owner.submit("users/erase", again);
  assert.match(textOf(done.html), /The user is erased|is being erased/);
});

import assert from "node:assert/strict";
import { fromBytes, toBytes } from "../../src/base/json.ts";
import type { Mail } from "../../src/deps.ts";
import type { Project } from "../../src/projects/schema.ts";
import { projectKey } from "../../src/store/keys.ts";
import { sentConfirmationsKey } from "../../src/store/keys.ts";
import { linkIn, nextCheck } from "../support/alerts.ts";
import { signedIn, textOf, Visitor } from "../support/console.ts";
import { put } from "../support/verify.ts";
import { operate } from "../support/webhooks.ts";
import { adminKey, type Body, createWorld, type World } from "../support/world.ts";

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;

/** A world whose low sum of balances fires, and what is sent to whom. */
async function tellingWorld(emails: readonly string[] = []) {
  const mails: Mail[] = [];
  let fails = false;
  const world = await createWorld({
    project: { alerts: { emails, totalBalance: { below: "10" } } },
    sendMail: (mail) => {
      if (fails) return Promise.reject(new Error("421 try later"));
      mails.push(mail);
      return Promise.resolve();
    },
  });
  return { world, mails, fail: (now: boolean) => void (fails = now) };
}

const setEmails = (world: World, emails: readonly string[], projectId = world.projectId) =>
  world.json(`/v1/admin/projects/${projectId}`, {
    method: "PATCH",
    key: adminKey,
    body: { alerts: { emails } },
  });

async function addressesOf(world: World): Promise<Body[]> {
  return (await operate(world, "/alerts", { method: "GET" })).body.mail.addresses;
}

const sentTo = (mails: readonly Mail[]) => mails.map(({ to, subject }) => [to.join(), subject]);
const confirms = /confirm your e-mail address$/;

Deno.test("alerts: an address gets nothing but one link, until its owner has opened it", async () => {
  const { world, mails } = await tellingWorld(["owner@my.app"]);
  using _ = world;
  await nextCheck(world);
  for (let check = 0; check < 3; check++) await nextCheck(world, 20);
  assert.equal(mails.length, 1, "though an alert fires");
  const [asking] = mails.splice(0);
  assert.match(asking?.subject ?? "", confirms);
  assert.doesNotMatch(`${asking?.text} ${asking?.html}`, /Test\b/, "no text of the owner's");
  const test = await operate(world, "/alerts/test-email", { body: {} });
  assert.deepEqual([test.status, test.body.error.code], [400, "address_not_confirmed"]);
  assert.deepEqual((await addressesOf(world)).map(({ email, confirmed }) => [email, confirmed]), [
    ["owner@my.app", false],
  ]);

  const recipient = new Visitor(world);
  const link = linkIn(asking ?? assert.fail());
  for (let view = 0; view < 2; view++) {
    const { status, html } = await recipient.get(link);
    assert.equal(status, 200);
    assert.match(textOf(html), /Do you want alerts at this address\?.*Test.*owner@my\.app/);
  }
  assert.equal((await addressesOf(world))[0]?.confirmed, false, "reading it confirms nothing");
  assert.equal((await recipient.post(link, {}, "cross-site")).status, 403);
  for (let time = 0; time < 2; time++) {
    assert.match(textOf((await recipient.post(link)).html), /The address is confirmed/);
  }
  assert.equal((await addressesOf(world))[0]?.confirmed, true);
  await nextCheck(world);
  assert.deepEqual(sentTo(mails), [["owner@my.app", "Test: low balance of all users"]]);
  const { body } = await operate(world, "/audit?action=alerts.address_confirmed", {
    method: "GET",
  });
  assert.deepEqual(body.actions.map(({ actor, detail }: Body) => [actor.type, detail]), [
    ["unknown", { email: "owner@my.app" }],
  ]);
});

Deno.test("alerts: addresses of version 0.9.0 stay confirmed, and only new ones are asked", async () => {
  const { world, mails } = await tellingWorld(["old@my.app"]);
  using _ = world;
  const key = projectKey(world.projectId);
  const row = await world.deps.kv.get(key);
  const { unconfirmedEmails: _new, ...old } = fromBytes<Project>(row.value ?? new Uint8Array());
  await put(world, key, toBytes(old));
  await world.clock.advance(2_000);
  await setEmails(world, ["old@my.app", "new@my.app"]);
  await nextCheck(world);
  assert.deepEqual(sentTo(mails).map(([to, subject]) => [to, confirms.test(subject ?? "")]), [
    ["new@my.app", true],
    ["old@my.app", false],
  ]);
  await operate(world, "", { method: "PATCH", body: { name: "Renamed" } });
  assert.deepEqual((await addressesOf(world)).map(({ confirmed }) => confirmed), [true, false]);
  await setEmails(world, ["new@my.app"]);
  await setEmails(world, ["new@my.app", "old@my.app"]);
  assert.deepEqual(
    (await addressesOf(world)).map(({ confirmed }) => confirmed),
    [false, false],
    "removed and named again, it is a new one",
  );
});

Deno.test("alerts: a link is for one address, expires, and ends when the address is removed", async () => {
  const { world, mails } = await tellingWorld(["owner@my.app"]);
  using _ = world;
  await nextCheck(world);
  const link = linkIn(mails[0] ?? assert.fail());
  const recipient = new Visitor(world);
  for (const forged of [link.slice(0, -2), `${link}x`, "/alerts/confirm/x"]) {
    const { status, html } = await recipient.post(forged);
    assert.equal(status, 404);
    assert.match(textOf(html), /This link is no longer valid/);
  }
  await setEmails(world, ["other@my.app"]);
  assert.equal((await recipient.post(link)).status, 404);
  await setEmails(world, ["owner@my.app"]);
  await world.clock.advance(7 * dayMs);
  assert.equal((await recipient.post(link)).status, 404);
  assert.equal((await addressesOf(world))[0]?.confirmed, false);
  const logged = JSON.stringify(world.logged);
  assert.ok(!logged.includes(link), "the log does not show it");
});

Deno.test("alerts: an inbox gets at most three links a day, from whichever projects", async () => {
  const { world, mails } = await tellingWorld();
  using _ = world;
  const projects = [world.projectId];
  for (let n = 0; n < 4; n++) projects.push((await world.makeProject()).projectId);
  for (const [n, id] of projects.entries()) await setEmails(world, [`Stranger+${n}@x.org`], id);
  for (let check = 0; check < 30; check++) await nextCheck(world, 61);
  const during = mails.length;
  assert.ok(during >= 3 && during <= 6, `${during} within 30 hours`);
  mails.length = 0;
  for (let change = 0; change < 40; change++) {
    await setEmails(world, Array.from({ length: 5 }, (_, n) => `a${change * 5 + n}@x.org`));
    await nextCheck(world);
  }
  assert.ok(mails.length <= 20, `${mails.length} of one project within a day`);
});

Deno.test("alerts: a link that could not be sent is sent again later, and not at once", async () => {
  const { world, mails, fail } = await tellingWorld(["owner@my.app"]);
  using _ = world;
  fail(true);
  for (let check = 0; check < 5; check++) await nextCheck(world);
  assert.equal(
    world.logged.filter(({ event }) => event === "alert_confirmation_failed").length,
    1,
  );
  fail(false);
  await nextCheck(world, 60);
  assert.equal(mails.length, 1);
  assert.notEqual((await addressesOf(world))[0]?.askedAt, null);
});

Deno.test("alerts: the console shows who has not confirmed, and sends the link again", async () => {
  const { world, mails } = await tellingWorld(["owner@my.app", "second@my.app"]);
  using _ = world;
  await nextCheck(world);
  const owner = await signedIn(world);
  assert.match(
    textOf((await owner.get("alerts")).html),
    /owner@my\.app waiting for its owner.*Send again second@my\.app waiting/,
  );
  await owner.stayFor(20 * minuteMs);
  const email = "owner@my.app";
  const sent = await owner.submit("alerts/confirm", { email });
  assert.match(textOf(sent.html), /The link was sent again/);
  assert.equal(mails.length, 3);
  const soon = await owner.post("alerts/confirm", { email });
  assert.equal(soon.status, 400);
  assert.match(textOf(soon.html), /sent less than a minute ago/);
  assert.equal((await owner.post("alerts/confirm", { email: "x@y.org" })).status, 400);
  await world.clock.advance(minuteMs + 1);
  assert.equal((await owner.post("alerts/confirm", { email })).status, 303);
  await world.clock.advance(minuteMs + 1);
  const enough = textOf((await owner.post("alerts/confirm", { email })).html);
  assert.match(enough, /This address got 3 of these e-mails within a day/);
  await new Visitor(world).post(linkIn(mails[0] ?? assert.fail()));
  assert.match(textOf((await owner.get("alerts")).html), /owner@my\.app confirmed/);
  const confirmed = await owner.post("alerts/confirm", { email });
  assert.match(textOf(confirmed.html), /not waiting for a confirmation/);
});

Deno.test("alerts: who was sent a link is forgotten a day later", async () => {
  const { world } = await tellingWorld(["owner@my.app"]);
  using _ = world;
  await nextCheck(world);
  const stored = async () => (await world.deps.kv.get(sentConfirmationsKey)).value !== null;
  assert.equal(await stored(), true);
  await world.clock.advance(23 * 3_600_000);
  await world.app.sweep();
  assert.equal(await stored(), true);
  await world.clock.advance(2 * 3_600_000);
  await world.app.sweep();
  assert.equal(await stored(), false);
});

import assert from "node:assert/strict";
import { chatBody, chatPath } from "../support/books.ts";
import { hiddenFields, signedIn, textOf } from "../support/console.ts";
import { allow, charge, Device, pay, sharedWorld } from "../support/wallets.ts";
import { deliver, operate, subscribe } from "../support/webhooks.ts";
import { adminKey, type Body, createWorld, type World } from "../support/world.ts";

async function lastAction(world: World): Promise<Body> {
  const path = `/v1/admin/projects/${world.projectId}/audit?limit=1`;
  return (await world.json(path, { key: adminKey })).body.actions[0];
}

Deno.test("console: a deposit is reviewed exactly, recorded once, and leaves its reason and audit row", async () => {
  using world = await createWorld();
  await subscribe(world, { events: ["balance.deposit.created"] });
  const owner = await signedIn(world);
  const user = "ada <b>&x";
  const typed = { user, amount: "12,345678", reason: "Sorry for the outage" };
  const asked = await owner.post("deposit", typed);
  assert.equal(asked.status, 200);
  assert.match(
    textOf(asked.html),
    /balance of ada <b>&x increases by \$12\.345678 \. Reason: Sorry for the outage Record 12\.345678/,
  );
  assert.doesNotMatch(asked.html, /<b>/);
  assert.equal((await world.balance(user)).balance, "0", "asking books nothing");
  const form = { ...hiddenFields(asked.html, "/deposit"), user };
  const done = await owner.submit("deposit", form);
  assert.match(textOf(done.html), /The deposit is recorded.*Balance \$12\.34 /);
  const again = await owner.submit("deposit", form);
  assert.match(textOf(again.html), /it is recorded once/);
  assert.equal((await world.balance(user)).balance, "12.345678");
  const [entry] = await world.activities(user);
  const [, own] = (await operate(world, "/keys", { method: "GET" })).body.keys;
  const metadata = { source: "console", by: own.id, reason: "Sorry for the outage" };
  assert.deepEqual(entry?.metadata, metadata);
  const { action, target, detail, actor, via } = await lastAction(world);
  assert.deepEqual([action, target, via], ["deposit", user, "console"]);
  assert.deepEqual(actor, { type: "key", id: own.id, suffix: own.suffix });
  const { id: activityId } = entry ?? assert.fail();
  assert.deepEqual(detail, { activityId, amount: "12.345678", reason: "Sorry for the outage" });
  await deliver(world);
  const [event] = world.subscriber.received.map(({ body }) => body.event);
  assert.deepEqual([event.trigger.source, event.data.source], ["console", "console"]);
});

Deno.test("console: an id with right-to-left characters reverses no amount beside it", async () => {
  using world = await createWorld();
  const user = "ada\u202e";
  await world.deposit(user, "10");
  await world.json("/v1/user/charge", { body: { user, amount: "4" } });
  const owner = await signedIn(world);
  const isolated = `<bdi>${user}</bdi>`;
  const asked = await owner.post("deposit", { user, amount: "12.05" });
  assert.ok(asked.html.includes(`The balance of ${isolated} increases by`));
  for (const { id, kind } of await world.activities(user)) {
    const form = { user, activityId: id };
    const page = await owner.get(`refund?${new URLSearchParams(form)}`);
    assert.ok(page.html.includes(`by ${isolated},`));
    const { html } = await owner.post("refund", form);
    const end = kind === "charge" ? " increases by" : " decreases, as far as it is available, by";
    assert.ok(html.includes(`the balance of ${isolated}${end}`), html);
  }
});

Deno.test("console: the audit row of a deposit is in the deposit's own write", async () => {
  const writes: string[][] = [];
  using world = await createWorld({
    wrapKv: (kv) => ({
      ...kv,
      async atomic(write) {
        writes.push(write.sets.map(({ key }) => String(key[0])));
        return await kv.atomic(write);
      },
    }),
  });
  const owner = await signedIn(world);
  const asked = await owner.post("deposit", { user: "ada", amount: "1" });
  await owner.submit("deposit", hiddenFields(asked.html, "/deposit"));
  const [own, ...others] = writes.filter((kinds) => kinds.includes("entry"));
  assert.deepEqual(others, []);
  assert.ok(own?.includes("audit") && own.includes("account"), own?.join());
});

Deno.test("console: invalid amounts are reported on the form, and nothing is recorded", async () => {
  using world = await createWorld();
  const owner = await signedIn(world);
  for (const amount of ["", "0", "-1", "1e3", "1.1234567890", "free", "1,2,3"]) {
    const answer = await owner.post("deposit", { user: "ada", amount });
    assert.equal(answer.status, 400, amount);
    assert.match(textOf(answer.html), /‘Amount’/);
  }
  for (const amount of ["9999999999999", "1.000,50"]) {
    const { html } = await owner.post("deposit", { user: "ada", amount });
    const told = textOf(html);
    assert.match(told, /at most 12 digits before the point and 9 after it/);
    assert.ok(told.includes(`not '${amount}'.`), told);
  }
  const unasked = await owner.post("deposit", { user: "ada", amount: "1", confirmed: "yes" });
  assert.equal(unasked.status, 400, "without the form's id");
  assert.equal((await owner.post("deposit", { user: "", amount: "1" })).status, 400);
  assert.equal((await world.balance("ada")).balance, "0");
});

Deno.test("console: a partial refund is recorded once, and never exceeds what is left", async () => {
  using world = await createWorld();
  await world.deposit("ada", "10");
  await world.json("/v1/user/charge", { body: { user: "ada", amount: "4" } });
  const [charge, deposit] = await world.activities("ada");
  const owner = await signedIn(world);
  const named = { user: "ada", activityId: charge?.id };
  const page = await owner.get(`refund?user=ada&activityId=${charge?.id}`);
  assert.match(
    textOf(page.html),
    /The charge of 4 by ada.*Leave empty to refund the remaining amount: 4\./,
  );
  const asked = await owner.post("refund", { ...named, amount: "1.5", reason: "half" });
  assert.match(textOf(asked.html), /is refunded: the balance of ada increases by \$1\.50 \./);
  const form = hiddenFields(asked.html, "/refund");
  assert.match(textOf((await owner.submit("refund", form)).html), /The refund is recorded/);
  assert.match(textOf((await owner.submit("refund", form)).html), /it is recorded once/);
  const row = await lastAction(world);
  const [refund] = await world.activities("ada");
  assert.deepEqual([row.action, row.target], ["refund", "ada"]);
  const { id: activityId } = refund ?? assert.fail();
  const refundedActivityId = charge?.id;
  assert.deepEqual(row.detail, { activityId, amount: "1.5", refundedActivityId, reason: "half" });
  const rest = await owner.post("refund", { ...named, amount: "" });
  assert.match(textOf(rest.html), /increases by \$2\.50/);
  const tooMuch = await owner.post("refund", { ...named, amount: "3" });
  const confirmed = hiddenFields(tooMuch.html, "/refund");
  const refused = await owner.post("refund", confirmed);
  assert.equal(refused.status, 400);
  assert.match(textOf(refused.html), /Only 2\.5 of this activity is left to refund/);
  const back = await owner.post("refund", { user: "ada", activityId: deposit?.id, amount: "20" });
  assert.match(
    textOf(back.html),
    /taken back: the balance of ada decreases, as far as it is available/,
  );
  assert.equal((await world.balance("ada")).balance, "7.5");
});

Deno.test("console: another user's or project's activity cannot be refunded", async () => {
  using world = await createWorld();
  await world.deposit("ada", "10");
  const [entry] = await world.activities("ada");
  const other = await world.makeProject();
  const stranger = await signedIn(world, other.ownerKey);
  const owner = await signedIn(world);
  const query = `activityId=${entry?.id}`;
  assert.equal((await owner.get(`refund?user=eve&${query}`)).status, 404);
  const elsewhere = `/console/projects/${other.projectId}/refund?user=ada&${query}`;
  assert.equal((await stranger.get(elsewhere)).status, 404);
  assert.equal((await owner.get("refund?user=ada&activityId=act_1")).status, 404);
});

Deno.test("console: users are found by prefix, page by page, with their balances", async () => {
  using world = await createWorld();
  for (let n = 0; n < 60; n++) await world.deposit(`user-${String(n).padStart(2, "0")}`, "2.5");
  await world.deposit("ada", "0.123456789");
  const owner = await signedIn(world);
  const first = await owner.get("users?order=id");
  assert.match(textOf(first.html), /ada 1 \$0\.00 \$0\.12 user-00 1 \$0\.00 \$2\.50/);
  const [, next = ""] = /href="([^"]*cursor=[^"]*)" rel="next"/.exec(first.html) ?? [];
  const second = await owner.get(next.replaceAll("&amp;", "&"));
  assert.match(textOf(second.html), /user-49.*user-59/);
  const found = await owner.get("users?prefix=user-5");
  assert.deepEqual([...new Set(found.html.match(/user-5\d/g))].length, 10);
  assert.doesNotMatch(found.html, /user-4\d/);
  assert.match(textOf((await owner.get("users?prefix=nobody")).html), /No such user/);
  using fresh = await createWorld();
  const empty = textOf((await (await signedIn(fresh)).get("users")).html);
  assert.match(empty, /No users yet/);
  assert.equal((await owner.get("users?order=id&cursor=x")).status, 400);
});

Deno.test("console: users are listed by last activity, by balance and by what they spent, and as CSV", async () => {
  using world = await createWorld();
  for (const [user, amount] of [["rich", "9"], ["poor", "0.5"], ["busy", "5"]] as const) {
    await world.deposit(user, amount);
    await world.clock.advance(1_000);
  }
  await world.json("/v1/user/charge", { body: { user: "busy", amount: "2" } });
  await world.clock.advance(1_000);
  await world.deposit("rich", "1");
  const owner = await signedIn(world);
  const orders = {
    "": ["rich", "busy", "poor"],
    "?order=balance": ["rich", "busy", "poor"],
    "?order=low": ["poor", "busy", "rich"],
    "?order=spent": ["busy"],
    "?order=id": ["busy", "poor", "rich"],
  };
  for (const [query, users] of Object.entries(orders)) {
    const { html } = await owner.get(`users${query}`);
    const shown = [...html.matchAll(/<th scope="row"><a [^>]*><bdi>(\w+)/g)].map(([, user]) =>
      user
    );
    assert.deepEqual(shown, users, query);
  }
  const csv = await owner.get("users.csv");
  assert.match(csv.html, /^user,balance,held,available,currency,entries\r\nbusy,3,0,3,usd,2\r\n/);
});

Deno.test("console: a user's page adds up a period, and filters the entries by kind", async () => {
  using world = await createWorld();
  await world.deposit("ada", "20");
  await world.json("/v1/user/charge", { body: { user: "ada", amount: "3" } });
  await world.clock.advance(10 * 24 * 60 * 60 * 1000);
  await world.deposit("ada", "1");
  await world.json(chatPath, { body: chatBody("ada") });
  await world.json("/v1/user/charge", { body: { user: "ada", amount: "4" } });
  const owner = await signedIn(world);
  const show = async (query: string) =>
    textOf((await owner.get(`users/one?user=ada${query}`)).html);
  assert.match(await show(""), /Spent \$7\.00 last 30 days Responses 1 .* Deposited \$21\.00/);
  assert.match(await show("&days=7"), /Spent \$4\.00 last 7 days Responses 1 .*Deposited \$1\.00/);
  const charges = await show("&kind=charge");
  assert.match(charges, /Charge act_\w+ -\$4\.00 .*Charge act_\w+ -\$3\.00/);
  assert.doesNotMatch(charges, /Deposit act_/);
  assert.equal((await owner.get("users/one?user=ada&kind=gift")).status, 400);
  for (let at = 0; at < 300; at++) await world.deposit("ada", "0.01");
  assert.match(
    await show(""),
    /Spent \$0\.00.*these figures begin at/,
  );
  assert.match(await show("&kind=charge"), /Charge act_\w+ -\$3\.00/, "however far back");
});

Deno.test("console: a user's page shows holds, and each activity with its purpose", async () => {
  using world = await createWorld();
  await world.deposit("ada", "5");
  await world.json(chatPath, { body: chatBody("ada") });
  const owner = await signedIn(world);
  const page = textOf((await owner.get("users/one?user=ada")).html);
  assert.match(
    page,
    /User ada.*Balance \$4\.99.*nothing is held.*Response test-model: \d+ tokens in/,
  );
  const unknown = textOf((await owner.get("users/one?user=nobody")).html);
  assert.match(unknown, /User nobody.*Balance \$0\.00.*No activity\./);
  for (let n = 0; n < 30; n++) await world.deposit("ada", "1");
  const paged = await owner.get("users/one?user=ada");
  const [, next = ""] = /href="([^"]*cursor=[^"]*)" rel="next"/.exec(paged.html) ?? [];
  assert.match(
    textOf((await owner.get(next.replaceAll("&amp;", "&"))).html),
    /Deposit act_\w+ \$5\.00 \$5\.00/,
  );
});

Deno.test("console: an archived project takes no deposits, but can be viewed", async () => {
  using world = await createWorld();
  await world.deposit("ada", "5");
  const owner = await signedIn(world);
  const [booked, open] = await Promise.all(
    [1, 2].map(() => owner.post("deposit", { user: "ada", amount: "1" })),
  );
  await owner.submit("deposit", hiddenFields(booked?.html ?? "", "/deposit"));
  await operate(world, "/archive");
  for (
    const refused of [
      await owner.get("deposit?user=ada"),
      await owner.post("deposit", { user: "ada", amount: "1" }),
      await owner.post("deposit", { user: "ada", amount: "free" }),
      await owner.post("deposit", hiddenFields(open?.html ?? "", "/deposit")),
    ]
  ) {
    assert.equal(refused.status, 403);
    assert.match(textOf(refused.html), /Users .*This project is archived.*Back to the user/);
    assert.doesNotMatch(refused.html, /<form[^>]*\/deposit"/);
  }
  const again = await owner.submit("deposit", hiddenFields(booked?.html ?? "", "/deposit"));
  assert.match(textOf(again.html), /it is recorded once/);
  const user = await owner.get("users/one?user=ada");
  assert.equal(user.status, 200);
  assert.match(textOf(user.html), /This project is archived and takes no deposits/);
  assert.doesNotMatch(user.html, /\/deposit\?/);
  assert.equal((await world.balance("ada")).balance, "6");
});

Deno.test("console: a fully refunded activity is not offered for another refund", async () => {
  using world = await createWorld();
  await world.deposit("ada", "10");
  const { body: charge } = await world.json("/v1/user/charge", {
    body: { user: "ada", amount: "4" },
  });
  const { activityId } = charge;
  const owner = await signedIn(world);
  const asked = await owner.post("refund", { user: "ada", activityId, amount: "1" });
  await owner.submit("refund", hiddenFields(asked.html, "/refund"));
  const link = new RegExp(`Refund the charge ${activityId}`);
  assert.match((await owner.get("users/one?user=ada")).html, link, "3 are left");
  const late = await owner.post("refund", { user: "ada", activityId, amount: "" });
  await world.json("/v1/user/refund", { body: { user: "ada", activityId } });
  const user = await owner.get("users/one?user=ada");
  assert.doesNotMatch(user.html, link);
  assert.match(textOf(user.html), /Charge act_\w+ -\$4\.00 .* Refunded /);
  for (
    const [status, shown] of [
      [200, await owner.get(`refund?user=ada&activityId=${activityId}`)],
      [400, await owner.post("refund", { user: "ada", activityId, amount: "" })],
      [400, await owner.post("refund", hiddenFields(late.html, "/refund"))],
    ] as const
  ) {
    assert.equal(shown.status, status);
    assert.match(textOf(shown.html), /It is fully refunded/);
    assert.doesNotMatch(shown.html, /<form[^>]*\/refund"/);
  }
  assert.equal((await world.balance("ada")).balance, "10");
});

Deno.test("console: in a shared project users' money is their own: no manual deposit", async () => {
  using world = await createWorld({ project: { mode: "shared" } });
  const owner = await signedIn(world);
  assert.equal((await owner.get("deposit?user=ada")).status, 404);
  assert.equal((await owner.post("deposit", { user: "ada", amount: "1" })).status, 404);
  assert.doesNotMatch((await owner.get("users/one?user=ada")).html, /Deposit USD/);
});

Deno.test("console: in a wallet a charge can be refunded, and no deposit", async () => {
  using world = await sharedWorld();
  await allow(new Device(world));
  await pay(world, { amount: "20" });
  await charge(world, "2");
  const owner = await signedIn(world);
  const { html } = await owner.get("users/one?user=ada");
  const [made, deposit] = await world.activities("ada");
  assert.match(html, new RegExp(`Refund the charge ${made?.id}`));
  assert.doesNotMatch(html, /Refund the deposit/);
  const asked = await owner.post("refund", { user: "ada", activityId: deposit?.id ?? "" });
  const refused = await owner.post("refund", hiddenFields(asked.html, "/refund"));
  assert.equal(refused.status, 400);
  assert.match(textOf(refused.html), /is refunded at Stripe/);
  assert.equal((await world.balance("ada")).balance, "18");
});

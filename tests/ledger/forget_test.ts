import assert from "node:assert/strict";
import { decodeAccount } from "../../src/ledger/account.ts";
import { accountKey, forgetJobsPrefix } from "../../src/store/keys.ts";
import { chatBody, chatPath, checkBooks, storeAsText } from "../support/books.ts";
import {
  ada,
  bob,
  forget,
  forgetWholly,
  makePeople,
  rowsAsTextOf,
  rowsNaming,
  usersOf,
} from "../support/forget.ts";
import { createScriptedStore } from "../support/store.ts";
import { chunk, fedStream, readEvents, usage, usageChunk } from "../support/upstream.ts";
import { keysUnder, verify, verifyPath } from "../support/verify.ts";
import { deliver, logs, operate, subscribe } from "../support/webhooks.ts";
import { adminKey, type Body, createWorld, type World } from "../support/world.ts";

const refuses = async (world: World, code: string, body: Body = {}) => {
  const before = await storeAsText(world);
  const answer = await forget(world, body);
  assert.deepEqual([answer.status, answer.body.error?.code], [400, code]);
  assert.equal(await storeAsText(world), before, "a refusal changes nothing");
  return answer.body.error;
};

async function depositOften(world: World, user: string, times: number): Promise<void> {
  for (let at = 0; at < times; at += 100) {
    await Promise.all(Array.from({ length: 100 }, () => world.deposit(user, "0.01")));
  }
}

Deno.test("forget: no stored record names the user any more, and the books add up", async () => {
  using world = await createWorld();
  await makePeople(world);
  const others = await rowsAsTextOf(world, bob);
  const before = await world.activities(ada);
  assert.ok((await rowsNaming(world, ada)).length > 20);
  const { status, pseudonym, erased } = await forgetWholly(world, { forfeit: true });
  assert.equal(status, "done");
  assert.match(pseudonym, /^forgotten_[0-9A-Za-z]{22}$/);
  assert.deepEqual(await rowsNaming(world, ada), []);
  assert.equal(await rowsAsTextOf(world, bob), others, "nobody else's records have changed");
  assert.equal(erased.entries, before.length);
  assert.deepEqual(await keysUnder(world, forgetJobsPrefix), []);

  const entries = await checkBooks(world, pseudonym);
  assert.deepEqual(entries.map(({ kind }) => kind), [
    ...before.map(({ kind }) => kind).reverse(),
    "charge",
  ]);
  const kept = ({ id, delta, balanceAfter, createdAt }: Body) =>
    [id, delta, balanceAfter, new Date(createdAt).toISOString()].join(" ");
  assert.deepEqual(entries.slice(0, -1).map(kept), before.map(kept).reverse());
  assert.deepEqual(entries.at(-1)?.metadata, { reason: "forfeited" });
  assert.ok(entries.slice(0, -1).every(({ metadata }) => metadata === null));
  const users = await usersOf(world);
  assert.deepEqual(users.map(({ user, balance }) => [user, balance]), [
    [bob, users[0]?.balance],
    [pseudonym, "0"],
  ]);
  await world.clock.advance(61_000);
  assert.deepEqual((await verify(world)).faults, []);
});

Deno.test("forget: the log still shows what was delivered, without the name", async () => {
  using world = await createWorld();
  await makePeople(world);
  const before = (await logs(world)).filter(({ event }) => JSON.stringify(event).includes(ada));
  const { pseudonym } = await forgetWholly(world, { forfeit: true });
  const after = new Map((await logs(world)).map((entry) => [entry.id, entry]));
  assert.ok(before.length >= 8);
  for (const { id, status, responseCode, event } of before) {
    const entry = after.get(id) ?? assert.fail("it is gone from the log");
    assert.deepEqual([entry.status, entry.responseCode], [status, responseCode]);
    assert.equal(entry.event.type, event.type);
    assert.equal(entry.event.subject.externalId, pseudonym);
    assert.equal(entry.event.data.amount, event.data.amount);
  }
});

Deno.test("forget: the pseudonym is different each time", async () => {
  using world = await createWorld();
  const names = new Set<string>();
  for (let time = 0; time < 3; time++) {
    await world.deposit(ada, "1");
    names.add((await forgetWholly(world, { forfeit: true })).pseudonym);
  }
  assert.equal(names.size, 3);
  assert.equal((await usersOf(world)).length, 3);
});

Deno.test("forget: a balance has to be paid out or forfeited first", async () => {
  using world = await createWorld();
  await world.deposit(ada, "1.5");
  const { message, param } = await refuses(world, "balance_not_zero");
  assert.equal(param, "forfeit");
  assert.match(message, /^The balance is 1\.5 usd/);
  await operate(world, `/users/${encodeURIComponent(ada)}/charge`, { body: { amount: "1.5" } });
  const { pseudonym } = await forgetWholly(world);
  assert.equal((await checkBooks(world, pseudonym)).length, 2, "nothing is left to be taken");
});

Deno.test("forget: a running call has to end first", async () => {
  using world = await createWorld();
  await world.deposit(ada, "1");
  const stream = fedStream();
  world.upstream.once(() => stream.response);
  const response = await world.call(chatPath, { body: chatBody(ada, { stream: true }) });
  await refuses(world, "money_held", { forfeit: true });
  stream.send(chunk({ content: "Hi" }, "stop"));
  stream.send(usageChunk(usage(8, 1)));
  stream.send("[DONE]");
  stream.end();
  await readEvents(response);
  await forgetWholly(world, { forfeit: true });
  assert.deepEqual(await rowsNaming(world, ada), []);
});

Deno.test("forget: pending deliveries have to be completed first", async () => {
  using world = await createWorld();
  await subscribe(world);
  await world.deposit("someone", "1");
  await deliver(world);
  world.subscriber.reply(() => ({ status: 503 }));
  await world.deposit("someone", "1");
  await world.deposit(ada, "1");
  await deliver(world);
  const { message } = await refuses(world, "deliveries_pending", { forfeit: true });
  assert.equal(message, "1 delivery of this user's events are pending.");
  world.subscriber.reply(() => ({ status: 200 }));
  await world.clock.advance(60_000);
  await deliver(world);
  await forgetWholly(world, { forfeit: true });
  assert.deepEqual(await rowsNaming(world, ada), []);
});

Deno.test("forget: an active key of the user has to be revoked first", async () => {
  using world = await createWorld();
  const { body: { key } } = await operate(world, "/keys", {
    body: { name: `for ${ada}`, defaultUser: ada },
  });
  const { message } = await refuses(world, "user_has_keys");
  assert.ok(message.includes(key.id));
  await operate(world, `/keys/${key.id}`, { method: "DELETE" });
  await forgetWholly(world);
  assert.deepEqual(await rowsNaming(world, ada), []);
});

Deno.test("forget: an unknown user is erased too, and repeating it is harmless", async () => {
  using world = await createWorld();
  await world.deposit(bob, "1");
  // The request stays in the audit trail, and rows of top users are rewritten.
  const rows = async () =>
    (await storeAsText(world)).replace(/^\[\["(audit|top_users)".*\n?/gm, "").trimEnd();
  const before = await rows();
  for (let time = 0; time < 2; time++) {
    assert.deepEqual((await forgetWholly(world)).erased, {});
    assert.equal(await rows(), before);
  }
});

Deno.test("forget: malformed input is 400, and an unknown project 404", async () => {
  using world = await createWorld();
  for (const body of [{ forfeit: "yes" }, { force: true }]) {
    assert.equal((await forget(world, body)).status, 400);
  }
  const unknown = await world.json("/v1/admin/projects/pw_1/users/ada/forget", {
    key: adminKey,
    body: {},
  });
  assert.equal(unknown.status, 404);
});

Deno.test("forget: contention on the account is 503, and nothing has started", async () => {
  const store = createScriptedStore();
  using world = await createWorld({ wrapKv: store.wrap });
  await world.deposit(ada, "1");
  for (const user of [ada, bob]) {
    store.atomic = () => Promise.resolve(null);
    let isOver = false;
    const asked = forget(world, { forfeit: true }, user).finally(() => isOver = true);
    await world.until(() => isOver, 10_000);
    const { status, body, response } = await asked;
    assert.deepEqual([status, body.error.code], [503, "account_contended"], user);
    assert.equal(response.headers.get("retry-after"), "1");
    store.atomic = null;
    assert.equal((await keysUnder(world, forgetJobsPrefix)).length, 0);
  }
});

Deno.test("forget: until it completes nothing is recorded, and then someone new may come", async () => {
  const store = createScriptedStore();
  using world = await createWorld({ wrapKv: store.wrap, project: { trialCredits: "3" } });
  await world.deposit(ada, "1");
  const [{ id: activityId }] = await world.activities(ada) as [Body];
  store.atomic = (write, real) => {
    if (store.writes.some(({ sets }) => sets.some(({ key }) => key[0] === "moved"))) {
      store.dead = true;
    }
    return real(write);
  };
  assert.equal((await forget(world, { forfeit: true })).status, 503);
  using next = await createWorld({ shareWith: world });
  const paths = ["/v1/user/balance/deposit", "/v1/user/charge"];
  const asked = [
    ...paths.map((path) => next.json(path, { body: { user: ada, amount: "1" } })),
    next.json("/v1/user/refund", { body: { activityId } }),
    next.json(chatPath, { body: chatBody(ada) }),
  ];
  for (const { status, body } of await Promise.all(asked)) {
    assert.deepEqual([status, body.error?.code], [403, "user_being_forgotten"]);
  }
  await next.app.sweep();
  assert.deepEqual(await rowsNaming(next, ada), []);
  await next.deposit(ada, "7");
  assert.equal((await next.balance(ada)).balance, "10", "with a trial, as anyone new");
  assert.equal((await checkBooks(next, ada)).length, 2);
  await next.clock.advance(61_000);
  assert.deepEqual((await verify(next)).faults, []);
});

Deno.test("forget: an unknown user does not get mixed up with someone who comes meanwhile", async () => {
  const forgetter = createScriptedStore();
  using world = await createWorld({ wrapKv: forgetter.wrap });
  using between = await createWorld({ shareWith: world, seed: 2 });
  const deposit = () =>
    between.json("/v1/user/balance/deposit", {
      key: world.apiKey,
      body: { user: ada, amount: "5" },
    });
  const answers: Body[] = [];
  forgetter.atomic = async (write, real) => {
    const landed = await real(write);
    if (answers.length === 0 && write.sets.some(({ key }) => key[0] === "forget_job")) {
      answers.push((await deposit()).body);
    }
    return landed;
  };
  const { erased } = await forgetWholly(world);
  assert.deepEqual([answers[0]?.error?.code, erased], ["user_being_forgotten", {}]);
  assert.equal((await deposit()).body.success, true);
  assert.equal((await world.balance(ada)).balance, "5");
  assert.equal((await forgetWholly(world, { forfeit: true })).erased.accounts, 1);
});

Deno.test("forget: thousands of records are erased in parts, which the sweep continues", async () => {
  using world = await createWorld();
  await depositOften(world, ada, 2_500);
  const { status, body } = await forget(world, { forfeit: true });
  assert.deepEqual([status, body.status], [202, "running"]);
  assert.ok(body.erased.entries < 2_500);
  for (let tick = 0; tick < 4; tick++) await world.app.sweep();
  assert.deepEqual(await rowsNaming(world, ada), []);
  assert.equal((await checkBooks(world, body.pseudonym)).length, 2_501);
});

Deno.test("forget: a verification that has started still succeeds", async () => {
  using world = await createWorld();
  await Promise.all([depositOften(world, ada, 1_100), depositOften(world, "zoe", 1_100)]);
  await world.clock.advance(61_000);
  const page = async (cursor: string): Promise<Body> =>
    (await world.json(`${verifyPath}?cursor=${cursor}`, { key: adminKey })).body;
  for (const pagesBefore of [1, 2]) {
    let { body } = await world.json(verifyPath, { key: adminKey });
    for (let done = 1; done < pagesBefore; done++) body = await page(body.nextCursor);
    await forgetWholly(world, { forfeit: true });
    const faults: string[] = [];
    while (body.nextCursor !== null) {
      body = await page(body.nextCursor);
      faults.push(...body.faults);
    }
    assert.deepEqual(faults, [], `after ${pagesBefore} pages`);
    await depositOften(world, ada, 1_000);
    await world.clock.advance(61_000);
  }
});

Deno.test("forget: a payment that is refunded later is still taken out of the books", async () => {
  using world = await createWorld();
  await makePeople(world);
  const { pseudonym } = await forgetWholly(world, { forfeit: true });
  const { value } = await world.deps.kv.get(accountKey(world.projectId, pseudonym));
  assert.equal(decodeAccount(value).balance, 0n);
  const [deposit] = (await checkBooks(world, pseudonym)).filter(({ kind }) => kind === "deposit");
  const { body } = await world.json("/v1/user/refund", { body: { activityId: deposit?.id } });
  assert.deepEqual([body.user, body.amount, body.shortfall], [pseudonym, "0", "5"]);
});

Deno.test("forget: a key that names the user percent-encoded is renamed, too", async () => {
  using world = await createWorld();
  const user = "Ada Lovelace";
  const { status } = await world.json("/v1/user/balance/deposit", {
    body: { user, amount: "5" },
    headers: { "idempotency-key": `order-${encodeURIComponent(user)}-1` },
  });
  assert.equal(status, 200);
  await deliver(world);
  await forgetWholly(world, { forfeit: true }, user);
  assert.deepEqual(await rowsNaming(world, user), []);
});

Deno.test("forget: a balance above the user's spend limits is forfeited as a whole", async () => {
  for (const limit of ["spendPerDay", "spendPerMonth"]) {
    using world = await createWorld({ project: { limits: { user: { [limit]: "1" } } } });
    await world.deposit(ada, "5");
    const { pseudonym } = await forgetWholly(world, { forfeit: true });
    const [deposit, forfeit] = await checkBooks(world, pseudonym);
    assert.deepEqual([deposit?.delta, forfeit?.delta, forfeit?.shortfall], ["5", "-5", "0"], limit);
    await world.clock.advance(61_000);
    assert.deepEqual((await verify(world)).faults, [], limit);
  }
});

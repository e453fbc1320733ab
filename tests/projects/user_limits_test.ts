import assert from "node:assert/strict";
import { chatBody, chatPath, checkBooks } from "../support/books.ts";
import { hiddenFields, signedIn, textOf } from "../support/console.ts";
import { ada, forgetWholly, rowsNaming } from "../support/forget.ts";
import { operate } from "../support/webhooks.ts";
import { createWorld, type World } from "../support/world.ts";

const patch = (world: World, limits: Record<string, unknown>) =>
  operate(world, "", { method: "PATCH", body: { limits } });

const ask = async (world: World, user: string) =>
  (await world.json(chatPath, { body: chatBody(user) })).status;

const charge = (world: World, user: string, amount: string) =>
  world.json("/v1/user/charge", { body: { user, amount } });

Deno.test("own limits: they replace those of every user, and only for that user", async () => {
  const limits = {
    user: { requestsPerMinute: 2, spendPerDay: "5" },
    users: { ada: { requestsPerMinute: 3 }, carl: { requestsPerMinute: "unlimited" } },
  };
  using world = await createWorld({ project: { limits } });
  for (const user of ["ada", "bob", "carl"]) await world.deposit(user, "20");
  const counts: Record<string, number> = {};
  for (const user of ["ada", "bob", "carl"]) {
    for (let asked = 0; asked < 5; asked++) {
      if (await ask(world, user) === 200) counts[user] = (counts[user] ?? 0) + 1;
    }
  }
  assert.deepEqual(counts, { ada: 3, bob: 2, carl: 5 });
  const refused = await charge(world, "ada", "6");
  assert.equal(refused.body.reason, "limit_reached", "the limit of every user stays for the rest");
  await checkBooks(world, "ada");
});

Deno.test("own limits: spending is bounded by them, and `unlimited` lifts the limit", async () => {
  using world = await createWorld({ project: { limits: { user: { spendPerDay: "5" } } } });
  for (const user of ["ada", "carl"]) await world.deposit(user, "20");
  await patch(world, {
    users: { ada: { spendPerDay: "1" }, carl: { spendPerDay: "unlimited" } },
  });
  assert.equal((await charge(world, "ada", "1.01")).body.reason, "limit_reached");
  assert.equal((await charge(world, "ada", "1")).status, 200);
  assert.equal((await charge(world, "carl", "19")).status, 200);
});

Deno.test("own limits: concurrency, and the request rate of refused requests", async () => {
  const users = { ada: { concurrent: 1 }, bob: { requestsPerMinute: 2 } };
  using world = await createWorld({ project: { limits: { users } } });
  await world.deposit("ada", "20");
  const statuses = await Promise.all([ask(world, "ada"), ask(world, "ada")]);
  assert.deepEqual(statuses.toSorted(), [200, 429]);
  const broke = [await ask(world, "bob"), await ask(world, "bob"), await ask(world, "bob")];
  assert.deepEqual(broke, [200, 200, 429], "two paywall messages, then the rate limit");
});

Deno.test("own limits: a merge patch removes one, and all of a user", async () => {
  using world = await createWorld();
  const users = async (): Promise<unknown> =>
    (await operate(world, "", { method: "GET" })).body.project.limits.users;
  await patch(world, { users: { ada: { concurrent: 2, spendPerDay: "3" }, bob: {} } });
  await patch(world, { users: { ada: { spendPerDay: null } } });
  assert.deepEqual(await users(), { ada: { concurrent: 2 }, bob: {} });
  await patch(world, { users: { ada: null } });
  assert.deepEqual(await users(), { bob: {} });
});

Deno.test("own limits: invalid ones are refused, and nothing changes", async () => {
  using world = await createWorld();
  const many = Object.fromEntries(Array.from({ length: 201 }, (_, n) => [`user ${n}`, {}]));
  const cases: Record<string, unknown>[] = [
    { ada: { concurrent: 0 } },
    { ada: { concurrent: "none" } },
    { ada: { spendPerDay: 5 } },
    { ada: { spendPerDay: "-1" } },
    { ada: { tokens: 1 } },
    { "line\nbreak": {} },
    JSON.parse('{"__proto__":{"concurrent":1}}'),
    { ["x".repeat(129)]: {} },
    many,
  ];
  for (const users of cases) {
    const { status, body } = await patch(world, { users });
    assert.equal(status, 400, JSON.stringify(users).slice(0, 80));
    assert.match(String(body.error.param), /^limits\.users/);
  }
  assert.equal((await operate(world, "", { method: "GET" })).body.project.limits.users, undefined);
});

Deno.test("own limits: an erasure removes them, and their name from the audit trail", async () => {
  using world = await createWorld();
  await world.deposit(ada, "1");
  const users = { [ada]: { spendPerDay: "3" }, "someone else": { spendPerDay: "4" } };
  await patch(world, { users });
  await patch(world, { users: { [ada]: { concurrent: 2 } } });
  assert.ok((await rowsNaming(world, ada)).some((row) => row.startsWith('["audit"')));
  const { erased } = await forgetWholly(world, { forfeit: true });
  assert.equal(erased["own limits"], 1);
  assert.deepEqual(await rowsNaming(world, ada), []);
  const { project } = (await operate(world, "", { method: "GET" })).body;
  assert.deepEqual(project.limits.users, { "someone else": { spendPerDay: "4" } });
});

Deno.test("own limits: set, changed and removed on the page of the user", async () => {
  using world = await createWorld({ project: { limits: { user: { spendPerDay: "5" } } } });
  await world.deposit("ada b", "20");
  const owner = await signedIn(world);
  const path = "users/limits?user=ada%20b";
  const page = async () => textOf((await owner.get("users/one?user=ada%20b")).html);
  assert.match(await page(), /Spending per day\s+every user\s+\$5\.00/);
  const fields = async () => hiddenFields((await owner.get(path)).html, "/users/limits");
  const slip = await owner.post("users/limits", { ...(await fields()), concurrent: "two" });
  assert.equal(slip.status, 400);
  assert.match(textOf(slip.html), /‘Concurrent responses’ must be a whole number of at least 1/);
  const form = { ...(await fields()), concurrent: "2", spendPerDay: "unlimited" };
  await owner.submit("users/limits", form);
  assert.match(await page(), /Concurrent responses\s+this user\s+2/);
  assert.match(await page(), /Spending per day\s+this user\s+no limit/);
  assert.match(textOf((await owner.get("limits")).html), /ada b\s+concurrent responses: 2/);
  await owner.submit("users/limits", await fields());
  assert.match(await page(), /Spending per day\s+every user\s+\$5\.00/);
});

Deno.test("own limits: saving the limits of every user keeps those of single users", async () => {
  using world = await createWorld({ project: { limits: { users: { ada: { concurrent: 2 } } } } });
  const owner = await signedIn(world);
  const form = { ...hiddenFields((await owner.get("limits")).html, "/limits"), reply: "message" };
  await owner.submit("limits", form);
  const { limits } = (await operate(world, "", { method: "GET" })).body.project;
  assert.deepEqual([limits.reply, limits.users], ["message", { ada: { concurrent: 2 } }]);
});

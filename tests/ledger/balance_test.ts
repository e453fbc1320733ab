import assert from "node:assert/strict";
import { toBytes } from "../../src/base/json.ts";
import { formatAmount, toAmount, unit, zero } from "../../src/base/money.ts";
import { emptyAccount, encodeAccount } from "../../src/ledger/account.ts";
import { holdsMoney } from "../../src/ledger/hold_sweep.ts";
import { accountKey, holdingKey } from "../../src/store/keys.ts";
import { chatBody, chatPath, storeAsText, storedAccount } from "../support/books.ts";
import { queueOf } from "../support/holders.ts";
import { fedStream } from "../support/upstream.ts";
import { put } from "../support/verify.ts";
import { createWorld } from "../support/world.ts";

Deno.test("balance: exact strings for programs, and one for people", async () => {
  using world = await createWorld();
  await world.deposit("ada", "12.345678901");
  const { status, body } = await world.json("/v1/user/balance?user=ada");
  assert.equal(status, 200);
  assert.deepEqual(body, {
    user: "ada",
    currency: "usd",
    balance: "12.345678901",
    held: "0",
    available: "12.345678901",
    balanceFormatted: "$12.34",
  });
});

Deno.test("balance: an unknown user's is zero, and reading it creates no account", async () => {
  using world = await createWorld();
  const before = await storeAsText(world);
  assert.deepEqual(await world.balance("nobody"), { balance: "0", held: "0", available: "0" });
  assert.equal(await storeAsText(world), before);
});

Deno.test("balance: shows what a running call holds, and releases it at its end", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const stream = fedStream();
  world.upstream.once(() => stream.response);
  const body = chatBody("ada", { stream: true });
  const answer = await world.call(chatPath, { body });
  // The prompt's bound is its bytes; 100 tokens of output at 0.000002.
  const bytes = JSON.stringify(body).length;
  const held = BigInt(bytes + 200) * 1000n;
  assert.deepEqual(await world.balance("ada"), {
    balance: "1",
    held: formatAmount(held),
    available: formatAmount(unit - held),
  });
  await answer.body?.cancel();
  await world.clock.advance(0);
  assert.equal((await world.balance("ada")).held, "0");
});

Deno.test("balance: is exact to the last digit, beyond what a double can hold", async () => {
  using world = await createWorld();
  for (let i = 0; i < 3; i++) await world.deposit("ada", "999999999999.999999999");
  const { body } = await world.json("/v1/user/balance?user=ada");
  assert.equal(body.balance, "2999999999999.999999997");
  assert.equal(body.balanceFormatted, "$2,999,999,999,999.99");
  await world.deposit("ada", "0.000000003");
  assert.equal((await world.balance("ada")).balance, "3000000000000");
});

Deno.test("balance: two users are never confused, however similar their ids", async () => {
  using world = await createWorld();
  const users = [
    "ada",
    "Ada",
    "ada ",
    " ada",
    "é",
    "e\u0301",
    "a/b",
    "a%2Fb",
    "1",
    "01",
    "__proto__",
  ];
  for (const [index, user] of users.entries()) await world.deposit(user, String(index + 1));
  for (const [index, user] of users.entries()) {
    assert.equal((await world.balance(user)).balance, String(index + 1), JSON.stringify(user));
  }
});

Deno.test("balance: a user has one for each project", async () => {
  using world = await createWorld();
  const other = await world.makeProject({ currency: "jpy" });
  await world.deposit("ada", "5");
  const { body } = await world.json("/v1/user/balance?user=ada", { key: other.apiKey });
  assert.equal(body.balance, "0");
  assert.equal(body.currency, "jpy");
  assert.equal(body.balanceFormatted, "¥0");
});

Deno.test("balance: the top-up link is for the requested user", async () => {
  using world = await createWorld();
  const { status, body } = await world.json("/v1/user/balance/topup?user=ada");
  assert.equal(status, 200);
  assert.deepEqual(Object.keys(body), ["url"]);
  const page = await world.call(new URL(body.url).pathname, { key: null });
  assert.equal(page.status, 200);
  assert.match(await page.text(), /\bada\b/);
});

Deno.test("balance: whether a user's money is held is what the accounts say, not the index", async () => {
  using world = await createWorld();
  const list = async (projectId: string, user: string) => {
    await put(world, holdingKey(projectId, user, null), toBytes({ ref: { projectId, user } }));
  };
  for (let n = 0; n < 450; n++) await list("another", `user ${n}`);
  await list(world.projectId, "ada");
  const services = { kv: world.deps.kv, queue: queueOf(world) };
  const holds = (user: string) => holdsMoney(services, { projectId: world.projectId, user });
  assert.equal(await holds("ada"), false, "listed, and holds nothing any more");
  const one = toAmount(unit);
  const hold = {
    id: "req_1",
    amount: one,
    used: zero,
    expiresAt: world.clock.now() + 1_000,
    connectionId: null,
    budgets: [],
    holder: null,
  };
  const account = { ...emptyAccount(), balance: one, holds: [hold], held: one, listed: true };
  await put(world, accountKey(world.projectId, "ada"), encodeAccount(account));
  await list(world.projectId, "ada");
  assert.equal(await holds("ada"), true);
  assert.equal(await holds("bob"), false);
  world.clock.set(1_000);
  assert.equal(await holds("ada"), false, "it has ended");
  assert.equal((await storedAccount(world, "ada")).holds.length, 0);
});

import assert from "node:assert/strict";
import fc from "fast-check";
import { fromDecimal, toAmount, zero } from "../../src/base/money.ts";
import {
  type Account,
  availableIn,
  decodeAccount,
  encodeAccount,
} from "../../src/ledger/account.ts";
import { createAccountQueue } from "../../src/ledger/account_queue.ts";
import { createTopUsers } from "../../src/summaries/top_users.ts";
import { createProjectCache } from "../../src/projects/project_cache.ts";
import { checkBooks } from "../support/books.ts";
import { always, wellFormedText } from "../support/property.ts";
import { accountKey } from "../../src/store/keys.ts";
import { emptyWrite } from "../../src/store/kv.ts";
import { adminKey, createWorld } from "../support/world.ts";
import type { EarlierCount } from "../../src/ledger/earlier_counts.ts";
import { noOthers } from "../support/holders.ts";

const origin = { trigger: { source: "api", actorType: "paywall-owner", actorId: "key" } } as const;

/** One operation on an account; `fails` says where it throws, if it does. */
const operation = fc.record({
  amount: fc.bigInt({ min: 1n, max: 10n ** 12n }).map(toAmount),
  credits: fc.boolean(),
  fails: fc.constantFrom("never", "never", "never", "before", "half way"),
  /** Whether it waits for the operations before it, or runs with them. */
  alone: fc.boolean(),
});

Deno.test("account: an operation that fails half way leaves nothing behind, and harms no other", () =>
  always(
    30,
    fc.asyncProperty(fc.array(operation, { maxLength: 12 }), async (operations) => {
      using world = await createWorld();
      const queue = createAccountQueue({ ...world.deps, holders: noOthers }, {
        projectCache: createProjectCache(world.deps),
        topUsers: createTopUsers(world.deps),
      });
      const ref = { projectId: world.projectId, user: "ada" };
      let expected = 0n;
      const running = operations.map(async ({ amount, credits, fails, alone }, at) => {
        if (alone) await world.clock.sleep(0);
        const work = queue.run(ref, {
          reads: [],
          estimatedBytes: 100,
          apply(tx) {
            if (fails === "before") throw new Error(`operation ${at}`);
            const available = availableIn(tx.account);
            const taken = credits ? -amount : amount < available ? amount : available;
            if (credits) tx.credit(amount, { kind: "deposit" }, origin);
            else tx.debit(amount, { kind: "charge" }, origin);
            if (fails === "half way") throw new Error(`operation ${at}`);
            return { value: taken };
          },
        });
        if (fails !== "never") return await assert.rejects(work, { message: `operation ${at}` });
        const taken = await work;
        expected -= taken;
      });
      await Promise.all(running);
      await checkBooks(world, "ada");
      assert.equal(fromDecimal((await world.balance("ada")).balance), expected);
    }),
  ));

const amount = fc.bigInt({ min: 0n, max: 10n ** 30n }).map(toAmount);
const hold = fc.record({
  id: fc.ulid().map((id) => `req_${id}`),
  amount,
  used: amount,
  expiresAt: fc.nat(),
  connectionId: fc.option(fc.ulid().map((id) => `con_${id}`), { nil: null }),
  budgets: fc.array(fc.tuple(fc.ulid().map((id) => `key_${id}`), amount), { maxLength: 2 }),
  holder: fc.option(fc.ulid().map((id) => `prc_${id}`), { nil: null }),
}, { noNullPrototype: true });

const earlier: fc.Arbitrary<EarlierCount> = fc.tuple(
  fc.constantFrom("2026-10", "2026-11-21"),
  amount.map(String),
  fc.nat(),
  fc.nat(),
);
const use = fc.record(
  {
    month: fc.constantFrom("2026-11", "1999-01"),
    requests: fc.nat(),
    tokens: fc.nat(),
    spent: amount,
    day: fc.constantFrom("2026-11-23", "1999-01-31"),
    daySpent: amount,
    hour: fc.nat(),
    hourSpent: amount,
    earlierMonths: fc.array(earlier, { maxLength: 3 }),
    earlierDays: fc.array(earlier, { maxLength: 3 }),
  },
  { noNullPrototype: true },
);

Deno.test("account: any account is read as it was stored, and held is the sum of its holds", () =>
  always(
    500,
    fc.property(
      amount,
      fc.nat(),
      fc.option(wellFormedText, { nil: null }),
      fc.array(hold, { maxLength: 5 }),
      fc.boolean(),
      fc.option(use, { nil: null }),
      (available, seq, last, holds, listed, use) => {
        const held = holds.reduce((sum, each) => toAmount(sum + each.amount), zero);
        const balance = toAmount(available + held);
        const counters = null;
        const account: Account = {
          balance,
          seq,
          last,
          holds,
          held,
          listed,
          counters,
          use,
          formerly: null,
          closed: false,
        };
        assert.deepEqual(decodeAccount(encodeAccount(account)), account);
      },
    ),
  ));

const sound = () => ({ ...decodeAccount(null), balance: toAmount(10n) });
const holdOf = (amount: bigint, used = 0n) => ({
  id: "req_1",
  amount: toAmount(amount),
  used: toAmount(used),
  expiresAt: 1,
  connectionId: null,
  budgets: [],
  holder: null,
});
const unsound: Record<string, Partial<Account>> = {
  "a balance below zero": { balance: toAmount(-1n) },
  "more held than there is": { holds: [holdOf(11n)], held: toAmount(11n) },
  "a sum that is not that of its holds": { holds: [holdOf(3n)], held: toAmount(2n) },
  "a hold below zero": { holds: [holdOf(-1n)], held: toAmount(-1n) },
  "a use below zero": { holds: [holdOf(1n, -1n)], held: toAmount(1n) },
};

for (const [name, fault] of Object.entries(unsound)) {
  Deno.test(`account: one with ${name} is never written`, () => {
    assert.throws(() => encodeAccount({ ...sound(), ...fault }), /holds|hold of|balance/);
  });
}

Deno.test("account: a stored account that is unsound accepts no operation, and verify reports it", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const key = accountKey(world.projectId, "ada");
  const row = await world.deps.kv.get(key);
  const stored = JSON.parse(new TextDecoder().decode(row.value ?? assert.fail()));
  const damaged = new TextEncoder().encode(JSON.stringify({ ...stored, balance: "-5" }));
  const write = { ...emptyWrite(), sets: [{ key, value: damaged }] };
  await world.deps.committer.commit(write);
  using other = await createWorld({ shareWith: world });
  const { status, body } = await other.json("/v1/user/charge", {
    body: { user: "ada", amount: "0.1" },
  });
  assert.deepEqual([status, body.error.code], [500, "internal_error"]);
  const { body: { faults } } = await other.json("/v1/admin/verify", { key: adminKey });
  assert.ok(faults.some((fault: string) => fault.includes("balance of -0.000000005")), faults);
  assert.deepEqual((await world.deps.kv.get(key)).value, damaged);
});

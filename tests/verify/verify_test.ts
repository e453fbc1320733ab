import assert from "node:assert/strict";
import { toBytes } from "../../src/base/json.ts";
import type { Entry } from "../../src/ledger/entry.ts";
import {
  accountKey,
  entryKey,
  holdingKey,
  idempotencyKey,
  refundedKey,
} from "../../src/store/keys.ts";
import { chatStream, openReader } from "../support/chat.ts";
import {
  type Busy,
  type Damage,
  edit,
  makeBusy,
  move,
  put,
  remove,
  testDamage,
  verify,
  verifyPath,
} from "../support/verify.ts";
import { allow, charge, Device, pay, sharedWorld } from "../support/wallets.ts";
import { adminKey, createWorld, type World } from "../support/world.ts";

type StoredAccount = { balance: string; seq: number; last: string; holds: unknown[] };

Deno.test("verify: a busy ledger is sound, while deliveries are pending, done and failed", async () => {
  using world = await createWorld();
  const { first } = await makeBusy(world);
  assert.deepEqual((await verify(world)).faults, []);
  await move(world, "/v1/user/refund", { user: "ada", activityId: first });
  assert.notEqual((await world.activities("ada"))[0]?.shortfall, "0");
  await world.clock.advance(120_000);
  const { checked, faults } = await verify(world);
  assert.deepEqual(faults, []);
  const { accounts, entries, entriesWithKey, idempotencyRecords, deliveries, dueRows } = checked;
  assert.deepEqual({ accounts, entries, entriesWithKey, idempotencyRecords }, {
    accounts: 2,
    entries: 10,
    entriesWithKey: 4,
    idempotencyRecords: 4,
  });
  assert.ok(deliveries && deliveries > 10, `${deliveries}`);
  assert.equal(dueRows, 2, "two deliveries wait for a retry");
});

Deno.test("verify: wallets with entries of several projects are sound", async () => {
  using world = await sharedWorld();
  const other = await world.makeProject({ name: "Other", mode: "shared" });
  const device = new Device(world);
  await allow(device);
  await allow(device, { user: "ada-2", key: other.apiKey });
  await pay(world);
  await charge(world, "1");
  await charge(world, "2", { user: "ada-2", key: other.apiKey });
  const charged = await move(world, "/v1/user/charge", { user: "ada", amount: "3" }, "key-1");
  await move(world, "/v1/user/refund", { user: "ada", activityId: charged, amount: "1" }, "key-2");
  await using _ = await startAnswer(world);
  await world.clock.advance(5_000);
  const { checked, faults } = await verify(world);
  assert.deepEqual(faults, []);
  const { accounts, entries, holds, idempotencyRecords } = checked;
  assert.deepEqual({ accounts, entries, holds, idempotencyRecords }, {
    accounts: 1,
    entries: 5,
    holds: 1,
    idempotencyRecords: 3,
  });
});

Deno.test("verify: long accounts are verified page by page, while money moves between the pages", async () => {
  using world = await createWorld();
  const amount = "1";
  const ids: string[] = [];
  for (let n = 0; n < 1_500; n++) {
    ids.push(await move(world, "/v1/user/balance/deposit", { user: "ada", amount }));
  }
  await world.clock.advance(120_000);
  let cursor = "";
  let entries = 0;
  for (let n = 0; cursor !== null; n++) {
    const path = verifyPath + (cursor && `?cursor=${cursor}`);
    const { body } = await world.json(path, { key: adminKey });
    assert.deepEqual(body.faults, []);
    entries += body.checked.entries ?? 0;
    cursor = body.nextCursor;
    // Of an entry that the scan has not reached.
    if (n === 0) assert.ok(entries > 100 && entries < 1_200, `${entries} on the first page`);
    const refund = { user: "ada", activityId: ids[10], amount: "0.1" };
    if (n < 3) await move(world, "/v1/user/refund", refund);
    // An account that appears after all accounts were scanned does not restart the scan.
    if (n === 1) await world.deposit("zoe", "1");
    assert.ok(n < 50, "it was due an end");
  }
  assert.equal(entries, 1_500);
  assert.deepEqual((await verify(world)).faults, []);
});

Deno.test("verify: more refunds than a cursor carries are counted, not hidden", async () => {
  using world = await createWorld();
  const ids: string[] = [];
  const deposit = () => move(world, "/v1/user/balance/deposit", { user: "ada", amount: "1" });
  for (let n = 0; n < 120; n++) ids.push(await deposit());
  for (const activityId of ids) {
    await move(world, "/v1/user/refund", { user: "ada", activityId, amount: "0.5" });
  }
  for (let n = 0; n < 880; n++) await deposit();
  const { checked, faults } = await verify(world);
  assert.deepEqual(faults, []);
  assert.equal(checked.accountsWithRefundsNotSummed, 1);
});

/** A response that continues until it is released. */
async function startAnswer(world: World): Promise<AsyncDisposable> {
  world.upstream.once(() => new Response(new ReadableStream(), eventStream));
  const reader = openReader(await chatStream(world));
  return { [Symbol.asyncDispose]: () => reader.leave() };
}

const eventStream = { headers: { "content-type": "text/event-stream" } };

const ada = ({ projectId }: World) => accountKey(projectId, "ada");
const ofAda = (rest: string) => ({ projectId }: World) =>
  new RegExp(`^account ${projectId}/ada ${rest}`);

function editEntry(id: keyof Busy, change: (entry: Entry) => Partial<Entry>) {
  return (world: World, busy: Busy) =>
    edit<Entry>(world, entryKey(world.projectId, busy[id]), (entry) => ({
      ...entry,
      ...change(entry),
    }));
}

/** Lets the sweep check Ada's holds. */
function putHolding(world: World): Promise<void> {
  const ref = { projectId: world.projectId, user: "ada" };
  return put(world, holdingKey(world.projectId, "ada", null), toBytes({ ref }));
}

const entryTold = (id: keyof Busy, rest: string) => ({ projectId }: World, busy: Busy) =>
  new RegExp(`^account ${projectId}/ada: entry ${busy[id]}${rest}`);

const accountDamages: Damage[] = [
  [
    "a balance that its entries do not sum to",
    (world) => edit<StoredAccount>(world, ada(world), (was) => ({ ...was, balance: "1" })),
    ({ projectId }) =>
      new RegExp(
        `^account ${projectId}/ada: entry act_\\S+ has balanceAfter .*, but should have 0.000000001$`,
      ),
  ],
  [
    "a balance below zero",
    (world) => edit<StoredAccount>(world, ada(world), (was) => ({ ...was, balance: "-5" })),
    ofAda("has a balance of -0.000000005"),
  ],
  [
    "a seq that its entries do not have",
    (world) => edit<StoredAccount>(world, ada(world), (was) => ({ ...was, seq: was.seq + 1 })),
    ({ projectId }) =>
      new RegExp(`${projectId}/ada: entry act_\\S+ has number 8, but should have 9`),
  ],
  [
    "a last entry that is not there",
    (world) => edit<StoredAccount>(world, ada(world), (was) => ({ ...was, last: "act_GONE" })),
    ({ projectId }) => new RegExp(`${projectId}/ada: entry act_GONE, number 8, is missing`),
  ],
  [
    "a balance that is less than what is held",
    async (world) => {
      const holds = [["req_1", "9000000000000", world.clock.now() + 60_000, "0"]];
      await putHolding(world);
      await edit<StoredAccount>(world, ada(world), (was) => ({ ...was, holds }));
    },
    ofAda("holds 9000 of "),
  ],
  [
    "a hold that has long expired",
    async (world) => {
      const holds = [["req_1", "1", world.clock.now() - 3_600_000, "0"]];
      await putHolding(world);
      await edit<StoredAccount>(world, ada(world), (was) => ({ ...was, holds }));
    },
    ofAda("has hold req_1, which is still there 3600 s after its expiry"),
  ],
  [
    "a hold that no sweep would find",
    async (world) => {
      const holds = [["req_1", "1", world.clock.now() + 60_000, "0"]];
      await remove(world, holdingKey(world.projectId, "ada", null));
      await edit<StoredAccount>(world, ada(world), (was) => ({ ...was, holds }));
    },
    ofAda("has holds, but is missing in the hold index"),
  ],
  [
    "a balance that no entry gave",
    (world) => {
      const account = { balance: "1000000000", seq: 0, last: null, holds: [], listed: false };
      return put(world, accountKey(world.projectId, "zoe"), toBytes(account));
    },
    ({ projectId }) => new RegExp(`^account ${projectId}/zoe has 1, but no entry`),
  ],
  [
    "an account that cannot be read",
    (world) => put(world, ada(world), new TextEncoder().encode("{")),
    ofAda("cannot be read"),
  ],
  [
    "an account that is gone",
    (world) => remove(world, ada(world)),
    ({ projectId }) => new RegExp(`owner ${projectId}: 9 entries are stored, .* lead to 1$`),
  ],
];

const entryDamages: Damage[] = [
  [
    "an entry that is gone",
    (world, { charged }) => remove(world, entryKey(world.projectId, charged)),
    entryTold("charged", ", number 3, is missing"),
  ],
  [
    "an entry of another amount",
    editEntry("charged", () => ({ delta: "-1" })),
    entryTold("second", " has balanceAfter 12.5, but should have "),
  ],
  [
    "an entry with another balance after it",
    editEntry("charged", () => ({ balanceAfter: "10.6" })),
    entryTold("charged", " has balanceAfter 10.6, but should have 10.5"),
  ],
  [
    "a first entry that starts from something",
    editEntry("first", () => ({ delta: "4" })),
    entryTold("first", " is the first entry, but its delta 4 "),
  ],
  [
    "an entry below zero",
    editEntry("charged", () => ({ balanceAfter: "-1" })),
    entryTold("charged", " leaves -1, less than zero"),
  ],
  [
    "an entry with a number twice",
    editEntry("charged", () => ({ seq: 2 })),
    entryTold("charged", " has number 2, but should have 3"),
  ],
  [
    "an entry that names another before it",
    editEntry("charged", (_) => ({ prev: null })),
    entryTold("charged", " is number 3 and names none as the previous entry"),
  ],
  [
    "an entry outside of the account, as a lost update leaves one",
    async (world, { charged }) => {
      const { value } = await world.deps.kv.get(entryKey(world.projectId, charged));
      const id = `${charged.slice(0, -1)}~`;
      const twin = { ...JSON.parse(new TextDecoder().decode(value ?? assert.fail())), id };
      await put(
        world,
        entryKey(world.projectId, id),
        new TextEncoder().encode(JSON.stringify(twin)),
      );
    },
    (_, { charged }) => new RegExp(`entries ${charged} and \\S+ follow the same entry`),
  ],
];

const recordDamages: Damage[] = [
  [
    "an idempotency record of no entry",
    (world) =>
      edit<{ activityId: string }>(
        world,
        idempotencyKey(world.projectId, "deposit", "order-1"),
        (record) => ({ ...record, activityId: "act_GONE" }),
      ),
    ({ projectId }) =>
      new RegExp(`key order-1 of a deposit in ${projectId} names entry act_GONE, .* missing`),
  ],
  [
    "an idempotency record of another entry",
    (world, { second }) =>
      edit<{ activityId: string }>(
        world,
        idempotencyKey(world.projectId, "deposit", "order-1"),
        (record) => ({ ...record, activityId: second }),
      ),
    (_, { second }) =>
      new RegExp(`key order-1 .* names entry ${second}, which is a deposit with key null`),
  ],
  [
    "an entry whose idempotency record is gone",
    (world) => remove(world, idempotencyKey(world.projectId, "charge", "charge-1")),
    (_, { charged }) => new RegExp(`entry ${charged} has the key charge-1, .* names no entry`),
  ],
  [
    "a refunded total that its refunds do not sum to",
    (world, { charged }) => edit(world, refundedKey(world.projectId, charged), () => "0.7"),
    entryTold("charged", " has refunds of 0.75, but a recorded total of 0.7"),
  ],
  [
    "a refunded total that is gone",
    (world, { charged }) => remove(world, refundedKey(world.projectId, charged)),
    entryTold("charged", " has refunds of 0.75, but a recorded total of 0"),
  ],
  [
    "more refunded than there was",
    (world, { charged }) => edit(world, refundedKey(world.projectId, charged), () => "2.1"),
    entryTold("charged", " is refunded with 2.1, which is more than 2"),
  ],
];

for (const damage of [...accountDamages, ...entryDamages, ...recordDamages]) testDamage(damage);

Deno.test("verify: only the operator may call it, and only with valid cursors", async () => {
  using world = await createWorld();
  for (const key of [null, world.apiKey, "wrong"]) {
    const { status, body } = await world.json(verifyPath, { key });
    assert.deepEqual([status, body.error.code], [401, "invalid_api_key"]);
  }
  const cursorOf = (value: unknown) => btoa(JSON.stringify(value));
  const none = { scan: "ledger", place: {} };
  for (
    const cursor of [
      "x",
      "%00",
      "a".repeat(40_000),
      cursorOf(null),
      cursorOf({ scan: "nothing", place: null }),
      cursorOf(none),
      cursorOf({ scan: "deliveries", place: ["a".repeat(2_000)] }),
      cursorOf({ scan: "deliveries", place: ["a", "b", "c", "d", "e"] }),
      cursorOf({ scan: "deliveries", place: "delivery" }),
    ]
  ) {
    const path = `${verifyPath}?cursor=${encodeURIComponent(cursor)}`;
    const { status, body } = await world.json(path, { key: adminKey });
    assert.deepEqual([status, body.error.param], [400, "cursor"], cursor.slice(0, 80));
  }
});

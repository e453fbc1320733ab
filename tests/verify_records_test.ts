import assert from "node:assert/strict";
import { toBytes } from "../src/base/json.ts";
import type { Entry } from "../src/ledger/entry.ts";
import { accountKey, entryKey, idempotencyKey, refundedKey } from "../src/store/keys.ts";
import {
  type Busy,
  type Damage,
  edit,
  makeBusy,
  put,
  testDamage,
  verify,
} from "./support/verify.ts";
import { createWorld, type World } from "./support/world.ts";

type Fields = Record<string, unknown>;

async function editEntry(world: World, id: string, change: (entry: Entry) => Fields) {
  const key = entryKey(world.projectId, id);
  await edit<Fields & Entry>(world, key, (entry) => ({ ...entry, ...change(entry) }));
}

/** Edits the entry of that name; an undefined field is removed. */
const ofEntry = (name: keyof Busy, change: Fields) => (world: World, busy: Busy) =>
  editEntry(world, busy[name], () => change);

const unreadable = (name: keyof Busy) => ({ projectId }: World, busy: Busy) =>
  new RegExp(`^owner ${projectId}: entry ${busy[name]} cannot be read$`);

const told = (rest: string) => ({ projectId }: World) =>
  new RegExp(`^account ${projectId}/ada: entry act_\\w+ ${rest}`);

const unreadableDamages: Damage[] = [
  ["an entry without its id", ofEntry("charged", { id: undefined }), unreadable("charged")],
  ["an entry of an unknown kind", ofEntry("charged", { kind: "gift" }), unreadable("charged")],
  ["an entry of no amount", ofEntry("charged", { delta: "1e3" }), unreadable("charged")],
  [
    "an entry before it that no cursor could carry",
    ofEntry("charged", { prev: "a".repeat(60_000) }),
    unreadable("charged"),
  ],
  [
    "an entry that is cut off",
    (world, { charged }) =>
      put(world, entryKey(world.projectId, charged), new TextEncoder().encode('{"id":')),
    unreadable("charged"),
  ],
  [
    "an account without its last entry",
    (world) =>
      edit<Fields>(
        world,
        accountKey(world.projectId, "ada"),
        (account) => ({ ...account, last: undefined }),
      ),
    ({ projectId }) => new RegExp(`^account ${projectId}/ada cannot be read$`),
  ],
  [
    "an idempotency record that cannot be read",
    (world) =>
      edit<Fields>(
        world,
        idempotencyKey(world.projectId, "deposit", "order-1"),
        (record) => ({ ...record, activityId: {} }),
      ),
    ({ projectId }) =>
      new RegExp(`^idempotency key order-1 of a deposit in ${projectId} cannot be read$`),
  ],
  [
    "a refunded total that cannot be read",
    (world, { charged }) => put(world, refundedKey(world.projectId, charged), toBytes(0.75)),
    told("has a total of its refunds that cannot be read$"),
  ],
];

unreadableDamages.forEach(testDamage);

Deno.test("verify: what is behind a record that cannot be read is looked at all the same", async () => {
  using world = await createWorld();
  const { projectId } = world;
  const { first, charged } = await makeBusy(world);
  await world.deposit("zoe", "1");
  await world.clock.advance(61_000);
  await edit<Fields>(world, accountKey(projectId, "bob"), (was) => ({ ...was, last: 5 }));
  await edit<Fields>(world, accountKey(projectId, "zoe"), (was) => ({ ...was, balance: "2" }));
  await editEntry(world, charged, () => ({ id: undefined }));
  await editEntry(world, first, () => ({ delta: "4" }));
  const { faults } = await verify(world);
  assert.deepEqual(faults.map((fault) => fault.replace(/act_\w+/, "…")), [
    `account ${projectId}/ada: entry … is the first: its delta 4 is not the balance after it`,
    `account ${projectId}/bob cannot be read`,
    `account ${projectId}/zoe: entry … has balanceAfter 1, not 0.000000002`,
    `owner ${projectId}: entry … cannot be read`,
    `owner ${projectId}: 10 entries are stored, its accounts lead to 9`,
    `idempotency key charge-1 of a charge in ${projectId} names entry …, which cannot be read`,
  ]);
});

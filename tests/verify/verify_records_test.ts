import assert from "node:assert/strict";
import { toBytes } from "../../src/base/json.ts";
import type { Entry } from "../../src/ledger/entry.ts";
import {
  accountKey,
  entryKey,
  holdingKey,
  idempotencyKey,
  refundedKey,
  stripePaymentKey,
} from "../../src/store/keys.ts";
import { chat, chatStream, openReader, usageOf } from "../support/chat.ts";
import { forgetWholly } from "../support/forget.ts";
import { chunk, completion, sse, usage, usageChunk } from "../support/upstream.ts";
import {
  type Busy,
  type Damage,
  edit,
  makeBusy,
  put,
  testDamage,
  verify,
} from "../support/verify.ts";
import { allow, charge, Device, pay, sharedWorld } from "../support/wallets.ts";
import { createWorld, testPricing, type World } from "../support/world.ts";

type Fields = Record<string, unknown>;

async function editEntry(world: World, id: string, change: (entry: Entry) => Fields) {
  const key = entryKey(world.projectId, id);
  await edit<Fields & Entry>(world, key, (entry) => ({ ...entry, ...change(entry) }));
}

async function answerId(world: World): Promise<string> {
  return (await usageOf(world))[0]?.id ?? assert.fail("there is an answer");
}

/** Edits the entry of that name; an undefined field is removed. */
const ofEntry = (name: keyof Busy, change: Fields) => (world: World, busy: Busy) =>
  editEntry(world, busy[name], () => change);

const ofAnswer = (change: (usage: Fields & { price: Fields }) => Fields) => async (world: World) =>
  editEntry(world, await answerId(world), ({ usage }) => ({
    usage: { ...usage, ...change({ ...(usage ?? assert.fail()) }) },
  }));

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
    told("has an unreadable total of its refunds$"),
  ],
];

const kindDamages: Damage[] = [
  [
    "a refund of nothing",
    ofEntry("charged", { kind: "refund" }),
    told("is a refund of no entry$"),
  ],
  [
    "a charge that refunds",
    ofEntry("charged", { refundedActivityId: "act_1" }),
    told("is a charge of entry act_1$"),
  ],
  [
    "an answer that has become a charge",
    async (world) => editEntry(world, await answerId(world), () => ({ kind: "charge" })),
    told("is a charge with a usage$"),
  ],
  [
    "a charge that has become an answer",
    ofEntry("charged", { kind: "usage" }),
    told("is a usage without its usage$"),
  ],
  [
    "a deposit that was short",
    ofEntry("second", { shortfall: "5" }),
    told("is a deposit with a shortfall of 5$"),
  ],
  [
    "a charge that was short",
    ofEntry("charged", { shortfall: "5" }),
    told("is a charge with a shortfall of 5$"),
  ],
];

const costDamages: Damage[] = [
  [
    "an answer of more tokens than were charged",
    ofAnswer(() => ({ outputTokens: 1_000_005 })),
    told("was due 0.00002, but its tokens cost 2.00002$"),
  ],
  [
    "an answer of another price than was charged",
    ofAnswer(({ price }) => ({ price: { ...price, requestFee: "0.5" } })),
    told("was due 0.00002, but its tokens cost 0.50002$"),
  ],
  [
    "an answer that was short of what it did not cost",
    async (world) => editEntry(world, await answerId(world), () => ({ shortfall: "1" })),
    told("was due 1.00002, but its tokens cost 0.00002$"),
  ],
];

const holdingDamages: Damage[] = [
  [
    "a row that of the hold index names another account",
    (world) => {
      const ref = { projectId: world.projectId, user: "adx" };
      return put(world, holdingKey(world.projectId, "ada", null), toBytes({ ref }));
    },
    ({ projectId }) =>
      new RegExp(`^row holding ${projectId} ada of the hold index names ${projectId} adx$`),
  ],
  [
    "a row that leads the sweep nowhere",
    (world) => put(world, holdingKey(world.projectId, "ada", null), toBytes({})),
    ({ projectId }) => new RegExp(`^row holding ${projectId} ada cannot be read$`),
  ],
];

[unreadableDamages, kindDamages, costDamages, holdingDamages].flat().forEach(testDamage);

Deno.test("verify: what follows an unreadable record is checked too", async () => {
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
  assert.deepEqual(faults.map((fault) => fault.replace(/act_\w+/, "…")).sort(), [
    `account ${projectId}/ada: entry … is the first entry, but its delta 4 is not its balanceAfter`,
    `account ${projectId}/bob cannot be read`,
    `account ${projectId}/zoe: entry … has balanceAfter 1, but should have 0.000000002`,
    `idempotency key charge-1 of a charge in ${projectId} names entry …, which cannot be read`,
    `owner ${projectId}: 10 entries are stored, but its accounts lead to 9`,
    `owner ${projectId}: entry … cannot be read`,
  ]);
});

Deno.test("verify: responses of every price cost what their entries state, also of erased users", async () => {
  const models = { ...testPricing.models, dear: { input: "0.000000001", output: "70000" } };
  const pricing = { catalogue: true, markupPercent: "33.3", requestFee: "0.001", models };
  using world = await createWorld({ project: { pricing } });
  await world.deposit("ada", "100");
  const ask = async (fields: Fields, used: Fields | null) => {
    world.upstream.once(() => completion({ usage: used, model: fields.model ?? "test-model" }));
    assert.equal((await chat(world, fields)).status, 200);
  };
  const details = { prompt_tokens_details: { cached_tokens: 7, cache_write_tokens: 3 } };
  await ask({}, usage(13, 7, details));
  await ask({ model: "claude-sonnet-4-5" }, usage(13, 7, details));
  await ask({ model: "claude-sonnet-4-5", messages: longPrompt }, usage(210_001, 7));
  await ask({}, null);
  await ask({}, usage(10, 0));
  world.upstream.once(() =>
    completion({ choices: [{ message: { content: "" } }], usage: usage(10, 0) })
  );
  await chat(world);
  await ask({ model: "dear", max_tokens: 16 }, usage(10, 5_000));
  world.upstream.once(() => sse([chunk({ content: "Hi" }), usageChunk(usage(12, 30))]));
  const reader = openReader(await chatStream(world));
  while (await reader.read() !== null);
  await world.clock.advance(61_000);
  const answers = await usageOf(world);
  assert.ok(answers.some(({ shortfall }) => shortfall !== "0"), "one was dearer than its hold");
  assert.ok(answers.some(({ usage }) => usage.source === "estimated"));
  assert.ok(answers.some(({ usage }) => usage.outputTokens === 0));
  const before = await verify(world);
  assert.deepEqual([before.faults, before.checked.entries], [[], answers.length + 1]);
  await forgetWholly(world, { forfeit: true }, "ada");
  assert.deepEqual((await verify(world)).faults, []);
});

const longPrompt = [{ role: "user", content: "word ".repeat(150_000) }];

Deno.test("verify: a Stripe payment leads to its deposit", async () => {
  using world = await sharedWorld();
  await allow(new Device(world));
  const { session } = await pay(world);
  const charged = (await charge(world, "1")).activityId;
  await world.clock.advance(61_000);
  const sound = await verify(world);
  assert.deepEqual([sound.faults, sound.checked.payments], [[], 1]);
  const key = stripePaymentKey("instance", session.payment_intent);
  const { value } = await world.deps.kv.get(key);
  for (
    const [change, wanted] of [
      [{ activityId: charged }, `names entry ${charged}, which is not its deposit`],
      [{ activityId: "act_GONE" }, "names entry act_GONE, which is missing"],
      [{ ref: { projectId: world.projectId } }, "cannot be read"],
      [{ since: { taken: "x" } }, "cannot be read"],
    ] as const
  ) {
    await edit<Fields>(world, key, (payment) => ({ ...payment, ...change }));
    const { faults } = await verify(world);
    assert.deepEqual(faults, [`payment ${session.payment_intent} at instance ${wanted}`]);
    await put(world, key, value ?? assert.fail());
  }
});

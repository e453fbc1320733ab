import assert from "node:assert/strict";
import { formatAmount, fromDecimal, toAmount } from "../../src/base/money.ts";
import { chat } from "../support/chat.ts";
import { signedIn, textOf } from "../support/console.ts";
import { forgetWholly } from "../support/forget.ts";
import { completion, usage } from "../support/upstream.ts";
import { adminKey, type Body, createWorld, type World } from "../support/world.ts";

// The guide to the console says what revenue is: use, less what was given back for it.

const money = (world: World, verb: string, body: Record<string, unknown>) =>
  world.json(`/v1/user/${verb}`, { body });

async function summaryOf(world: World): Promise<Body> {
  await world.app.flush();
  const path = `/v1/admin/projects/${world.projectId}/summary`;
  return (await world.json(path, { key: adminKey })).body;
}

const charge = (world: World, amount: string, reason?: string) =>
  money(world, "charge", { user: "ada", amount, ...(reason && { reason }) });

async function refunded(world: World, amount: string, reason?: string): Promise<void> {
  const { body } = await charge(world, amount, reason);
  await money(world, "refund", { user: "ada", activityId: body.activityId });
}

/** Each moves money; `revenue` and `other` are what it adds to revenue and to other charges. */
const moves: [what: string, move: (world: World) => Promise<unknown>, string, string][] = [
  ["a deposit", (world) => world.deposit("ada", "3"), "0", "0"],
  ["a response", (world) => chat(world), "0.0012", "0"],
  ["a charge", (world) => charge(world, "0.5"), "0.5", "0"],
  ["a charge whose reason is its default", (world) => charge(world, "0.5", "charge"), "0.5", "0"],
  ["a correction", (world) => charge(world, "0.5", "correction"), "0", "0.5"],
  ["money that moved elsewhere", (world) => charge(world, "0.5", "transfer"), "0", "0.5"],
  ["a refunded charge", (world) => refunded(world, "0.5"), "0", "0"],
  ["a refunded correction", (world) => refunded(world, "0.5", "correction"), "0", "0"],
  ["a forfeited balance", (world) => forgetWholly(world, { forfeit: true }, "bob"), "0", "2"],
  [
    "a refunded deposit",
    async (world) => {
      const { body } = await money(world, "balance/deposit", { user: "ada", amount: "1" });
      await money(world, "refund", { user: "ada", activityId: body.activityId });
    },
    "0",
    "0",
  ],
  [
    "a response that was given back in part",
    async (world) => {
      await chat(world);
      const [{ id } = assert.fail()] = await world.activities("ada");
      await money(world, "refund", { user: "ada", activityId: id, amount: "0.0002" });
    },
    "0.001",
    "0",
  ],
];

for (const [what, move, revenue, other] of moves) {
  Deno.test(`revenue: ${what}`, async () => {
    using world = await createWorld({ project: { trialCredits: "1" } });
    world.upstream.reply(() => completion({ usage: usage(1_000, 100) }));
    await world.deposit("ada", "5");
    await world.deposit("bob", "1");
    await move(world);
    const { totals, models } = await summaryOf(world);
    assert.deepEqual([totals.revenue, totals.otherCharges], [revenue, other]);
    const [cost, charges, back] = [totals.cost, totals.charges, totals.givenBack].map(fromDecimal);
    assert.equal(formatAmount(toAmount((cost ?? 0n) + (charges ?? 0n) - (back ?? 0n))), revenue);
    const [model] = models;
    if (model) assert.equal(model.revenue, revenue);
    const owner = await signedIn(world);
    const shown = `Revenue ${revenue === "0" ? "\\$0\\.00" : "\\$0\\.\\d+"} no earlier data`;
    assert.match(textOf((await owner.get("")).html), new RegExp(`${shown}.*Gifts \\$2\\.00 `));
  });
}

Deno.test("revenue: what is given back for a response is subtracted from its model's margin", async () => {
  const pricing = { catalogue: true, markupPercent: "20" };
  using world = await createWorld({
    project: { pricing, upstream: { url: "https://api.openai.com/v1", apiKey: "sk-upstream-1" } },
  });
  await world.deposit("ada", "5");
  world.upstream.reply(() => completion({ model: "gpt-4o-mini", usage: usage(10_000, 1_000) }));
  await chat(world, { model: "gpt-4o-mini" });
  const before = await summaryOf(world);
  const [{ id, amount } = assert.fail()] = await world.activities("ada");
  await money(world, "refund", { user: "ada", activityId: id });
  const { totals, models: [model] } = await summaryOf(world);
  assert.equal(totals.upstreamCost, before.totals.upstreamCost);
  assert.notEqual(totals.upstreamCost, "0");
  const left = formatAmount(toAmount(fromDecimal(before.totals.margin) - fromDecimal(amount)));
  for (const found of [totals, model]) {
    assert.deepEqual([found.revenue, found.margin, found.givenBack], ["0", left, amount]);
  }
});

Deno.test("revenue: a charge's reason is shown, belongs to its key, and is one of four", async () => {
  using world = await createWorld();
  await world.deposit("ada", "5");
  const send = (reason: string) =>
    world.json("/v1/user/charge", {
      body: { user: "ada", amount: "1", reason },
      headers: { "idempotency-key": "k-1" },
    });
  assert.equal((await send("correction")).status, 200);
  assert.equal((await send("correction")).status, 200);
  assert.equal((await send("transfer")).body.error.code, "idempotency_key_reused");
  assert.equal((await send("fun")).body.error.param, "reason");
  const [entry] = await world.activities("ada");
  assert.equal(entry?.reason, "correction");
});

Deno.test("revenue: what moves by other reasons is in no deposit, and a refund has a direction", async () => {
  using world = await createWorld();
  const deposit = async (amount: string, reason?: string): Promise<string> =>
    (await money(world, "balance/deposit", { user: "ada", amount, ...(reason && { reason }) }))
      .body.activityId;
  const paid = await deposit("10");
  await deposit("7", "opening");
  await deposit("3", "goodwill");
  await deposit("0.5", "correction");
  await money(world, "refund", { user: "ada", activityId: paid, amount: "4" });
  await refunded(world, "2");
  const { totals } = await summaryOf(world);
  const { deposits, takenBack, givenBack, movements } = totals;
  assert.deepEqual([deposits, takenBack, givenBack], ["10", "4", "2"]);
  const moved = Object.entries(movements).filter(([, amount]) => amount !== "0");
  assert.deepEqual(Object.fromEntries(moved), {
    ...{ opening: "7", goodwill: "3", correction_in: "0.5", reversal_out: "4" },
  });
});

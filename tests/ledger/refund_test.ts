import assert from "node:assert/strict";
import {
  chatBody,
  chatPath,
  checkBooks,
  storeAsText,
  storedEntries,
  whileMoving,
} from "../support/books.ts";
import { createGate } from "../support/store.ts";
import { completion, fedStream } from "../support/upstream.ts";
import { createWorld, type World } from "../support/world.ts";

const refundPath = "/v1/user/refund";

function refund(world: World, body: Record<string, unknown>, headers: Record<string, string> = {}) {
  return world.json(refundPath, { body, headers });
}

/** Deposits 10, charges 4, and returns both activities. */
async function spend(world: World, user = "ada") {
  const deposit = await world.json("/v1/user/balance/deposit", { body: { user, amount: "10" } });
  const charge = await world.json("/v1/user/charge", { body: { user, amount: "4" } });
  return { deposit: deposit.body.activityId, charge: charge.body.activityId };
}

Deno.test("refund: of a charge, in parts and then the rest, credits the user", async () => {
  using world = await createWorld();
  const { charge } = await spend(world);
  const part = await refund(world, { user: "ada", activityId: charge, amount: "1.25" });
  assert.equal(part.status, 200);
  const { activityId, ...rest } = part.body;
  assert.match(activityId, /^act_/);
  assert.deepEqual(rest, {
    success: true,
    user: "ada",
    amount: "1.25",
    currency: "usd",
    balance: "7.25",
    held: "0",
    available: "7.25",
    balanceFormatted: "$7.25",
    refundedActivityId: charge,
    shortfall: "0",
  });
  const whole = await refund(world, { activityId: charge });
  assert.equal(whole.body.amount, "2.75");
  assert.equal(whole.body.balance, "10");
  assert.equal(whole.body.user, "ada", "the user is the activity's own when none is named");
  const again = await refund(world, { user: "ada", activityId: charge });
  assert.equal(again.status, 400);
  await checkBooks(world, "ada");
});

Deno.test("refund: of a response returns what it cost", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const answer = await world.call(chatPath, { body: chatBody("ada") });
  await answer.body?.cancel();
  const activityId = answer.headers.get("x-service-activity-id");
  assert.equal((await world.balance("ada")).balance, "0.99998");
  const { body } = await refund(world, { user: "ada", activityId });
  assert.equal(body.amount, "0.00002");
  assert.equal((await world.balance("ada")).balance, "1");
  const [newest] = await world.activities("ada");
  assert.equal(newest?.kind, "refund");
  assert.equal(newest?.delta, "0.00002");
});

Deno.test("refund: of a deposit takes what is available, and records the shortfall", async () => {
  using world = await createWorld();
  const { deposit } = await spend(world);
  const { status, body } = await refund(world, { user: "ada", activityId: deposit });
  assert.equal(status, 200);
  assert.equal(body.amount, "6");
  assert.equal(body.shortfall, "4");
  assert.equal(body.balance, "0");
  const [newest] = await world.activities("ada");
  assert.deepEqual(
    [newest?.kind, newest?.amount, newest?.delta, newest?.shortfall],
    ["refund", "6", "-6", "4"],
  );
  await checkBooks(world, "ada");
});

Deno.test("refund: of a deposit in part, where all of it is available, leaves no shortfall", async () => {
  using world = await createWorld();
  const { deposit } = await spend(world);
  const { body } = await refund(world, { user: "ada", activityId: deposit, amount: "2.5" });
  assert.equal(body.amount, "2.5");
  assert.equal(body.shortfall, "0");
  assert.equal(body.balance, "3.5");
});

Deno.test("refund: of a deposit does not touch what a running call holds", async () => {
  using world = await createWorld();
  const deposit = await world.json("/v1/user/balance/deposit", {
    body: { user: "ada", amount: "0.001" },
  });
  const stream = fedStream();
  world.upstream.once(() => stream.response);
  const answer = await world.call(chatPath, { body: chatBody("ada", { stream: true }) });
  const { held, available } = await world.balance("ada");
  const { body } = await refund(world, { activityId: deposit.body.activityId });
  assert.equal(body.amount, available);
  assert.equal(body.shortfall, held);
  assert.equal(body.available, "0");
  assert.equal(body.held, held);
  await answer.body?.cancel();
  await checkBooks(world, "ada");
});

Deno.test("refund: 20 at once never return more than the original", async () => {
  for (const keyed of [false, true]) {
    using world = await createWorld();
    const { charge } = await spend(world);
    const results = await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        refund(
          world,
          { user: "ada", activityId: charge, amount: "0.7" },
          keyed ? { "idempotency-key": `refund-${n}` } : {},
        )),
    );
    const done = results.filter(({ status }) => status === 200);
    const refused = results.filter(({ status }) => status === 400);
    assert.equal(done.length, 5, "5 * 0.7 = 3.5 of 4");
    assert.equal(refused.length, 15);
    for (const { body } of refused) assert.equal(body.error.code, "refund_exceeds_original");
    assert.equal((await world.balance("ada")).balance, "9.5");
    await checkBooks(world, "ada");
  }
});

Deno.test("refund: 20 of the whole at once, from two processes, are one", async () => {
  using world = await createWorld();
  using other = await createWorld({ shareWith: world });
  const { charge } = await spend(world);
  const work = Array.from(
    { length: 20 },
    (_, n) => refund(n % 2 ? world : other, { user: "ada", activityId: charge }),
  );
  const results = await whileMoving(world.clock, Promise.all(work), { stepMs: 5 });
  const done = results.filter(({ status }) => status === 200);
  assert.equal(done.length, 1);
  assert.equal((await world.balance("ada")).balance, "10");
  const entries = await checkBooks(world, "ada");
  assert.equal(entries.filter(({ kind }) => kind === "refund").length, 1);
});

Deno.test("refund: what cannot be refunded is distinguished from malformed input, and changes nothing", async () => {
  using world = await createWorld();
  const { charge } = await spend(world);
  const part = await refund(world, { activityId: charge, amount: "1" });
  const { activityId: elsewhere } = await inAnotherProject(world);
  const before = await storeAsText(world);
  const unknown = "act_01ARZ3NDEKTSV4RRFFQ69G5FAV";
  const cases: [label: string, body: Record<string, unknown>, status: number, code?: string][] = [
    ["more than is left", { activityId: charge, amount: "3.000000001" }, 400],
    ["a refund", { activityId: part.body.activityId }, 400],
    ["another user's", { user: "bob", activityId: charge }, 404],
    ["another project's", { activityId: elsewhere }, 404],
    ["unknown", { activityId: unknown }, 404],
    ["no id", { user: "ada" }, 400],
    ["no id's form", { activityId: "act_1" }, 400],
    ["a number", { activityId: 5 }, 400],
    ["zero", { activityId: charge, amount: "0" }, 400],
    ["a number for the amount", { activityId: charge, amount: 1 }, 400],
    ["an unknown field", { activityId: charge, reason: "x" }, 400],
    ["metadata as an array", { activityId: charge, metadata: [] }, 400],
  ];
  for (const [label, body, status] of cases) {
    const answer = await refund(world, body);
    assert.equal(answer.status, status, `${label}: ${JSON.stringify(answer.body)}`);
    assert.equal(typeof answer.body.error.message, "string");
  }
  assert.equal(await storeAsText(world), before);
});

Deno.test("refund: a user named by the header is enforced, like one in the body", async () => {
  using world = await createWorld();
  const { charge } = await spend(world);
  const sent = (user: string) =>
    world.json("/v1/user/refund", {
      body: { activityId: charge, amount: "1" },
      headers: { "x-service-user": user },
    });
  assert.equal((await sent("bob")).status, 404);
  assert.equal((await sent("ada")).status, 200);
});

async function inAnotherProject(world: World): Promise<{ activityId: string }> {
  const { apiKey } = await world.makeProject();
  const { body } = await world.json("/v1/user/balance/deposit", {
    body: { user: "ada", amount: "1" },
    key: apiKey,
  });
  return { activityId: body.activityId };
}

Deno.test("refund: the same key replays the first response, and refunds once", async () => {
  using world = await createWorld();
  const { charge } = await spend(world);
  const body = { user: "ada", activityId: charge, amount: "1" };
  const headers = { "idempotency-key": "refund-1" };
  const answers = await Promise.all([1, 2, 3].map(() => refund(world, body, headers)));
  for (const answer of answers) assert.deepEqual(answer.body, answers[0]?.body);
  const replayed = answers.map(({ response }) => response.headers.get("idempotent-replayed"));
  assert.deepEqual(replayed.sort(), ["true", "true", null].sort());
  const other = await refund(world, { ...body, amount: "2" }, headers);
  assert.equal(other.status, 422);
  assert.equal(other.body.error.code, "idempotency_key_reused");
  const refunds = (await storedEntries(world, "ada")).filter(({ kind }) => kind === "refund");
  assert.equal(refunds.length, 1);
});

Deno.test("refund: of a deposit, takes nothing that a running call holds", async () => {
  using world = await createWorld();
  const { body: { activityId } } = await world.json("/v1/user/balance/deposit", {
    body: { user: "ada", amount: "1" },
  });
  const gate = createGate();
  world.upstream.once(async () => {
    await gate.opened;
    return completion();
  });
  const answer = world.json(chatPath, { body: chatBody("ada") });
  await world.until(() => world.upstream.calls.length === 1);
  const { held, available } = await world.balance("ada");
  assert.notEqual(held, "0");
  const { status, body } = await world.json("/v1/user/refund", { body: { activityId } });
  assert.equal(status, 200);
  assert.equal(body.amount, available);
  assert.deepEqual(await world.balance("ada"), { balance: held, held, available: "0" });
  gate.open();
  assert.equal((await answer).status, 200);
  await checkBooks(world, "ada");
});

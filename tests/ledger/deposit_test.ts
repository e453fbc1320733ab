import assert from "node:assert/strict";
import { createWorld } from "../support/world.ts";

Deno.test("deposit: credits the user, and reports it exactly", async () => {
  using world = await createWorld();
  const { status, body } = await world.json("/v1/user/balance/deposit", {
    body: { user: "ada", amount: "12.345", metadata: { order: "o-1" } },
  });
  assert.equal(status, 200);
  const { activityId, ...rest } = body;
  assert.match(activityId, /^act_[0-9A-Z]{26}$/);
  assert.deepEqual(rest, {
    success: true,
    user: "ada",
    amount: "12.345",
    currency: "usd",
    balance: "12.345",
    held: "0",
    available: "12.345",
    balanceFormatted: "$12.34",
  });
});

Deno.test("deposit: the same key and body replays the first response", async () => {
  using world = await createWorld();
  const options = {
    body: { user: "ada", amount: "5" },
    headers: { "idempotency-key": "order-1" },
  };
  const [first, second] = await Promise.all([
    world.json("/v1/user/balance/deposit", options),
    world.json("/v1/user/balance/deposit", options),
  ]);
  await world.deposit("ada", "1");
  const third = await world.json("/v1/user/balance/deposit", options);
  assert.deepEqual(second.body, first.body);
  assert.deepEqual(third.body, first.body);
  assert.equal(first.response.headers.get("idempotent-replayed"), null);
  assert.equal(third.response.headers.get("idempotent-replayed"), "true");
  assert.equal((await world.balance("ada")).balance, "6");
});

Deno.test("deposit: the same key with another body or user is 422 and changes nothing", async () => {
  using world = await createWorld();
  const headers = { "idempotency-key": "order-1" };
  const path = "/v1/user/balance/deposit";
  await world.json(path, { body: { user: "ada", amount: "5" }, headers });
  for (
    const body of [
      { user: "ada", amount: "6" },
      { user: "bob", amount: "5" },
      { user: "ada", amount: "5", metadata: { other: 1 } },
    ]
  ) {
    const { status, body: answer } = await world.json(path, { body, headers });
    assert.equal(status, 422);
    assert.equal(answer.error.code, "idempotency_key_reused");
  }
  assert.equal((await world.balance("ada")).balance, "5");
  assert.equal((await world.balance("bob")).balance, "0");
});

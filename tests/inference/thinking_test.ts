import assert from "node:assert/strict";
import fc from "fast-check";
import { thinkingRoom } from "../../src/inference/admit/thinking_room.ts";
import { chat } from "../support/chat.ts";
import { always } from "../support/property.ts";
import { completion } from "../support/upstream.ts";
import { type Body, createWorld, type World } from "../support/world.ts";

const rooms: [number | null, number | null, number][] = [
  [null, null, 0],
  [null, 100, 0],
  [8_000, null, 9_024],
  [8_000, 20_000, 9_024],
  [8_000, 8_500, 8_500],
  [8_000, 8_000, 8_000],
  [8_000, 100, 100],
];
for (const [thinkingBudget, maxTokens, room] of rooms) {
  Deno.test(`thinking: a budget of ${thinkingBudget} beside ${maxTokens} tokens needs ${room}`, () => {
    assert.equal(thinkingRoom({ thinkingBudget, maxTokens }), room);
  });
}

/** A project whose own bound is 4,000 tokens, at 2 for a million output tokens. */
async function worldWith(balance: string): Promise<World> {
  const world = await createWorld({
    project: { maxOutputTokens: 4_000, pricing: { models: { m: { input: "1", output: "2" } } } },
  });
  await world.deposit("ada", balance);
  return world;
}

/** Refuses an output bound that is not above the budget, as Anthropic does, or above `most`. */
function strictUpstream(world: World, most = 1e9): void {
  world.upstream.reply(({ body }) => {
    const { max_tokens: bound, thinking } = body as Body;
    const refuse = (message: string) =>
      Response.json({ error: { message, type: "invalid_request_error" } }, { status: 400 });
    if (bound > most) return refuse(`max_tokens: ${bound} > ${most}, which is the maximum allowed`);
    if (bound > (thinking?.budget_tokens ?? 0)) return completion();
    return refuse("`max_tokens` must be greater than `thinking.budget_tokens`.");
  });
}

const budgetOf = (tokens: number) => ({ thinking: { type: "enabled", budget_tokens: tokens } });
const boundsSent = (world: World) => world.upstream.calls.map(({ body }) => body.max_tokens);

Deno.test("thinking: our own bound and a short balance never cause an upstream's error", async () => {
  await always(
    40,
    fc.asyncProperty(
      fc.integer({ min: 1, max: 30_000 }),
      fc.option(fc.integer({ min: 1, max: 40_000 })),
      fc.integer({ min: 1, max: 90 }),
      async (budget, maxTokens, thousandths) => {
        using world = await worldWith(`0.0${String(thousandths).padStart(2, "0")}`);
        strictUpstream(world);
        const own = maxTokens === null ? {} : { max_tokens: maxTokens };
        const { status, body } = await chat(world, { model: "m", ...budgetOf(budget), ...own });
        if (status === 400) {
          // The caller's own bound is too low, and is what was sent.
          assert.ok(maxTokens !== null && maxTokens <= budget);
          assert.deepEqual(boundsSent(world), [maxTokens]);
        } else {
          assert.equal(status, 200);
          assert.equal(world.upstream.calls.length, body.paywall ? 0 : 1);
        }
      },
    ),
  );
});

Deno.test("thinking: a model's limit that leaves room for the answer is found", async () => {
  using world = await worldWith("1");
  strictUpstream(world, 8_192);
  assert.equal((await chat(world, { model: "m", ...budgetOf(8_000) })).status, 200);
  assert.deepEqual(boundsSent(world), [9_024, 8_192]);
});

Deno.test("thinking: a budget above the model's limit is an error about the budget", async () => {
  using world = await worldWith("1");
  strictUpstream(world, 8_192);
  for (const _again of [1, 2]) {
    const { status, body: { error } } = await chat(world, { model: "m", ...budgetOf(9_000) });
    assert.deepEqual([status, error.code], [400, "invalid_value"]);
    assert.match(error.message, /budget of 9000 tokens/);
    assert.doesNotMatch(error.message, /max_tokens|8192|10024/);
  }
  assert.equal((await world.balance("ada")).held, "0");
});

Deno.test("thinking: a bound of the caller's that we lowered is corrected as ours", async () => {
  using world = await worldWith("1");
  strictUpstream(world, 2_048);
  // A bound that is sent as the caller wrote it is the caller's error.
  assert.equal((await chat(world, { model: "m", max_tokens: 3_000 })).status, 400);
  assert.equal((await chat(world, { model: "m", max_tokens: 9_000 })).status, 200);
  assert.deepEqual(boundsSent(world), [3_000, 4_000, 2_048]);
});

import assert from "node:assert/strict";
import { chatBody, chatPath } from "../support/books.ts";
import { linkFor, sharedWorld } from "../support/wallets.ts";
import { createWorld, type World } from "../support/world.ts";

const names = ["limit", "remaining", "reset"].map((name) => `x-ratelimit-${name}-requests`);

/** The headers about the request rate, and about when to try again. */
async function told(world: World, user: string, more: Record<string, unknown> = {}) {
  const { headers = {}, ...body } = more;
  const response = await world.call(chatPath, {
    body: chatBody(user, body),
    headers: headers as Record<string, string>,
  });
  await response.text();
  const rates = names.map((name) => response.headers.get(name));
  return { status: response.status, rates, retryAfter: response.headers.get("retry-after") };
}

const limits = { user: { requestsPerMinute: 60 }, key: { requestsPerMinute: 600 } };

Deno.test("rate headers: a paywall response has them, for the limit with less remaining", async () => {
  using world = await createWorld({ project: { limits } });
  for (const [stream, left, reset] of [[false, "59", "1s"], [true, "58", "2s"]] as const) {
    const { status, rates } = await told(world, "eve", { stream });
    assert.deepEqual([status, ...rates], [200, "60", left, reset], `stream: ${stream}`);
  }
  const key = { requestsPerMinute: 3 };
  using narrow = await createWorld({ project: { limits: { user: limits.user, key } } });
  assert.deepEqual((await told(narrow, "eve")).rates, ["3", "2", "20s"]);
});

Deno.test("rate headers: a response has them, streamed or not", async () => {
  using world = await createWorld({ project: { limits } });
  await world.deposit("ada", "1");
  for (const [stream, left, reset] of [[false, "59", "1s"], [true, "58", "2s"]] as const) {
    assert.deepEqual((await told(world, "ada", { stream })).rates, ["60", left, reset]);
  }
});

Deno.test("rate headers: so does one for a missing authorization, and one for an exceeded rate", async () => {
  using world = await sharedWorld({ limits });
  await linkFor(world, "eve");
  assert.deepEqual((await told(world, "eve")).rates, ["60", "59", "1s"]);
  const user = { requestsPerMinute: 1 };
  using fast = await createWorld({ project: { limits: { user, reply: "message" } } });
  await fast.deposit("ada", "10");
  for (let times = 0; times < 2; times++) {
    assert.deepEqual((await told(fast, "ada")).rates, ["1", "0", "1m0s"]);
  }
});

for (const stream of [false, true]) {
  Deno.test(`rate headers: an upstream's refusal has them${stream ? ", streamed" : ""}`, async () => {
    using world = await createWorld({ project: { limits } });
    await world.deposit("ada", "10");
    let left = 60;
    for (const [status, seen] of [[400, 400], [429, 429], [500, 502], [401, 502]] as const) {
      world.upstream.once(() => Response.json({ error: { message: "no" } }, { status }));
      const { rates, ...answer } = await told(world, "ada", { stream });
      assert.deepEqual([answer.status, ...rates.slice(0, 2)], [seen, "60", `${--left}`]);
    }
  });
}

Deno.test("rate headers: an upstream's 429 has a Retry-After, whatever it contains", async () => {
  using world = await createWorld();
  await world.deposit("ada", "10");
  for (
    const [said, expected] of [[null, "1"], ["7", "7"], ["<b>", "1"], [
      "x".repeat(65),
      "1",
    ]] as const
  ) {
    const headers: Record<string, string> = said === null ? {} : { "retry-after": said };
    world.upstream.once(() =>
      Response.json({ error: { message: "slow" } }, { status: 429, headers })
    );
    const { status, retryAfter } = await told(world, "ada");
    assert.deepEqual([status, retryAfter], [429, expected], `${said}`);
  }
});

Deno.test("rate headers: without a limit there are none, nor for what does not count", async () => {
  using world = await createWorld();
  await world.deposit("ada", "10");
  assert.deepEqual((await told(world, "ada")).rates, [null, null, null]);
  assert.deepEqual((await told(world, "eve")).rates, [null, null, null]);
  using limited = await createWorld({ project: { limits } });
  await limited.deposit("ada", "10");
  const headers = { "idempotency-key": "a" };
  assert.deepEqual((await told(limited, "ada", { headers })).rates, ["60", "59", "1s"]);
  assert.deepEqual((await told(limited, "ada", { headers })).rates, [null, null, null]);
  assert.deepEqual((await told(limited, "ada", { model: "unknown" })).rates, [null, null, null]);
  assert.deepEqual((await told(limited, "ada")).rates, ["60", "58", "2s"], "they took none");
});

import assert from "node:assert/strict";
import fc from "fast-check";
import { isObject, parseJson } from "../../src/base/json.ts";
import { parseAmount, toAmount } from "../../src/base/money.ts";
import { usageBounds } from "../../src/pricing/usage_bounds.ts";
import { checkBooks } from "../support/books.ts";
import { chatBody, chatStream, completionsPath } from "../support/chat.ts";
import { always, anyText, jsonText, spoiled } from "../support/property.ts";
import { chunk, completion, sse, usage, usageChunk } from "../support/upstream.ts";
import { createWorld, type World } from "../support/world.ts";

const headers = { "content-type": "application/json" };
const whole = await completion({ usage: usage(10, 5, { prompt_tokens_details: {} }) }).json();

/**
 * Responses that are not a completion; `depth` nests one level deeper than can be written again.
 */
const anyAnswer: fc.Arbitrary<{ text: string; depth: number }> = fc.oneof(
  { weight: 8, arbitrary: spoiled(whole).map((text) => ({ text, depth: 0 })) },
  {
    weight: 2,
    arbitrary: fc.array(fc.oneof(jsonText, fc.constantFrom("null", "5", "[]")), { maxLength: 3 })
      .map((choices) => ({ text: `{"choices":[${choices.join(",")}]}`, depth: 0 })),
  },
  { weight: 1, arbitrary: jsonText.map((text) => ({ text, depth: 0 })) },
  { weight: 1, arbitrary: anyText.map((text) => ({ text, depth: 0 })) },
  {
    weight: 1,
    arbitrary: fc.integer({ min: 1_000, max: 30_000 })
      .map((depth) => ({ text: JSON.stringify({ ...whole, x: "@" }), depth })),
  },
);

function render({ text, depth }: { text: string; depth: number }): string {
  return depth === 0 ? text : text.replace('"@"', "[".repeat(depth) + "]".repeat(depth));
}

/** The most that a response to `chatBody()` may cost at a token's two prices, with a margin. */
const most = (() => {
  const { input, output } = usageBounds({
    prompt: JSON.stringify(chatBody()).length,
    output: 1_000,
  });
  return BigInt(input + 2 * output) * 1_000n;
})();

/** Asserts what must hold after any response, and returns its cost. */
async function costOf(world: World, before: bigint): Promise<bigint> {
  const { balance, held } = await world.balance("ada");
  assert.equal(held, "0", "no hold is left behind");
  const after = parseAmount(balance);
  assert.ok(after !== null && after <= before && after >= 0n);
  const cost = before - after;
  assert.ok(cost <= most, `${cost} for one answer`);
  return cost;
}

async function openWorld(): Promise<World & Disposable> {
  const world = await createWorld({ project: { lowBalance: "1000000" } });
  await world.deposit("ada", "1000");
  return world;
}

const balanceOf = async (world: World) =>
  parseAmount((await world.balance("ada")).balance) ?? toAmount(-1n);

Deno.test("upstream: any response to a chat is a valid one that is paid for, or a 502 that is not", async () => {
  using world = await openWorld();
  let answered = 0;
  await always(
    130,
    fc.asyncProperty(anyAnswer, fc.boolean(), fc.uuid(), async (answer, keyed, key) => {
      const before = await balanceOf(world);
      world.upstream.once(() => new Response(render(answer), { headers }));
      const response = await world.call(completionsPath, {
        body: chatBody(),
        headers: keyed ? { "idempotency-key": key } : {},
      });
      const body = await response.json();
      const cost = await costOf(world, before);
      if (response.status === 200) {
        answered++;
        // What is nested too deep is passed on as it is.
        if (response.headers.has("x-service-unparsed")) return assert.ok(cost > 0n);
        assert.equal(parseAmount(body.usage.cost_exact), cost);
        assert.ok(Array.isArray(body.choices));
      } else {
        assert.equal(response.status, 502, JSON.stringify(body));
        assert.equal(cost, 0n, "what was not answered is not charged");
      }
    }),
  );
  assert.ok(answered > 50, `${answered} were answered`);
  await checkBooks(world, "ada");
});

const anyChunk = fc.oneof(
  { weight: 4, arbitrary: spoiled(chunk({ role: "assistant", content: "Hello" })) },
  { weight: 2, arbitrary: spoiled(chunk({ content: " there" }, "stop")) },
  { weight: 2, arbitrary: spoiled(usageChunk()) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(chunk({}, "stop"), usageChunk()).map((each) => JSON.stringify(each)),
  },
  { weight: 1, arbitrary: spoiled({ error: { message: "no", type: "x", code: null } }) },
  { weight: 1, arbitrary: jsonText },
);

Deno.test("upstream: any stream ends in [DONE] or an error, and is charged at most once", async () => {
  using world = await openWorld();
  let done = 0;
  await always(
    150,
    fc.asyncProperty(
      fc.array(anyChunk, { maxLength: 5 }),
      fc.boolean(),
      fc.boolean(),
      async (chunks, ended, include_usage) => {
        const before = await balanceOf(world);
        world.upstream.once(() => sse(chunks, { done: ended }));
        const options = { stream_options: { include_usage } };
        const response = await chatStream(world, options);
        if (response.status !== 200) {
          assert.equal(typeof (await response.json()).error.message, "string");
          assert.equal(await costOf(world, before), 0n, "it begins with an error");
          return;
        }
        const frames = (await response.text()).split("\n\n").filter((frame) => frame !== "");
        const last = frames.pop()?.replace("data: ", "") ?? "";
        const told = frames.map((frame) => JSON.parse(frame.replaceAll(/^data: /gm, "")));
        assert.ok(told.every(({ error }) => !error), "what goes wrong is told last");
        const cost = await costOf(world, before);
        const refused = chunks.map((text) => parseJson(text)).some((each) =>
          isObject(each) && each.error
        );
        if (refused) assert.notEqual(last, "[DONE]", "an error is no end");
        if (last !== "[DONE]") return assert.equal(typeof JSON.parse(last).error.message, "string");
        done++;
        const usages = told.flatMap(({ usage }) => usage ?? []);
        assert.equal(usages.length, include_usage ? 1 : 0);
        if (include_usage) assert.equal(parseAmount(usages[0].cost_exact), cost);
      },
    ),
  );
  assert.ok(done > 50, `${done} came to their end`);
  await checkBooks(world, "ada");
});

Deno.test("upstream: any error of a server is passed on as an error, and costs nothing", async () => {
  using world = await openWorld();
  const fault = spoiled({ error: { message: "no", type: "invalid", param: "model", code: "no" } });
  await always(
    120,
    fc.asyncProperty(
      fc.constantFrom(201, 204, 301, 400, 401, 402, 403, 404, 408, 413, 422, 429, 500, 503, 529),
      fc.oneof(fault, anyText),
      fc.oneof(anyText, fc.constantFrom("5", "-1", "soon", "Wed, 21 Oct 2026 07:28:00 GMT")),
      fc.boolean(),
      async (status, text, wait, stream) => {
        const before = await balanceOf(world);
        const retryAfter = wait.replace(/[^\x20-\x7e]/g, "");
        const answer = () =>
          new Response(status === 204 ? null : text, {
            status,
            headers: { ...headers, "retry-after": retryAfter },
          });
        world.upstream.reply(answer);
        const body = chatBody({ stream });
        const response = await world.call(completionsPath, { body });
        const told = await response.json();
        assert.ok(response.status >= 400, `${response.status}`);
        assert.deepEqual(Object.keys(told.error).sort(), ["code", "message", "param", "type"]);
        assert.equal(typeof told.error.message, "string");
        assert.notEqual(told.error.code, "internal_error");
        assert.equal(await costOf(world, before), 0n);
      },
    ),
  );
});

import assert from "node:assert/strict";
import fc from "fast-check";
import { parseJson } from "../../src/base/json.ts";
import { UsageMeter } from "../../src/inference/usage_meter.ts";
import { plausibleUsage, readUsage, type TokenUsage } from "../../src/pricing/usage.ts";
import { createHandClock } from "../support/clock.ts";
import { always, jsonText, spoiled } from "../support/property.ts";
import { outputTexts } from "../../src/formats/chat/choice.ts";

const clock = createHandClock();
const counts = fc.oneof(
  fc.nat(20),
  fc.nat(100_000),
  fc.constantFrom(-1, 0.5, 1e21, -0, 2 ** 53, 2 ** 31, null, "5", true, [5], {}),
);
const optional = fc.option(counts, { nil: undefined });

/** What servers report, right or not. */
const reported = fc.record({
  prompt_tokens: counts,
  completion_tokens: counts,
  total_tokens: optional,
  prompt_cache_hit_tokens: optional,
  cache_creation_input_tokens: optional,
  cache_read_input_tokens: optional,
  prompt_tokens_details: fc.option(
    fc.record({ cached_tokens: optional, cache_write_tokens: optional }),
    { nil: undefined },
  ),
  completion_tokens_details: fc.option(fc.record({ reasoning_tokens: optional }), { nil: null }),
}).map((value) => JSON.stringify(value));

const usual = {
  prompt_tokens: 100,
  completion_tokens: 50,
  total_tokens: 150,
  prompt_tokens_details: { cached_tokens: 60, cache_write_tokens: 30, audio_tokens: 0 },
  completion_tokens_details: { reasoning_tokens: 20 },
};
/** Any JSON at all where `usage` should be. */
const anyUsage = fc.oneof(reported, reported, spoiled(usual), jsonText);
/** Of an answer of nothing. */
const silent = '{"prompt_tokens":5,"completion_tokens":0}';
const bound = fc.record({ input: fc.nat(200_000), output: fc.nat(200_000) });

function checkClasses(usage: TokenUsage, most: { input: number; output: number }): void {
  const { uncachedInput, cachedInput, cacheWrite, output, reasoning } = usage;
  for (const tokens of [uncachedInput, cachedInput, cacheWrite, output, reasoning]) {
    assert.ok(Number.isSafeInteger(tokens) && tokens >= 0, JSON.stringify(usage));
  }
  assert.ok(uncachedInput + cachedInput + cacheWrite <= most.input, "no more than is plausible");
  assert.ok(output <= most.output, "no more than is plausible");
  assert.ok(reasoning <= output, "reasoning is inside the output");
}

Deno.test("usage: any JSON is a partition of plausible counts, or is rejected", () =>
  always(
    2_000,
    fc.property(anyUsage, bound, (text, most) => {
      const raw = parseJson(text);
      const usage = readUsage(raw, most);
      if (usage === null) return;
      checkClasses(usage, most);
      // The input's classes are all of the prompt, and each token is in one of them.
      const { prompt_tokens, completion_tokens, total_tokens } = JSON.parse(text);
      const input = usage.uncachedInput + usage.cachedInput + usage.cacheWrite;
      const total = Number.isSafeInteger(total_tokens) ? total_tokens : 0;
      // Or a cache was beside it, and the total has both.
      if (input !== Math.abs(prompt_tokens)) {
        assert.equal(usage.uncachedInput, Math.abs(prompt_tokens));
        assert.ok(total >= input + Math.abs(completion_tokens));
      }
      // Beyond the answer's tokens only what the total says.
      assert.ok(usage.output >= Math.abs(completion_tokens));
      assert.ok(usage.output <= Math.max(Math.abs(completion_tokens), total - input));
    }),
  ));

Deno.test("usage: whole counts within the bound are always accepted", () =>
  always(
    1_000,
    fc.property(bound, fc.nat(), fc.nat(), optional, optional, (most, prompt, output, ...parts) => {
      const usage = readUsage({
        prompt_tokens: prompt % (most.input + 1),
        completion_tokens: output % (most.output + 1),
        prompt_tokens_details: { cached_tokens: parts[0] as number },
        completion_tokens_details: { reasoning_tokens: parts[1] as number },
      }, most);
      assert.equal(usage?.output, output % (most.output + 1));
    }),
  ));

Deno.test("usage: the meter counts one response's tokens only, whatever is reported, and when", () =>
  always(
    200,
    fc.asyncProperty(
      fc.array(fc.oneof(anyUsage, fc.constantFrom("none", silent)), { maxLength: 4 }),
      fc.array(fc.oneof(jsonText, fc.constant('{"content":"Hello there"}')), { maxLength: 3 }),
      fc.integer({ min: 1, max: 3 }),
      async (usages, messages, choices) => {
        const plausible = plausibleUsage(100, 50);
        const countInput = () => Promise.resolve(7);
        const meter = new UsageMeter({ choices, plausible, countInput, clock });
        for (const text of messages) {
          for (const part of outputTexts(parseJson(text))) meter.addText(part);
        }
        for (const text of usages) if (text !== "none") meter.addUsage(parseJson(text));
        const usage = await meter.usage();
        const own = await meter.countOutput();
        checkClasses(usage, {
          input: plausible.input,
          output: Math.max(plausible.output, own),
        });
        const believed = usages.filter((text) => text !== "none").map((text) => parseJson(text))
          .filter((raw) => readUsage(raw, plausible));
        assert.deepEqual(meter.reported, believed.at(-1) ?? null);
        const told = readUsage(meter.reported, plausible);
        // So much more than is told can only be what the other choices said.
        const isOfOne = told !== null && choices > 1 && own > 1.25 * told.output;
        assert.equal(usage.source, told && !isOfOne ? "provider" : "estimated");
        if (isOfOne) assert.equal(usage.output, own);
        if (!told) assert.equal(usage.uncachedInput, 7);
      },
    ),
  ));

import assert from "node:assert/strict";
import fc from "fast-check";
import { parseJson } from "../../src/base/json.ts";
import {
  inputTokensOf,
  tokenClasses,
  type TokenCounts,
  tokenCounts,
} from "../../src/base/token_classes.ts";
import { UsageMeter } from "../../src/inference/meter/usage_meter.ts";
import { readUsage } from "../../src/pricing/usage.ts";
import { meterBounds } from "../support/meter.ts";
import { dialects, type Part, partNames, parts } from "../support/usage_dialects.ts";
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

/** Reports of servers, valid or not. */
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
/** The usage of an empty response. */
const silent = '{"prompt_tokens":5,"completion_tokens":0}';

function checkClasses(counts: TokenCounts): void {
  for (const { name } of tokenClasses) {
    const tokens = counts[name];
    assert.ok(Number.isSafeInteger(tokens) && tokens >= 0, `${name}: ${JSON.stringify(counts)}`);
  }
  assert.ok(counts.reasoning <= counts.output, "reasoning is inside the output");
}

Deno.test("usage: any JSON is a partition of counts, or is rejected", () =>
  always(
    2_000,
    fc.property(anyUsage, (text) => {
      const usage = readUsage(parseJson(text));
      if (usage === null) return;
      const { counts } = usage;
      checkClasses(counts);
      const { prompt_tokens = 0, completion_tokens = 0 } = JSON.parse(text);
      const least = (count: number) => Math.min(1e12, Math.abs(count));
      assert.ok(inputTokensOf(counts) >= least(prompt_tokens), "the prompt is in a class");
      assert.ok(counts.output >= least(completion_tokens), "the completion is output");
    }),
  ));

for (const [name, { has, write }] of Object.entries(dialects)) {
  Deno.test(`usage: the partition comes back from ${name}`, () =>
    always(
      300,
      fc.property(parts, (all) => {
        const said = { ...all };
        for (const part of Object.keys(partNames) as Part[]) {
          if (!has.includes(part)) said[part] = 0;
        }
        const usage = readUsage(write(said));
        assert.deepEqual(
          usage?.counts,
          tokenCounts({
            uncachedInput: said.plain,
            cachedInput: said.read,
            cacheWrite: said.write,
            cacheWriteHour: said.hour,
            audioInput: said.audio,
            imageInput: said.image,
            citation: said.citation,
            output: said.text + said.thought,
            audioOutput: said.speech,
            imageOutput: said.picture,
            reasoning: said.thought,
          }),
        );
      }),
    ));
}

Deno.test("usage: the meter counts one response's tokens only, whatever is reported, and when", () =>
  always(
    200,
    fc.asyncProperty(
      fc.array(fc.oneof(anyUsage, fc.constantFrom("none", silent)), { maxLength: 4 }),
      fc.array(fc.oneof(jsonText, fc.constant('{"content":"Hello there"}')), { maxLength: 3 }),
      fc.integer({ min: 1, max: 3 }),
      async (usages, messages, choices) => {
        const options = meterBounds(100, 50);
        const countInput = () => Promise.resolve(7);
        const meter = new UsageMeter({ choices, ...options, countInput, clock });
        for (const text of messages) {
          for (const part of outputTexts(parseJson(text))) meter.addText(part);
        }
        for (const text of usages) if (text !== "none") meter.addUsage(parseJson(text));
        const usage = await meter.usage();
        const own = await meter.countOutput();
        checkClasses(usage);
        assert.ok(usage.output <= Math.max(options.bounds.output, own));
        // Text is never free, and a prompt is never empty.
        if (own > 0) assert.ok(usage.output > 0);
        assert.ok(inputTokensOf(usage) > 0);
        const reports = usages.filter((text) => text !== "none")
          .map((text) => readUsage(parseJson(text))).filter((report) => report !== null);
        for (const report of reports) {
          const least = Math.min(report.counts.output, options.bounds.output);
          assert.ok(usage.output >= least, "no report is thrown away");
        }
        if (reports.length === 0) {
          assert.equal(usage.source, "estimated");
          assert.equal(usage.uncachedInput, 7);
        }
      },
    ),
  ));

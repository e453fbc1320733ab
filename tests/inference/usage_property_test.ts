import assert from "node:assert/strict";
import fc from "fast-check";
import { parseJson } from "../../src/base/json.ts";
import {
  inputTokensOf,
  tokenClasses,
  type TokenCounts,
  tokenCounts,
} from "../../src/base/token_classes.ts";
import { UsageMeter } from "../../src/inference/usage_meter.ts";
import { plausibleUsage, readUsage } from "../../src/pricing/usage.ts";
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
const bound = fc.tuple(fc.nat(200_000), fc.nat(200_000))
  .map(([input, output]) => plausibleUsage(input, output));

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
    fc.property(anyUsage, bound, (text, most) => {
      const usage = readUsage(parseJson(text), most);
      if (usage === null) return;
      const { counts } = usage;
      checkClasses(counts);
      const { prompt_tokens, completion_tokens } = JSON.parse(text);
      assert.ok(inputTokensOf(counts) >= Math.abs(prompt_tokens), "the prompt is in a class");
      assert.ok(counts.output >= Math.abs(completion_tokens), "the completion is output");
      if (usage.plausible.input) {
        assert.ok(inputTokensOf(counts) <= most.input + most.toolInput);
      }
      if (usage.plausible.output) assert.ok(counts.output <= most.output);
    }),
  ));

/** A partition of a call's tokens, as a provider knows it. */
interface Parts {
  plain: number;
  read: number;
  write: number;
  text: number;
  thought: number;
}

const parts = fc.record({
  plain: fc.integer({ min: 1, max: 50_000 }),
  read: fc.nat(50_000),
  write: fc.nat(20_000),
  text: fc.integer({ min: 1, max: 20_000 }),
  thought: fc.nat(20_000),
});

/** How providers and gateways write a partition down. */
const dialects: Record<string, (parts: Parts) => Record<string, unknown>> = {
  "OpenAI: everything inside": ({ plain, read, write, text, thought }) => ({
    prompt_tokens: plain + read + write,
    completion_tokens: text + thought,
    total_tokens: plain + read + write + text + thought,
    prompt_tokens_details: { cached_tokens: read, cache_write_tokens: write },
    completion_tokens_details: { reasoning_tokens: thought },
  }),
  "OpenAI's responses": ({ plain, read, write, text, thought }) => ({
    input_tokens: plain + read + write,
    input_tokens_details: { cached_tokens: read, cache_write_tokens: write },
    output_tokens: text + thought,
    output_tokens_details: { reasoning_tokens: thought },
    total_tokens: plain + read + write + text + thought,
  }),
  "xAI: reasoning beside the completion": ({ plain, read, text, thought }) => ({
    prompt_tokens: plain + read,
    completion_tokens: text,
    total_tokens: plain + read + text + thought,
    prompt_tokens_details: { cached_tokens: read },
    completion_tokens_details: { reasoning_tokens: thought },
  }),
  "Gemini's own names: thoughts beside the candidates": ({ plain, read, text, thought }) => ({
    promptTokenCount: plain + read,
    cachedContentTokenCount: read,
    candidatesTokenCount: text,
    thoughtsTokenCount: thought,
    totalTokenCount: plain + read + text + thought,
  }),
  "Gemini by OpenAI's names: only the total has the thoughts": ({ plain, text, thought }) => ({
    prompt_tokens: plain,
    completion_tokens: text,
    total_tokens: plain + text + thought,
  }),
  "Anthropic: the cache beside the input": ({ plain, read, write, text, thought }) => ({
    input_tokens: plain,
    cache_read_input_tokens: read,
    cache_creation_input_tokens: write,
    output_tokens: text + thought,
    output_tokens_details: { thinking_tokens: thought },
  }),
  "a gateway: Anthropic's cache beside, and in the total": (
    { plain, read, write, text, thought },
  ) => ({
    prompt_tokens: plain,
    completion_tokens: text + thought,
    total_tokens: plain + read + write + text + thought,
    cache_read_input_tokens: read,
    cache_creation_input_tokens: write,
    completion_tokens_details: { reasoning_tokens: thought },
  }),
  "a gateway: Anthropic's cache inside the prompt": ({ plain, read, write, text, thought }) => ({
    prompt_tokens: plain + read + write,
    completion_tokens: text + thought,
    total_tokens: plain + read + write + text + thought,
    prompt_tokens_details: { cached_tokens: read },
    cache_read_input_tokens: read,
    cache_creation_input_tokens: write,
    completion_tokens_details: { reasoning_tokens: thought },
  }),
  "DeepSeek: hits and misses": ({ plain, read, text, thought }) => ({
    prompt_tokens: plain + read,
    prompt_cache_hit_tokens: read,
    prompt_cache_miss_tokens: plain,
    completion_tokens: text + thought,
    total_tokens: plain + read + text + thought,
    completion_tokens_details: { reasoning_tokens: thought },
  }),
};

/** Classes that a dialect cannot report. */
const unreported: Record<string, (keyof Parts)[]> = {
  "xAI: reasoning beside the completion": ["write"],
  "Gemini's own names: thoughts beside the candidates": ["write"],
  "Gemini by OpenAI's names: only the total has the thoughts": ["read", "write"],
  "DeepSeek: hits and misses": ["write"],
};

for (const [name, write] of Object.entries(dialects)) {
  Deno.test(`usage: the partition comes back from ${name}`, () =>
    always(
      300,
      fc.property(parts, (all) => {
        const said = { ...all };
        for (const part of unreported[name] ?? []) said[part] = 0;
        const usage = readUsage(write(all), plausibleUsage(200_000, 50_000));
        assert.deepEqual(usage, {
          counts: tokenCounts({
            uncachedInput: said.plain,
            cachedInput: said.read,
            cacheWrite: said.write,
            output: said.text + said.thought,
            reasoning: said.thought,
          }),
          plausible: { input: true, output: true },
        });
      }),
    ));
}

Deno.test("usage: whole counts within the bound are always accepted", () =>
  always(
    1_000,
    fc.property(bound, fc.nat(), fc.nat(), optional, optional, (most, prompt, output, ...parts) => {
      const usage = readUsage({
        prompt_tokens: prompt % (most.input + 1) + 1,
        completion_tokens: output % (most.output + 1),
        prompt_tokens_details: { cached_tokens: parts[0] as number },
        completion_tokens_details: { reasoning_tokens: parts[1] as number },
      }, most);
      assert.equal(usage?.counts.output, output % (most.output + 1));
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
        checkClasses(usage);
        assert.ok(usage.output <= Math.max(plausible.output, own));
        // Text is never free, and a prompt is never empty.
        if (own > 0) assert.ok(usage.output > 0);
        assert.ok(inputTokensOf(usage) > 0);
        const reports = usages.filter((text) => text !== "none")
          .map((text) => readUsage(parseJson(text), plausible)).filter((report) => report !== null);
        for (const report of reports) {
          if (report.plausible.output) assert.ok(usage.output >= report.counts.output);
        }
        if (reports.length === 0) {
          assert.equal(usage.source, "estimated");
          assert.equal(usage.uncachedInput, 7);
        }
      },
    ),
  ));

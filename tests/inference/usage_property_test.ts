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
const partNames = {
  plain: 50_000,
  read: 50_000,
  write: 20_000,
  hour: 5_000,
  audio: 3_000,
  image: 3_000,
  citation: 30_000,
  text: 20_000,
  thought: 20_000,
  speech: 2_000,
  picture: 2_000,
};
type Part = keyof typeof partNames;
type Parts = Record<Part, number>;

const parts = fc.record(
  Object.fromEntries(
    Object.entries(partNames).map(([name, max]) => [
      name,
      fc.integer({ min: name === "plain" || name === "text" ? 1 : 0, max }),
    ]),
  ) as Record<Part, fc.Arbitrary<number>>,
);

const cached: Part[] = ["plain", "read", "text", "thought"];
const written: Part[] = [...cached, "write"];

/** How providers and gateways write a partition down, and the parts that they can report. */
const dialects: Record<string, { has: Part[]; write(parts: Parts): Record<string, unknown> }> = {
  "OpenAI: everything inside": {
    has: [...written, "audio", "image", "speech", "picture"],
    write: ({ plain, read, write, audio, image, text, thought, speech, picture }) => ({
      prompt_tokens: plain + read + write + audio + image,
      completion_tokens: text + thought + speech + picture,
      total_tokens: plain + read + write + audio + image + text + thought + speech + picture,
      prompt_tokens_details: {
        cached_tokens: read,
        cache_write_tokens: write,
        audio_tokens: audio,
        image_tokens: image,
      },
      completion_tokens_details: {
        reasoning_tokens: thought,
        audio_tokens: speech,
        image_tokens: picture,
      },
    }),
  },
  "OpenAI's responses": {
    has: [...written, "hour"],
    write: ({ plain, read, write, hour, text, thought }) => ({
      input_tokens: plain + read + write + hour,
      input_tokens_details: {
        cached_tokens: read,
        cache_write_tokens: write + hour,
        cache_write_tokens_details: { ttl_30m_tokens: write, ttl_12h_tokens: hour },
      },
      output_tokens: text + thought,
      output_tokens_details: { reasoning_tokens: thought },
      total_tokens: plain + read + write + hour + text + thought,
    }),
  },
  "xAI: reasoning beside the completion": {
    has: cached,
    write: ({ plain, read, text, thought }) => ({
      prompt_tokens: plain + read,
      completion_tokens: text,
      total_tokens: plain + read + text + thought,
      prompt_tokens_details: { cached_tokens: read },
      completion_tokens_details: { reasoning_tokens: thought },
    }),
  },
  "Gemini's own names: thoughts beside the candidates": {
    has: [...cached, "audio", "image", "picture"],
    write: ({ plain, read, audio, image, text, thought, picture }) => ({
      promptTokenCount: plain + read + audio + image,
      promptTokensDetails: [
        { modality: "TEXT", tokenCount: plain + read },
        { modality: "AUDIO", tokenCount: audio },
        { modality: "IMAGE", tokenCount: image },
      ],
      cachedContentTokenCount: read,
      cacheTokensDetails: [{ modality: "TEXT", tokenCount: read }],
      candidatesTokenCount: text + picture,
      candidatesTokensDetails: [
        { modality: "TEXT", tokenCount: text },
        { modality: "IMAGE", tokenCount: picture },
      ],
      thoughtsTokenCount: thought,
      totalTokenCount: plain + read + audio + image + text + picture + thought,
    }),
  },
  "Gemini by OpenAI's names: only the total has the thoughts": {
    has: ["plain", "text", "thought"],
    write: ({ plain, text, thought }) => ({
      prompt_tokens: plain,
      completion_tokens: text,
      total_tokens: plain + text + thought,
    }),
  },
  "Anthropic: the cache beside the input, by its life": {
    has: [...written, "hour"],
    write: ({ plain, read, write, hour, text, thought }) => ({
      input_tokens: plain,
      cache_read_input_tokens: read,
      cache_creation_input_tokens: write + hour,
      cache_creation: { ephemeral_5m_input_tokens: write, ephemeral_1h_input_tokens: hour },
      output_tokens: text + thought,
      output_tokens_details: { thinking_tokens: thought },
    }),
  },
  "a gateway: Anthropic's cache beside, and in the total": {
    has: written,
    write: ({ plain, read, write, text, thought }) => ({
      prompt_tokens: plain,
      completion_tokens: text + thought,
      total_tokens: plain + read + write + text + thought,
      cache_read_input_tokens: read,
      cache_creation_input_tokens: write,
      completion_tokens_details: { reasoning_tokens: thought },
    }),
  },
  "a gateway: Anthropic's cache inside the prompt": {
    has: written,
    write: ({ plain, read, write, text, thought }) => ({
      prompt_tokens: plain + read + write,
      completion_tokens: text + thought,
      total_tokens: plain + read + write + text + thought,
      prompt_tokens_details: { cached_tokens: read },
      cache_read_input_tokens: read,
      cache_creation_input_tokens: write,
      completion_tokens_details: { reasoning_tokens: thought },
    }),
  },
  "DeepSeek: hits and misses": {
    has: cached,
    write: ({ plain, read, text, thought }) => ({
      prompt_tokens: plain + read,
      prompt_cache_hit_tokens: read,
      prompt_cache_miss_tokens: plain,
      completion_tokens: text + thought,
      total_tokens: plain + read + text + thought,
      completion_tokens_details: { reasoning_tokens: thought },
    }),
  },
  "Perplexity: citations and reasoning beside everything": {
    has: ["plain", "text", "thought", "citation"],
    write: ({ plain, text, thought, citation }) => ({
      prompt_tokens: plain,
      completion_tokens: text,
      total_tokens: plain + text,
      citation_tokens: citation,
      reasoning_tokens: thought,
      num_search_queries: 3,
    }),
  },
};

for (const [name, { has, write }] of Object.entries(dialects)) {
  Deno.test(`usage: the partition comes back from ${name}`, () =>
    always(
      300,
      fc.property(parts, (all) => {
        const said = { ...all };
        for (const part of Object.keys(partNames) as Part[]) {
          if (!has.includes(part)) said[part] = 0;
        }
        const usage = readUsage(write(said), plausibleUsage(200_000, 50_000));
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
        assert.deepEqual(usage?.plausible, { input: true, output: true });
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

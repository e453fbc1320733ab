import assert from "node:assert/strict";
import { joinReports } from "../../src/pricing/join_reports.ts";
import { readUsage } from "../../src/pricing/usage.ts";
import { usageOf } from "../support/chat.ts";
import { reportedModel, reportedRoutes } from "../support/usage_reports.ts";
import { verify } from "../support/verify.ts";
import { type Body, createWorld, type World } from "../support/world.ts";

const price = {
  input: "1",
  cachedInput: "0.1",
  cacheWrite: "1.25",
  output: "5",
  maxOutputTokens: 4_096,
};

async function worldOf(formats?: string[], own: Body = price): Promise<World> {
  const upstream = formats ? { url: "https://own.test/v1", apiKey: "sk-up", formats } : undefined;
  const pricing = { models: { [reportedModel]: own } };
  const world = await createWorld({ project: { pricing, ...(upstream ? { upstream } : {}) } });
  await world.deposit("ada", "10");
  return world;
}

/** What one call is charged. */
async function charge(world: World, path: string, body: Body): Promise<string> {
  const response = await world.call(path, { body, headers: { "x-service-user": "ada" } });
  const text = await response.text();
  assert.equal(response.status, 200, text);
  return (await usageOf(world))[0]?.amount ?? "";
}

const full = { completion_tokens: 300 };
/** Reports of a prompt of 2,000 tokens and a response of 300: what each costs. */
const reports: Record<string, Body[]> = {
  "the prompt and the total": [{ prompt_tokens: 2000, total_tokens: 2300 }],
  "the response and the total": [{ ...full, total_tokens: 2300 }],
  "the response null, with the total": [
    { prompt_tokens: 2000, completion_tokens: null, total_tokens: 2300 },
  ],
  "a prompt of zero, with the total": [{ prompt_tokens: 0, ...full, total_tokens: 2300 }],
  "a response of zero, with the total": [
    { prompt_tokens: 2000, completion_tokens: 0, total_tokens: 2300 },
  ],
  "zeros of reasoning beside them": [{
    prompt_tokens: 2000,
    completion_tokens: 0,
    total_tokens: 2300,
    completion_tokens_details: { reasoning_tokens: 0 },
  }],
  "other names: input": [{ input_tokens: 2000, total_tokens: 2300 }],
  "other names: output": [{ output_tokens: 300, total_tokens: 2300 }],
  "zero under one name, the count under another": [
    { prompt_tokens: 0, input_tokens: 2000, completion_tokens: 0, output_tokens: 300 },
  ],
  "Google's names without candidates": [{ promptTokenCount: 2000, totalTokenCount: 2300 }],
  "Google's names without a total": [
    { promptTokenCount: 2000, candidatesTokenCount: 100, thoughtsTokenCount: 200 },
  ],
  "Google's names with a prompt of zero": [{
    promptTokenCount: 0,
    candidatesTokenCount: 200,
    thoughtsTokenCount: 100,
    totalTokenCount: 2300,
  }],
  "Google's names in Python": [{ prompt_token_count: 2000, candidates_token_count: 300 }],
  "Cohere's": [{
    billed_units: { input_tokens: 2000, output_tokens: 300 },
    tokens: { input_tokens: 2100, output_tokens: 310 },
  }],
};

/** Reports that come one after the other in a stream. */
const streamed: Record<string, Body[]> = {
  "the prompt first, the response last": [{ prompt_tokens: 2000 }, full],
  "the response first, the prompt last": [full, { prompt_tokens: 2000 }],
  "halves by different names": [{ input_tokens: 2000 }, full],
  "halves with zeros": [
    { prompt_tokens: 2000, completion_tokens: 0 },
    { prompt_tokens: 0, completion_tokens: 300 },
  ],
  "the prompt first, the total last": [{ prompt_tokens: 2000 }, { total_tokens: 2300 }],
  "the total first, the response last": [{ total_tokens: 2300 }, full],
  "hidden reasoning in the last total": [
    { prompt_tokens: 2000, completion_tokens: 0, total_tokens: 2000 },
    { completion_tokens: 100, total_tokens: 2300 },
  ],
  "a growing response alone": [{ prompt_tokens: 2000 }, { completion_tokens: 100 }, full],
};

for (const [route, { path, formats, upstream, body }] of Object.entries(reportedRoutes)) {
  for (const [what, all] of Object.entries({ ...reports, ...streamed })) {
    const isWhole = what in reports;
    Deno.test(`halves of a report: ${what}: ${route}`, async () => {
      using world = await worldOf(formats);
      if (isWhole) {
        world.upstream.once(() => upstream.whole(all[0]));
        assert.equal(await charge(world, path, body(2000)), "0.0035");
      }
      world.upstream.once(() => upstream.stream(all));
      assert.equal(await charge(world, path, body(2000, { stream: true })), "0.0035", "streamed");
      assert.deepEqual((await verify(world)).faults, []);
    });
  }
}

/** Half of a report without a total: the other half is counted. */
const counted: [string, Body, (own: { input: number; output: number }) => Body][] = [
  ["the prompt alone", { prompt_tokens: 1500 }, ({ output }) => ({ input: 1500, output })],
  ["the response alone", { completion_tokens: 300 }, ({ input }) => ({ input, output: 300 })],
  ["the total alone", { total_tokens: 2300 }, ({ input }) => ({ input, output: 2300 - input })],
];
for (const [route, { path, formats, upstream, body }] of Object.entries(reportedRoutes)) {
  for (const [what, report, wanted] of counted) {
    Deno.test(`halves of a report: ${what}, the other is our count: ${route}`, async () => {
      using world = await worldOf(formats);
      world.upstream.once(() => upstream.whole(undefined));
      await charge(world, path, body(2000));
      const [own] = await usageOf(world);
      const ownCount = {
        input: own?.usage.uncachedInputTokens ?? 0,
        output: own?.usage.outputTokens ?? 0,
      };
      for (const stream of [false, true]) {
        world.upstream.once(() => stream ? upstream.stream([report]) : upstream.whole(report));
        await charge(world, path, body(2000, stream ? { stream } : {}));
        const [entry] = await usageOf(world);
        const { uncachedInputTokens: input, outputTokens: output, source } = entry?.usage ?? {};
        assert.deepEqual({ input, output }, wanted(ownCount), `${stream}`);
        assert.equal(source, "estimated");
      }
    });
  }
}

Deno.test("halves of a report: cached parts of a prompt that is not reported are part of our count", async () => {
  using world = await worldOf();
  const { path, upstream, body } = reportedRoutes.chat ?? assert.fail();
  const report = { completion_tokens: 300, prompt_tokens_details: { cached_tokens: 1000 } };
  world.upstream.once(() => upstream.whole(report));
  await charge(world, path, body(2000));
  const [entry] = await usageOf(world);
  assert.equal(entry?.usage.cachedInputTokens, 1000);
  assert.ok((entry?.usage.uncachedInputTokens ?? 0) > 1000);
});

const fast = {
  input: "3",
  cachedInput: "0.3",
  cacheWrite: "3.75",
  cacheWriteHour: "6",
  output: "15",
  maxOutputTokens: 4_096,
};
const of = (input: number, write: number | null, read: number | null, output: number): Body => ({
  input_tokens: input,
  ...(write === null ? {} : { cache_creation_input_tokens: write }),
  ...(read === null ? {} : { cache_read_input_tokens: read }),
  output_tokens: output,
});
const lives = (five: number, hour: number) => ({
  cache_creation: { ephemeral_5m_input_tokens: five, ephemeral_1h_input_tokens: hour },
});
/** Reports of one prompt that divide it anew, and what they cost. */
const partitions: [string, Body[], string][] = [
  ["written at first, read in the end", [of(10, 5000, 0, 1), of(10, 0, 5000, 20)], "0.00183"],
  ["read at first, written in the end", [of(10, 0, 5000, 1), of(10, 5000, 0, 20)], "0.01908"],
  [
    "the later one leaves out what is zero",
    [of(10, 5000, 0, 1), of(10, null, 5000, 20)],
    "0.00183",
  ],
  [
    "the first one has the lives of what was written",
    [{ ...of(10, 5000, 0, 1), ...lives(0, 5000) }, of(10, 0, 5000, 20)],
    "0.00183",
  ],
  [
    "the same partition: lives of the first one hold",
    [{ ...of(10, 5000, 0, 1), ...lives(0, 5000) }, of(10, 5000, 0, 20)],
    "0.03033",
  ],
  ["all of it plain at first", [of(5010, null, null, 1), of(10, 0, 5000, 20)], "0.00183"],
  ["the later one has no cache", [of(10, 0, 5000, 1), of(10, null, null, 20)], "0.00183"],
  ["the later one is a part", [of(10, 0, 5000, 1), { output_tokens: 20 }], "0.00183"],
  ["the cache alone comes later", [of(10, null, null, 1), of(0, null, 5000, 20)], "0.0018"],
  [
    "the cache without any count of the input",
    [of(10, 5000, 0, 1), {
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: 5000,
      output_tokens: 20,
    }],
    "0.00183",
  ],
  ["zeros at the end", [of(10, 0, 5000, 20), of(0, 0, 0, 0)], "0.00183"],
  [
    "three of them",
    [of(10, 5000, 0, 1), of(10, 5000, 0, 5), of(10, 0, 5000, 20)],
    "0.00183",
  ],
  ["a longer prompt in the end", [of(10, 5000, 0, 1), of(10, 0, 6000, 20)], "0.00213"],
];
for (const route of ["messages", "chat over messages", "chat", "messages over chat"]) {
  const { path, formats, upstream, body } = reportedRoutes[route] ?? assert.fail();
  for (const [what, all, cost] of partitions) {
    Deno.test(`partitions of a prompt: ${what}: ${route}`, async () => {
      using world = await worldOf(formats, fast);
      world.upstream.once(() => upstream.stream(all));
      assert.equal(await charge(world, path, body(4000, { stream: true })), cost);
      // The events of a stream are put together for a caller who asked for none.
      world.upstream.once(() => upstream.stream(all));
      assert.equal(await charge(world, path, body(4000)), cost);
    });
  }
}

Deno.test("halves of a report: joined, they read as one report of both", () => {
  const halves = [
    { prompt_tokens: 2000, prompt_tokens_details: { cached_tokens: 500 } },
    { completion_tokens: 300, completion_tokens_details: { reasoning_tokens: 100 } },
  ] as const;
  const whole = readUsage({ ...halves[0], ...halves[1] });
  assert.deepEqual(readUsage(joinReports(halves[0], halves[1])), whole);
  assert.deepEqual(readUsage(joinReports(halves[1], halves[0])), whole);
});

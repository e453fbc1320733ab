import assert from "node:assert/strict";
import { usageOf } from "../support/chat.ts";
import { sendForm } from "../support/media.ts";
import { sse } from "../support/upstream.ts";
import { reportedModel, reportedRoutes } from "../support/usage_reports.ts";
import { verify } from "../support/verify.ts";
import { type Body, createWorld } from "../support/world.ts";
import { wav } from "../pricing/files.ts";

const counts = { prompt_tokens: 1000, completion_tokens: 20, total_tokens: 1020 };
const details = (upstream_inference_cost: unknown) => ({
  cost_details: { upstream_inference_cost },
});
/** What OpenRouter states, and what is charged at a markup of 10 %. */
const stated: [string, Body, string][] = [
  ["its own price", { cost: 0.0018 }, "0.00198"],
  [
    "a fee beside a key of one's own",
    { cost: 0.0018, is_byok: true, ...details(0.036) },
    "0.04158",
  ],
  ["no fee beside a key of one's own", { cost: 0, is_byok: true, ...details(0.036) }, "0.0396"],
  ["a part of its price", { cost: 0.0378, is_byok: false, ...details(0.036) }, "0.04158"],
  ["a part, without a word on keys", { cost: 0.0378, ...details(0.036) }, "0.04158"],
  ["a key of one's own, and no inference", { cost: 0.0018, is_byok: true }, "0.00198"],
  [
    "a key of one's own, and null",
    { cost: 0.0018, is_byok: true, ...details(null) },
    "0.00198",
  ],
];

for (const [route, { path, formats, upstream, body }] of Object.entries(reportedRoutes)) {
  for (const [what, said, cost] of stated) {
    Deno.test(`stated costs: ${what}: ${route}`, async () => {
      const own = { input: "1", output: "2", priceFrom: "provider", markupPercent: "10" };
      const pricing = { models: { [reportedModel]: own } };
      const served = formats && { url: "https://own.test/v1", apiKey: "sk-up", formats };
      using world = await createWorld({
        project: { pricing, ...(served ? { upstream: served } : {}) },
      });
      await world.deposit("ada", "10");
      const report = { ...counts, ...said };
      for (const stream of [false, true]) {
        world.upstream.once(() => stream ? upstream.stream([report]) : upstream.whole(report));
        const fields = stream ? { stream } : {};
        const headers = { "x-service-user": "ada" };
        const response = await world.call(path, { body: body(20, fields), headers });
        assert.equal(response.status, 200, await response.text());
        assert.equal((await usageOf(world))[0]?.amount, cost);
      }
      assert.deepEqual((await verify(world)).faults, []);
    });
  }
}

const heard: [string, Body, string][] = [
  ["Mistral's seconds", { prompt_audio_seconds: 20, ...counts }, "0.2"],
  ["Mistral's seconds with a fraction", { prompt_audio_seconds: 20.2 }, "0.21"],
  ["null from Mistral: the length of the file", { prompt_audio_seconds: null, ...counts }, "0.04"],
  ["OpenAI's seconds", { type: "duration", seconds: 20 }, "0.2"],
];
for (const path of ["transcriptions", "translations"]) {
  for (const [what, usage, cost] of heard) {
    Deno.test(`stated seconds: ${what}: ${path}`, async () => {
      const models = { hears: { input: "0", output: "0", audioMinutes: "0.6" } };
      using world = await createWorld({ project: { pricing: { models } } });
      await world.deposit("ada", "10");
      const file = new Blob([new Uint8Array(wav({ seconds: 3 }))]);
      for (const stream of path === "transcriptions" ? [false, true] : [false]) {
        world.upstream.once(() =>
          stream
            ? sse([
              { type: "transcription.text.delta", text: "Hi" },
              { type: "transcription.done", model: "hears", text: "Hi", usage },
            ])
            : Response.json({ model: "hears", text: "Hi", usage })
        );
        const more = stream ? { stream: "true" } : {};
        const form = { model: "hears", user: "ada", file, ...more };
        await (await sendForm(world, `/v1/audio/${path}`, form)).text();
        assert.equal((await usageOf(world))[0]?.amount, cost, `${stream}`);
      }
    });
  }
}

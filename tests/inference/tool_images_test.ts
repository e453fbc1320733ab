import assert from "node:assert/strict";
import { usageOf } from "../support/chat.ts";
import {
  eventStream,
  message,
  respond,
  respondStream,
  tokens,
  upstreamEvents,
  upstreamResponse,
} from "../support/responses.ts";
import { verify } from "../support/verify.ts";
import { type Body, createWorld } from "../support/world.ts";

const base = { input: "3", output: "15", maxOutputTokens: 16_384 };
const call = (result: string) => ({
  id: "ig_1",
  type: "image_generation_call",
  status: "completed",
  result,
});
const used = (fields: Body) => ({ image_gen: fields, web_search: { num_requests: 0 } });

/** A price, what a tool has used, and what is charged for 1,000 tokens in and 20 out besides. */
const cases: [string, Body, Body | undefined, string][] = [
  ["its output", { imageOutput: "40" }, used({ output_tokens: 7024 }), "0.28426"],
  [
    "its output and its prompt",
    { imageOutput: "40", imageInput: "10" },
    used({
      input_tokens: 300,
      input_tokens_details: { text_tokens: 100, image_tokens: 200 },
      output_tokens: 7024,
      total_tokens: 7324,
    }),
    "0.28656",
  ],
  ["zeros", { imageOutput: "40" }, used({ input_tokens: 0, output_tokens: 0 }), "0.0033"],
  ["nothing", { imageOutput: "40" }, undefined, "0.0033"],
  ["what is no count", { imageOutput: "40" }, used({ output_tokens: "7024" }), "0.0033"],
  ["more than is possible", { imageOutput: "40" }, used({ output_tokens: 5e6 }), "40.0033"],
  ["its output, without a price of images", {}, used({ output_tokens: 7024 }), "0.0033"],
  [
    "its output and a price of its calls",
    { imageOutput: "40", toolCalls: { image_generation: "0.01" } },
    used({ output_tokens: 7024 }),
    "0.29426",
  ],
  [
    "its calls alone, which have a price",
    { toolCalls: { image_generation: "0.01" } },
    used({ output_tokens: 7024 }),
    "0.0133",
  ],
];

for (const [what, more, tool_usage, cost] of cases) {
  for (const isLarge of [false, true]) {
    Deno.test(`tool images: ${what} is charged${isLarge ? ", of what is not parsed" : ""}`, async () => {
      using world = await createWorld({
        project: { pricing: { models: { "test-model": { ...base, ...more } } } },
        ...(isLarge
          ? { env: { UPSTREAM_BODY_BYTES_MAX: "65536", UPSTREAM_EVENT_BYTES_MAX: "65536" } }
          : {}),
      });
      await world.deposit("ada", "1000");
      const result = "A".repeat(isLarge ? 200_000 : 40);
      const response = upstreamResponse({
        model: "test-model",
        output: [call(result), message("Here it is")],
        usage: tokens(1000, 20),
        ...(tool_usage ? { tool_usage } : {}),
      });
      const answers = [
        () => Response.json(response),
        () => eventStream(upstreamEvents(response)),
        () => eventStream(upstreamEvents(response)),
      ];
      for (const [index, answer] of (isLarge ? answers.slice(0, 2) : answers).entries()) {
        world.upstream.once(answer);
        if (index === 1) await (await respondStream(world)).text();
        else if (isLarge) await (await respondRaw(world)).text();
        else assert.equal((await respond(world)).status, 200);
        const [entry] = await usageOf(world);
        assert.equal(entry?.amount, cost, `${index}`);
        assert.equal(entry?.usage.source, "provider");
      }
      assert.deepEqual((await verify(world)).faults, []);
    });
  }
}

function respondRaw(world: Awaited<ReturnType<typeof createWorld>>): Promise<Response> {
  const body = { model: "test-model", input: "Hi", user: "ada" };
  return world.call("/v1/responses", { body });
}

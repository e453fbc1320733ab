import assert from "node:assert/strict";
import { chunk, completion, sse, usage, usageChunk } from "../../support/upstream.ts";
import { createWorld } from "../../support/world.ts";

const tier = { input: "2", output: "4" };
const models = {
  "test-model": { input: "1", output: "2", serviceTiers: { priority: tier, flex: tier } },
};
const upstream = { url: "https://upstream.test/v1", apiKey: "sk-up", formats: ["chat"] };

const words: [string, string | null, number][] = [
  ["default", "standard", 0.00002],
  ["auto", "standard", 0.00002],
  ["standard", "standard", 0.00002],
  ["priority", "priority", 0.00004],
  ["flex", null, 0.00004],
];
for (const [sent, told, cost] of words) {
  Deno.test(`messages over chat: the tier ${sent} is told in Anthropic's words, and charged as it is`, async () => {
    using world = await createWorld({ project: { pricing: { models }, upstream } });
    await world.deposit("ada", "1");
    world.upstream.reply(({ body: { stream } }) =>
      stream
        ? sse([chunk({ content: "Hi" }, "stop"), {
          ...usageChunk(usage(10, 5)),
          service_tier: sent,
        }])
        : completion({ service_tier: sent })
    );
    for (const stream of [false, true]) {
      const response = await world.call("/v1/messages", {
        body: {
          ...{ model: "test-model", max_tokens: 50, stream },
          messages: [{ role: "user", content: "Hi" }],
        },
        headers: { "x-service-user": "ada" },
        keepClock: true,
      });
      const text = await response.text();
      const frames = text.split("\n").filter((line) => line.startsWith("data: "));
      const all = stream ? frames.map((line) => JSON.parse(line.slice(6))) : [JSON.parse(text)];
      const { usage: last } = all.findLast(({ usage }) => usage !== undefined);
      assert.deepEqual([last.service_tier, last.cost], [told, cost]);
    }
  });
}

// Run by new_token_class_test.ts, with a class `videoInput` in the table of token classes.
import assert from "node:assert/strict";
import { exportColumns } from "../../src/export/kinds.ts";
import { priceFormOf } from "../../src/console/money/price_form.ts";
import { chat, usageOf } from "../support/chat.ts";
import { completion, usage } from "../support/upstream.ts";
import { adminKey, createWorld } from "../support/world.ts";

const price = { input: "1", output: "2", videoInput: "100", maxOutputTokens: 1000 };
using world = await createWorld({
  project: {
    pricing: { models: { "test-model": price } },
    limits: { user: { tokensPerMinute: 100 } },
  },
});
await world.deposit("ada", "1");
world.upstream.reply(() => completion({ usage: usage(10, 5, { video_tokens: 80 }) }));
const { status, response } = await chat(world, { max_tokens: 10 });
assert.equal(status, 200);
// 10 at 1, 5 at 2 and 80 at 100, per million.
assert.equal(response.headers.get("x-service-cost"), "0.00802");

const [entry] = await usageOf(world);
assert.equal(entry?.usage.videoInputTokens, 80, "the entry and its schema");
assert.equal(entry?.usage.price.videoInput, "100", "the price that it keeps");
// 95 of 100 tokens are used: the next request waits.
assert.equal((await chat(world)).status, 200);
assert.equal((await chat(world)).status, 429, "the rate limit");

const day = "from=2025-06-01&to=2026-06-01";
const { body: summary } = await world.json(
  `/v1/admin/projects/${world.projectId}/summary?${day}`,
  { key: adminKey },
);
assert.equal(summary.totals?.videoInput, 160, JSON.stringify(summary).slice(0, 300));
assert.ok(exportColumns.entries.includes("usage.videoInputTokens"), "CSV");
const { project } = await world.deps.kv.get(["project", world.projectId]).then(({ value }) => ({
  project: JSON.parse(new TextDecoder().decode(value ?? assert.fail())),
}));
assert.equal(
  priceFormOf(project).models[0]?.["videoInput" as "input"],
  "100",
  "the console's form",
);

const verify = () => world.json("/v1/admin/verify", { key: adminKey });
assert.deepEqual((await verify()).body.faults, [], "verify prices it alike");
console.log("everywhere");

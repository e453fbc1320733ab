import assert from "node:assert/strict";
import { base64, imageHeaders } from "../../pricing/image_headers.ts";
import { message, messagesWorld, send } from "../../support/messages.ts";
import type { Body } from "../../support/world.ts";

/** What is held for a request while its upstream answers, in currency units. */
async function heldFor(fields: Body, price: Body = {}): Promise<number> {
  using world = await messagesWorld({ price, balance: "100" });
  let held = "0";
  world.upstream.reply(async () => {
    held = (await world.balance("ada")).held;
    return message();
  });
  const { status, body } = await send(world, fields);
  assert.equal(status, 200, JSON.stringify(body));
  return Number(held);
}

for (
  const [balance, thinking, sent] of [
    ["10", { type: "enabled", budget_tokens: 31_999 }, { type: "enabled", budget_tokens: 31_999 }],
    ["0.1", { type: "enabled", budget_tokens: 31_999 }, "lowered"],
    ["0.1", { type: "enabled", budget_tokens: 2_000 }, { type: "enabled", budget_tokens: 2_000 }],
    ["0.1", { type: "adaptive" }, { type: "adaptive" }],
    ["0.1", { type: "disabled" }, { type: "disabled" }],
  ] as const
) {
  Deno.test(`messages bounds: with ${balance} a bound of 32,000 and ${JSON.stringify(thinking)} are fitted, not refused`, async () => {
    using world = await messagesWorld({ balance });
    const { status, response } = await send(world, { max_tokens: 32_000, thinking });
    assert.equal(status, 200);
    assert.equal(response.headers.get("x-service-paywall"), null);
    const { max_tokens: bound, thinking: got } = world.upstream.calls[0]?.body ?? {};
    assert.ok(balance === "10" ? bound === 32_000 : bound > 2_500 && bound < 3_500, `${bound}`);
    if (sent === "lowered") assert.deepEqual(got, { ...thinking, budget_tokens: bound - 1_024 });
    else assert.deepEqual(got, sent);
  });
}

Deno.test("messages bounds: thinking is switched off where its least budget does not fit", async () => {
  using world = await messagesWorld({ price: { maxOutputTokens: 1_000 } });
  const thinking = { type: "enabled", budget_tokens: 31_999 };
  await send(world, { max_tokens: 32_000, thinking });
  const { max_tokens: bound, thinking: got } = world.upstream.calls[0]?.body ?? {};
  assert.deepEqual([bound, got], [1_000, { type: "disabled" }]);
});

Deno.test("messages bounds: a budget that the caller's own bound does not allow is the caller's", async () => {
  using world = await messagesWorld();
  const thinking = { type: "enabled", budget_tokens: 5_000 };
  await send(world, { max_tokens: 4_000, thinking });
  assert.deepEqual(world.upstream.calls[0]?.body.thinking, thinking);
});

Deno.test("messages bounds: the longest response that an upstream allows is learned from its error", async () => {
  using world = await messagesWorld({ price: { maxOutputTokens: 10_000 } });
  const error = {
    type: "invalid_request_error",
    message: "max_tokens: 10000 > 8192, which is the maximum allowed number of output tokens",
  };
  world.upstream.once(() => Response.json({ type: "error", error }, { status: 400 }));
  const thinking = { type: "enabled", budget_tokens: 9_500 };
  assert.equal((await send(world, { max_tokens: 20_000, thinking })).status, 200);
  const { max_tokens: bound, thinking: got } = world.upstream.calls[1]?.body ?? {};
  assert.deepEqual([bound, got.budget_tokens], [8_192, 7_168]);
});

const user = (content: unknown) => ({ max_tokens: 1, messages: [{ role: "user", content }] });
const png = {
  type: "base64",
  media_type: "image/png",
  data: base64(imageHeaders.png?.(1_000, 1_000) ?? []),
};
const image = { type: "image", source: png };
const atUrl = (type: string) => ({ type, source: { type: "url", url: "https://a.example/b" } });

for (
  const [what, content] of [
    ["in a message", [image]],
    ["in a result of a tool", [{ type: "tool_result", tool_use_id: "a", content: [image] }]],
    ["in a document", [{ type: "document", source: { type: "content", content: [image] } }]],
    ["at an address", [atUrl("image")]],
  ] as const
) {
  Deno.test(`messages bounds: an image ${what} is held by its size, not its bytes`, async () => {
    const held = await heldFor(user(content));
    const padded = await heldFor(user([{ type: "text", text: "a" }]));
    const tokens = (held - padded) / 0.000_003_75;
    assert.ok(tokens > 1_200 && tokens < 8_000, `${tokens} tokens`);
  });
}

Deno.test("messages bounds: a document that is text is held by its bytes, one at an address as far as there is money", async () => {
  const text = "word ".repeat(10_000);
  const source = { type: "text", media_type: "text/plain", data: text };
  const held = await heldFor(user([{ type: "document", source }]));
  // The dearest class of input: a cache write.
  assert.ok(held >= 0.1875 && held < 0.19, `${held}`);
  const elsewhere = await heldFor(user([atUrl("document")]));
  assert.ok(elsewhere > 0.5, `${elsewhere}`);
});

Deno.test("messages bounds: a hold covers what the provider adds for tools", async () => {
  const plain = await heldFor({ max_tokens: 1 });
  const bash = await heldFor({
    max_tokens: 1,
    tools: [{ type: "bash_20250124", name: "bash" }],
  });
  assert.ok((bash - plain) / 0.000_003_75 > 600 + 245, `${bash - plain}`);
});

const texts: [string, Body][] = [
  ["the system prompt", { system: "TEXT" }],
  ["blocks of the system prompt", { system: [{ type: "text", text: "TEXT" }] }],
  ["a tool's description", { tools: [{ name: "a", description: "TEXT", input_schema: {} }] }],
  ["a tool's schema", { tools: [{ name: "a", input_schema: { description: "TEXT" } }] }],
  ["a message", user("TEXT")],
  ["a block", user([{ type: "text", text: "TEXT" }])],
  ["a result of a tool", user([{ type: "tool_result", tool_use_id: "a", content: "TEXT" }])],
  [
    "a block in a result of a tool",
    user([
      { type: "tool_result", tool_use_id: "a", content: [{ type: "text", text: "TEXT" }] },
    ]),
  ],
  ["the input of a tool", user([{ type: "tool_use", id: "a", name: "a", input: { a: "TEXT" } }])],
  ["thinking", user([{ type: "thinking", thinking: "TEXT", signature: "s" }])],
  ["encrypted thinking", user([{ type: "redacted_thinking", data: "TEXT" }])],
  [
    "a search result",
    user([{
      type: "search_result",
      source: "a",
      title: "b",
      content: [{ type: "text", text: "TEXT" }],
    }]),
  ],
  [
    "a document",
    user([
      { type: "document", source: { type: "text", media_type: "text/plain", data: "TEXT" } },
    ]),
  ],
  ["a format", { output_config: { format: { type: "json_schema", schema: { a: "TEXT" } } } }],
];
for (const [what, fields] of texts) {
  Deno.test(`messages bounds: the text of ${what} is counted where nothing is reported`, async () => {
    using world = await messagesWorld();
    world.upstream.reply(() => message({ usage: null }));
    const text = JSON.stringify("word ".repeat(2_000)).slice(1, -1);
    const whole = JSON.parse(JSON.stringify(fields).replaceAll("TEXT", text));
    const { body } = await send(world, { ...whole, max_tokens: 1_000 });
    assert.ok(body.usage.input_tokens >= 2_000, JSON.stringify(body.usage));
  });
}

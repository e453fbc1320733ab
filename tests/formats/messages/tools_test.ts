import assert from "node:assert/strict";
import { usageOf } from "../../support/chat.ts";
import {
  claudeUsage,
  closed,
  ended,
  message,
  messageStream,
  messagesWorld,
  opened,
  readMessageEvents,
  said,
  send,
  sendStream,
  start,
  stopped,
} from "../../support/messages.ts";
import type { Body } from "../../support/world.ts";

const own = { name: "look", description: "Looks", input_schema: { type: "object" } };
const search = { type: "web_search_20250305", name: "web_search" };
const fetching = { type: "web_fetch_20250910", name: "web_fetch" };
const priced = (tools: Body, more: Body = {}) => ({
  price: { toolCalls: tools, ...more },
});

const callersRun = [
  own,
  { ...own, type: "custom" },
  { type: "bash_20250124", name: "bash" },
  { type: "text_editor_20250728", name: "str_replace_based_edit_tool" },
  { type: "memory_20250818", name: "memory" },
  { type: "computer_20251124", name: "computer", display_width_px: 1, display_height_px: 1 },
  { type: "computer_toolset_20260801", name: "computer" },
  { type: "browser_toolset_20260801", name: "browser" },
  { type: "tool_search_tool_regex_20251119", name: "tool_search_tool_regex" },
];

Deno.test("messages tools: tools that the caller runs are passed on, and cost nothing", async () => {
  using world = await messagesWorld();
  const { status, response } = await send(world, { tools: callersRun });
  assert.equal(status, 200);
  assert.equal(response.headers.get("x-service-removed-tools"), null);
  assert.deepEqual(world.upstream.calls[0]?.body.tools, callersRun);
});

for (
  const type of [
    "web_search_20260318",
    "web_fetch_20250910",
    "code_execution_20250825",
    "advisor_20260301",
    "mcp_toolset",
    "new_tool_20270101",
    "bad\u0000 täg",
  ]
) {
  Deno.test(`messages tools: ${JSON.stringify(type)} without a price is removed and named`, async () => {
    using world = await messagesWorld();
    const tools = [{ type, name: "hosted" }, own];
    const { status, response } = await send(world, { tools, tool_choice: { type: "auto" } });
    assert.equal(status, 200);
    assert.match(response.headers.get("x-service-removed-tools") ?? "", /^[\w.-]+$/);
    const { tools: sent, tool_choice: choice } = world.upstream.calls[0]?.body ?? {};
    assert.deepEqual([sent, choice], [[own], { type: "auto" }]);
    const alone = await send(world, {
      tools: [{ type, name: "hosted" }],
      tool_choice: { type: "auto" },
    });
    assert.equal(alone.status, 200);
    const body = world.upstream.calls[1]?.body ?? {};
    assert.equal("tools" in body || "tool_choice" in body, false);
  });
}

for (const choice of [{ type: "tool", name: "web_search" }, { type: "any" }]) {
  Deno.test(`messages tools: ${JSON.stringify(choice)} that only a removed tool could meet is 400`, async () => {
    using world = await messagesWorld();
    const { status, body } = await send(world, { tools: [search], tool_choice: choice });
    assert.equal(status, 400);
    assert.equal(body.error.param, "tool_choice");
    assert.ok(body.error.message.includes("web_search"));
    assert.equal(world.upstream.calls.length, 0);
  });
}

Deno.test("messages tools: servers of tools without a price are removed", async () => {
  using world = await messagesWorld();
  const servers = [{ type: "url", url: "https://tools.example", name: "a" }];
  const { response } = await send(world, { mcp_servers: servers });
  assert.equal(response.headers.get("x-service-removed-tools"), "mcp");
  assert.equal("mcp_servers" in (world.upstream.calls[0]?.body ?? {}), false);
});

Deno.test("messages tools: what the project allows is passed on", async () => {
  using world = await messagesWorld({ project: { allowedFields: ["tools", "mcp_servers"] } });
  const servers = [{ type: "url", url: "https://tools.example", name: "a" }];
  const { response } = await send(world, { tools: [search], mcp_servers: servers });
  assert.equal(response.headers.get("x-service-removed-tools"), null);
  const { tools, mcp_servers: sent } = world.upstream.calls[0]?.body ?? {};
  assert.deepEqual([tools, sent], [[{ ...search, max_uses: 10 }], servers]);
});

for (
  const [what, tools, uses, removed] of [
    ["one", [search], [4], null],
    ["one with a bound", [{ ...search, max_uses: 2 }], [2], null],
    ["one with a higher bound", [{ ...search, max_uses: 100 }], [4], null],
    ["two", [search, fetching], [2, 2], null],
    ["two, one with a bound", [{ ...search, max_uses: 1 }, fetching], [1, 3], null],
    ["one that may not be called", [{ ...search, max_uses: 0 }, fetching], [4], "web_search"],
  ] as const
) {
  Deno.test(`messages tools: calls of ${what} are bounded by what is held`, async () => {
    using world = await messagesWorld(
      priced({ web_search: "0.01", web_fetch: "0.02" }, { maxToolCalls: 4 }),
    );
    const { response } = await send(world, { tools });
    const sent: Body[] = world.upstream.calls[0]?.body.tools;
    assert.deepEqual(sent.map(({ max_uses: most }) => most), uses);
    assert.equal(response.headers.get("x-service-removed-tools"), removed);
  });
}

Deno.test("messages tools: a hold covers the calls, and the reported ones are charged", async () => {
  using world = await messagesWorld(priced({ web_search: "0.01" }));
  let held = "";
  const used = { server_tool_use: { web_search_requests: 3, web_fetch_requests: 0 } };
  world.upstream.once(async () => {
    held = (await world.balance("ada")).held;
    return message({ usage: claudeUsage(10, 5, used) });
  });
  const { body } = await send(world, { max_tokens: 1, tools: [search] });
  assert.ok(Number(held) >= 0.1, held);
  assert.equal(body.usage.cost_exact, "0.030105");
  const [entry] = await usageOf(world);
  assert.deepEqual(entry?.usage.toolCalls, { web_search: 3 });
});

Deno.test("messages tools: what a search has the model read is held as far as there is money, and charged", async () => {
  for (const [balance, most] of [["10", 5], ["0.5", 0.5]] as const) {
    using world = await messagesWorld({
      ...priced({ web_search: "0.01" }, { maxToolCalls: 1 }),
      balance,
    });
    let held = 0;
    const used = { server_tool_use: { web_search_requests: 1 } };
    world.upstream.once(async () => {
      held = Number((await world.balance("ada")).held);
      return message({ usage: claudeUsage(100_000, 100, used) });
    });
    const { body } = await send(world, { tools: [search] });
    assert.ok(held > most / 2 && held <= most, `${held}`);
    assert.equal(body.usage.cost_exact, "0.3115");
    const [entry] = await usageOf(world);
    assert.equal(entry?.usage.source, "provider");
  }
});

const found = {
  type: "web_search_tool_result",
  tool_use_id: "srvtoolu_1",
  content: [{ type: "web_search_result", url: "https://a.example", encrypted_content: "a" }],
};
const failed = {
  ...found,
  content: { type: "web_search_tool_result_error", error_code: "unavailable" },
};

Deno.test("messages tools: calls that no usage reports are counted by their results", async () => {
  using world = await messagesWorld(priced({ web_search: "0.01" }));
  const content = [found, failed, found, { type: "text", text: "Hello there" }];
  world.upstream.once(() => message({ content }));
  const { body } = await send(world, { tools: [search] });
  assert.equal(body.usage.cost_exact, "0.020105");
  world.upstream.once(() =>
    messageStream([
      start(),
      ...[found, failed, found].flatMap((block, index) => [opened(index, block), closed(index)]),
      opened(3),
      said(3, "Hello there"),
      closed(3),
      ended("end_turn"),
      stopped,
    ])
  );
  const events = await readMessageEvents(await sendStream(world, { tools: [search] }));
  assert.equal(events.at(-2)?.usage.cost_exact, "0.020105");
});

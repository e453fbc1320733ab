import assert from "node:assert/strict";
import { usageOf } from "../../support/chat.ts";
import {
  eventStream,
  message,
  readResponseEvents,
  respond,
  respondStream,
  tokens,
  upstreamEvents,
  upstreamResponse,
} from "../../support/responses.ts";
import { type Body, createWorld, type World } from "../../support/world.ts";

const ownTool = { type: "function", name: "f", parameters: {}, strict: false };
const namespace = { type: "namespace", name: "n", description: "d", tools: [ownTool] };
const webSearch = { type: "web_search", external_web_access: false };
const toolCalls = {
  web_search: "0.01",
  file_search: "0.002",
  code_interpreter: "0.03",
  image_generation: "0.04",
};
const priced = { pricing: { models: { "test-model": { input: "1", output: "2", toolCalls } } } };

async function paidWorld(project: Body = {}): Promise<World> {
  const world = await createWorld({ project });
  await world.deposit("ada", "10");
  world.upstream.reply(() => Response.json(upstreamResponse()));
  return world;
}

const sentOf = (world: World): Body => world.upstream.calls.at(-1)?.body ?? assert.fail();

Deno.test("responses tools: those of Codex work: what the caller runs stays, what has no price goes", async () => {
  using world = await paidWorld();
  const own = [
    ownTool,
    namespace,
    { type: "custom", name: "apply" },
    { type: "local_shell" },
    { type: "apply_patch" },
    { type: "shell", environment: { type: "local" } },
    { type: "shell" },
    { type: "computer_use_preview", display_width: 1, display_height: 1, environment: "linux" },
    { type: "tool_search" },
  ];
  const hosted = [
    webSearch,
    { type: "image_generation", output_format: "png" },
    { type: "code_interpreter", container: { type: "auto" } },
    { type: "shell", environment: { type: "container_auto" } },
    { type: "mcp", server_label: "s", server_url: "https://mcp.test" },
    { type: "programmatic_tool_calling" },
    { type: "web_search_preview_2025_03_11" },
    { type: "brand_new" },
  ];
  const { status, response } = await respond(world, { tools: [...hosted, ...own] });
  assert.equal(status, 200);
  assert.deepEqual(sentOf(world).tools, own);
  assert.equal("max_tool_calls" in sentOf(world), false);
  assert.equal(
    response.headers.get("x-service-removed-tools"),
    "web_search, image_generation, code_interpreter, shell, mcp, programmatic_tool_calling, " +
      "brand_new",
  );
});

Deno.test("responses tools: where none is left, the list and the choice go too", async () => {
  using world = await paidWorld();
  await respond(world, { tools: [webSearch], tool_choice: "auto" });
  assert.deepEqual(["tools" in sentOf(world), "tool_choice" in sentOf(world)], [false, false]);
});

for (
  const choice of [
    "required",
    { type: "web_search" },
    { type: "web_search_preview" },
    { type: "allowed_tools", mode: "auto", tools: [{ type: "web_search" }] },
  ]
) {
  Deno.test(`responses tools: the choice ${JSON.stringify(choice)} of one without a price is 400`, async () => {
    using world = await paidWorld();
    const { status, body } = await respond(world, { tools: [webSearch], tool_choice: choice });
    assert.equal(status, 400);
    assert.equal(body.error.param, "tool_choice");
    assert.match(body.error.message, /web_search.*no price/);
    assert.equal(world.upstream.calls.length, 0);
  });
}

Deno.test("responses tools: hidden ones, in namespaces and in items, are removed as well", async () => {
  using world = await paidWorld();
  const input = [
    { role: "user", content: "Hi" },
    { type: "additional_tools", role: "developer", tools: [webSearch, ownTool] },
    { type: "tool_search_output", call_id: "c", tools: [webSearch] },
  ];
  await respond(world, { input, tools: [{ ...namespace, tools: [webSearch, ownTool] }] });
  const { input: sent, tools } = sentOf(world);
  assert.deepEqual(tools, [namespace]);
  assert.deepEqual(sent[1].tools, [ownTool]);
  assert.deepEqual(sent[2].tools, []);
});

Deno.test("responses tools: with a price they stay, bounded, and the hold covers their calls", async () => {
  using world = await paidWorld(priced);
  let held = 0;
  world.upstream.reply(async () => {
    held = Number((await world.balance("ada")).held);
    return Response.json(upstreamResponse());
  });
  await respond(world, { tools: [webSearch], max_output_tokens: 100 });
  assert.deepEqual([sentOf(world).tools, sentOf(world).max_tool_calls], [[webSearch], 10]);
  // What the tools read is not known: it is held as far as there is money.
  assert.ok(held > 0.4, `${held}`);
  await respond(world, { tools: [webSearch], max_tool_calls: 3 });
  assert.equal(sentOf(world).max_tool_calls, 3);
  await respond(world, { tools: [webSearch], max_tool_calls: 50 });
  assert.equal(sentOf(world).max_tool_calls, 10);
});

Deno.test("responses tools: allowed ones stay without a price", async () => {
  using world = await paidWorld({ allowedFields: ["tools"] });
  const { response } = await respond(world, { tools: [webSearch], tool_choice: "required" });
  assert.deepEqual(sentOf(world).tools, [webSearch]);
  assert.equal(response.headers.get("x-service-removed-tools"), null);
});

Deno.test("responses tools: files and containers of others are refused", async () => {
  using world = await paidWorld(priced);
  for (
    const [tool, param] of [
      [{ type: "code_interpreter", container: "cntr_1" }, "tools.0.container"],
      [
        { type: "code_interpreter", container: { type: "auto", file_ids: ["file-1"] } },
        "tools.0.container.file_ids",
      ],
      [
        { type: "image_generation", input_image_mask: { file_id: "file-1" } },
        "tools.0.input_image_mask.file_id",
      ],
    ] as const
  ) {
    const { status, body } = await respond(world, { tools: [tool] });
    assert.deepEqual([status, body.error?.param], [400, param]);
  }
});

const search = (action: string, id: string) => ({
  id,
  type: "web_search_call",
  status: "completed",
  action: { type: action, query: "q" },
});
const code = (id: string, container: string) => ({
  id,
  type: "code_interpreter_call",
  status: "completed",
  code: "1",
  container_id: container,
  outputs: [],
});
const output = [
  search("search", "ws_1"),
  search("open_page", "ws_2"),
  search("search", "ws_3"),
  { id: "fs_1", type: "file_search_call", status: "completed", queries: ["q"], results: null },
  code("ci_1", "cntr_1"),
  code("ci_2", "cntr_1"),
  code("ci_3", "cntr_2"),
  { id: "ig_1", type: "image_generation_call", status: "completed", result: "AAAA" },
  message("Found"),
];
const hostedTools = Object.keys(toolCalls).map((type) => ({ type }));

for (
  const [what, more, amount] of [
    // 2 searches, a search of files, 2 containers, an image, and 0.00002 of tokens.
    ["counted", {}, "0.12202"],
    ["reported", { tool_usage: { web_search: { num_requests: 5 } } }, "0.15202"],
    ["counted without usage", { usage: null }, null],
  ] as const
) {
  Deno.test(`responses tools: calls that are ${what} are charged, whole and streamed`, async () => {
    using world = await paidWorld(priced);
    const response = upstreamResponse({ output, ...more });
    world.upstream.once(() => Response.json(response));
    const { body } = await respond(world, { tools: hostedTools });
    world.upstream.once(() => eventStream(upstreamEvents(response)));
    const events = await readResponseEvents(await respondStream(world, { tools: hostedTools }));
    world.upstream.once(() => eventStream(upstreamEvents(response)));
    await respond(world, { tools: hostedTools });
    const amounts = (await usageOf(world)).map((entry) => entry.amount);
    if (amount) assert.deepEqual(amounts, [amount, amount, amount]);
    else assert.ok(amounts.every((each) => Number(each) > 0.122), `${amounts}`);
    assert.equal("tool_usage" in body.usage, false);
    assert.deepEqual(events.at(-1)?.response.tool_usage, response.tool_usage);
  });
}

Deno.test("responses tools: what tools made the model read is charged as reported", async () => {
  using world = await paidWorld(priced);
  world.upstream.reply(() => Response.json(upstreamResponse({ output, usage: tokens(90_000, 5) })));
  const { body } = await respond(world, { tools: hostedTools });
  assert.equal(body.usage.input_tokens, 90_000);
  assert.equal((await usageOf(world))[0]?.usage.source, "provider");
});

Deno.test("responses tools: calls before a stream breaks off are charged", async () => {
  using world = await paidWorld(priced);
  const events = upstreamEvents(upstreamResponse({ output }));
  world.upstream.once(() => eventStream(events.slice(0, -4)));
  const got = await readResponseEvents(await respondStream(world, { tools: hostedTools }));
  assert.equal(got.at(-1)?.type, "error");
  assert.ok(Number((await usageOf(world))[0]?.amount) > 0.122);
});

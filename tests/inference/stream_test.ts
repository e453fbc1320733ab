import assert from "node:assert/strict";
import { chatStream, openReader, usageOf } from "../support/chat.ts";
import {
  chunk,
  completion,
  fedStream,
  helloStream,
  readEvents,
  sse,
  sseBytes,
  usage,
  usageChunk,
} from "../support/upstream.ts";
import { createWorld, type World } from "../support/world.ts";

const include = { stream_options: { include_usage: true } };
const finished = { delta: {}, logprobs: null, index: 0, finish_reason: "stop" };

// deno-lint-ignore no-explicit-any -- events as a caller reads them
function contentOf(events: any[]): string {
  return events.map((event) => event.choices?.[0]?.delta?.content ?? "").join("");
}

/** One charge, of what the upstream reported: 10 in, 5 out. */
async function assertChargedOnce(world: World, amount = "0.00002"): Promise<void> {
  const entries = await usageOf(world);
  assert.deepEqual(entries.map((entry) => entry.amount), [amount]);
  assert.equal((await world.balance("ada")).held, "0");
}

for (const stream_options of [undefined, null, {}, { include_usage: false }]) {
  const said = JSON.stringify(stream_options) ?? "nothing";
  Deno.test(`chat stream: with stream_options ${said} no usage is sent, and it is charged`, async () => {
    using world = await createWorld();
    await world.deposit("ada", "1");
    world.upstream.once(helloStream);
    const response = await chatStream(world, { stream_options });
    assert.equal(response.headers.get("content-type"), "text/event-stream; charset=utf-8");
    assert.equal(response.headers.get("cache-control"), "no-store, no-transform");
    assert.equal(response.headers.get("x-accel-buffering"), "no"); // case 47
    const events = await readEvents(response);
    assert.deepEqual(events, [ // case 40, case 42
      chunk({ role: "assistant", content: "" }),
      chunk({ content: "Hello" }),
      chunk({ content: " there" }),
      chunk({}, "stop"),
      "[DONE]",
    ]);
    assert.deepEqual(world.upstream.calls[0]?.body.stream_options, { include_usage: true });
    await assertChargedOnce(world);
    const [entry] = await usageOf(world);
    assert.equal(response.headers.get("x-service-activity-id"), entry?.id);
    assert.equal(entry?.usage.source, "provider");
  });
}

Deno.test("chat stream: usage is sent once, last, if it was requested", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  world.upstream.once(helloStream);
  const events = await readEvents(await chatStream(world, include));
  assert.deepEqual(events, [ // case 41
    { ...chunk({ role: "assistant", content: "" }), usage: null },
    { ...chunk({ content: "Hello" }), usage: null },
    { ...chunk({ content: " there" }), usage: null },
    { ...chunk({}, "stop"), usage: null },
    usageChunk({ ...usage(10, 5), cost: 0.00002, cost_exact: "0.00002" }),
    "[DONE]",
  ]);
  await assertChargedOnce(world);
});

Deno.test("chat stream: what the upstream sends beside the usage reaches the caller", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const beside = { timings: { predicted_ms: 12 }, citations: ["https://a.test/"] };
  world.upstream.once(() =>
    sse([chunk({ content: "Hi" }), chunk({}, "stop"), { ...usageChunk(), ...beside }])
  );
  const last = (await readEvents(await chatStream(world, include))).at(-2);
  assert.deepEqual(last, {
    ...usageChunk({ ...usage(10, 5), cost: 0.00002, cost_exact: "0.00002" }),
    ...beside,
  });
});

Deno.test("chat stream: a chunk with something beside choices and usage is passed on", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  // As Azure sends it first.
  const judged = { ...chunk({}), choices: [], prompt_filter_results: [{ prompt_index: 0 }] };
  world.upstream.once(() => sse([judged, chunk({ content: "Hi" }), chunk({}, "stop")]));
  assert.deepEqual((await readEvents(await chatStream(world)))[0], judged);
});

Deno.test("chat stream: other stream options are passed on", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  world.upstream.once(helloStream);
  await readEvents(await chatStream(world, { stream_options: { include_obfuscation: false } }));
  assert.deepEqual(world.upstream.calls[0]?.body.stream_options, {
    include_obfuscation: false,
    include_usage: true,
  });
});

const reportings: [string, unknown[]][] = [
  ["on every chunk", [
    chunk({ content: "Hi" }, null, { usage: usage(10, 1) }),
    chunk({}, "stop", { usage: usage(10, 5) }),
  ]],
  ["in several chunks", [
    chunk({ content: "Hi" }),
    chunk({}, "stop"),
    usageChunk(usage(10, 3)),
    usageChunk(usage(10, 5)),
  ]],
  ["before the end of the text", [
    usageChunk(usage(10, 5)),
    chunk({ content: "Hi" }),
    chunk({}, "stop"),
  ]],
];

for (const [name, sent] of reportings) {
  Deno.test(`chat stream: usage ${name} reaches the caller at most once`, async () => { // case 44
    using world = await createWorld();
    await world.deposit("ada", "1");
    for (const asked of [{}, include]) {
      world.upstream.once(() => sse(sent));
      const events = await readEvents(await chatStream(world, asked));
      const used = events.filter((event) => event.usage);
      assert.equal(used.length, asked === include ? 1 : 0);
      if (asked === include) {
        assert.deepEqual(used[0].choices, []);
        assert.deepEqual(used[0].usage, { ...usage(10, 5), cost: 0.00002, cost_exact: "0.00002" });
        assert.equal(events.at(-2), used[0]);
      } else assert.ok(events.every((event) => event === "[DONE]" || !("usage" in event)));
      assert.equal(contentOf(events), "Hi");
    }
    assert.equal((await world.balance("ada")).balance, "0.99996");
  });
}

Deno.test("chat stream: several choices keep their positions, and are charged together", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const part = (index: number, delta: Record<string, unknown>, finish: string | null = null) => ({
    ...chunk({}),
    choices: [{ index, delta, logprobs: null, finish_reason: finish }],
  });
  const said = { role: "assistant", content: "one two three four" };
  const sent = [0, 1].map((index) => part(index, said));
  const ends = [0, 1].map((index) => part(index, {}, "stop"));
  const used = [usageChunk(usage(10, 4)), usageChunk(usage(10, 4))];
  world.upstream.once(() => sse([...sent, ...ends, ...used]));
  const events = await readEvents(await chatStream(world, { n: 2 }));
  assert.deepEqual(events, [...sent, ...ends, "[DONE]"]);
  await assertChargedOnce(world, "0.000026"); // case 31, case 44: 10 + 2 * 4 * 2
});

Deno.test("chat stream: JSON from a server that ignores stream is streamed", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  world.upstream.reply(() => completion());
  const events = await readEvents(await chatStream(world, include));
  assert.equal(contentOf(events), "Hello there"); // case 45
  assert.ok(events.every((event) => event === "[DONE]" || event.id === "chatcmpl-up"));
  assert.equal(events[0].object, "chat.completion.chunk");
  assert.equal(events[0].choices[0].delta.role, "assistant");
  assert.equal(events.at(-3).choices[0].finish_reason, "stop");
  assert.deepEqual(events.at(-2).usage, { ...usage(10, 5), cost: 0.00002, cost_exact: "0.00002" });
  assert.equal(events.at(-1), "[DONE]");
  await assertChargedOnce(world);
});

for (const type of [null, "text/plain", "application/octet-stream", "application/json"]) {
  Deno.test(`chat stream: events with the type ${type ?? "nothing"} are read as events`, async () => {
    using world = await createWorld();
    await world.deposit("ada", "1");
    world.upstream.once(() => {
      const { body } = helloStream();
      return new Response(body, { headers: type === null ? {} : { "content-type": type } });
    });
    const events = await readEvents(await chatStream(world));
    const said = events.map((event) => event.choices?.[0]?.delta.content ?? "").join("");
    assert.deepEqual([said, events.at(-1)], ["Hello there", "[DONE]"]);
    assert.equal((await usageOf(world))[0]?.usage.source, "provider");
  });
}

for (const first of ["\n", " \n\n", "d", "data:"]) {
  Deno.test(`chat stream: unlabelled events that start with ${JSON.stringify(first)} are read as events`, async () => {
    using world = await createWorld();
    await world.deposit("ada", "1");
    world.upstream.once(async () => {
      const text = (first.trim() === "" ? first : "") + await helloStream().text();
      const parts = [text.slice(0, first.length), text.slice(first.length)];
      const { body } = sseBytes(parts.map((part) => new TextEncoder().encode(part)));
      return new Response(body);
    });
    const events = await readEvents(await chatStream(world));
    const said = events.map((event) => event.choices?.[0]?.delta.content ?? "").join("");
    assert.deepEqual([said, events.at(-1)], ["Hello there", "[DONE]"]);
    assert.equal((await usageOf(world))[0]?.usage.source, "provider");
  });
}

Deno.test("chat stream: the choices of a JSON response are sent once, with their log probabilities", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const message = { role: "assistant", content: "Hi" };
  const logprobs = { content: [{ token: "Hi", logprob: -0.1, bytes: null, top_logprobs: [] }] };
  const choices = [{ message, logprobs }, { message }];
  world.upstream.once(() => completion({ choices }));
  const events = await readEvents(await chatStream(world, { n: 2 }));
  const delta = { ...message, refusal: null };
  assert.deepEqual(events.slice(0, -1).map((event) => event.choices[0]), [
    { index: 0, logprobs, delta, finish_reason: null },
    { index: 0, delta: {}, finish_reason: "stop" },
    { index: 1, logprobs: null, delta, finish_reason: null },
    { index: 1, delta: {}, finish_reason: "stop" },
  ]);
});

Deno.test("chat stream: tool calls in a JSON response get the indexes that deltas need", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const call = { id: "c", type: "function", function: { name: "f", arguments: "{}" } };
  const message = { role: "assistant", content: null, tool_calls: [call] };
  world.upstream.once(() =>
    completion({ choices: [{ index: 0, message, finish_reason: "tool_calls" }] })
  );
  const events = await readEvents(await chatStream(world));
  assert.deepEqual(events[0].choices[0].delta.tool_calls, [{ index: 0, ...call }]); // case 45
  assert.equal(events[1].choices[0].finish_reason, "tool_calls");
});

Deno.test("chat stream: deltas of tool calls are passed on unchanged", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const call = (index: number, id: string, called: Record<string, string>) => ({
    ...{ index, id, type: "function", function: called },
  });
  const deltas = [
    { role: "assistant", content: null, tool_calls: [call(0, "a", { name: "f", arguments: "" })] },
    { tool_calls: [{ index: 0, function: { arguments: "{}" } }] },
    { tool_calls: [call(1, "b", { name: "g", arguments: '{"x' })] },
    { tool_calls: [{ index: 1, function: { arguments: '":1}' } }] },
  ];
  const sent = [...deltas.map((delta) => chunk(delta)), chunk({}, "tool_calls")];
  world.upstream.once(() => sse(sent));
  const events = await readEvents(await chatStream(world));
  assert.deepEqual(events, [...sent, "[DONE]"]); // case 48
  assert.equal((await usageOf(world))[0]?.usage.source, "estimated"); // case 32
});

const text = "na\u00efve \u65e5\u672c \ud83d\udc69\u200d\ud83d\ude80 caf\u00e9";
const awkwardFrames = [
  ": comment\r\n\r\n",
  `data:${JSON.stringify(chunk({ role: "assistant", content: "" }))}\r\n\r\n`,
  `event: message\nid: 7\ndata: ${JSON.stringify(chunk({ content: text }))}\n\n`,
  "retry: 10\n\n: OPENROUTER PROCESSING\n\n",
  `data: ${JSON.stringify(chunk({}, "stop"))}\r\r`,
  `data: ${JSON.stringify(usageChunk())}\n\n`,
  "data: [DONE]",
].join("");

for (const size of [1, 2, 3, 7, 64, 1e6]) {
  Deno.test(`chat stream: frames of any kind, split every ${size} bytes, give the same deltas`, async () => {
    using world = await createWorld();
    await world.deposit("ada", "1");
    const bytes = new TextEncoder().encode(awkwardFrames);
    const parts: Uint8Array[] = [];
    for (let i = 0; i < bytes.length; i += size) parts.push(bytes.slice(i, i + size));
    world.upstream.once(() => sseBytes(parts));
    const events = await readEvents(await chatStream(world));
    assert.equal(contentOf(events), text); // case 46
    assert.equal(events.at(-1), "[DONE]");
    assert.equal(events.length, 4);
    await assertChargedOnce(world);
  });
}

Deno.test("chat stream: an event of a megabyte passes, one beyond the limit ends the stream", async () => {
  using world = await createWorld();
  await world.deposit("ada", "5");
  const large = "word ".repeat(200_000);
  world.upstream.once(() => sse([chunk({ content: large }), chunk({}, "stop"), usageChunk()]));
  assert.equal(contentOf(await readEvents(await chatStream(world))), large); // case 46
  const endless = new Uint8Array(1024 * 1024).fill(0x61);
  const body = new ReadableStream({ pull: (controller) => controller.enqueue(endless) });
  const headers = { "content-type": "text/event-stream" };
  world.upstream.once(() => new Response(body, { headers }));
  const response = await chatStream(world);
  assert.deepEqual([response.status, (await response.json()).error.code], [
    502,
    "response_too_large",
  ]);
});

Deno.test("chat stream: what has arrived is passed on before the next chunk arrives", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const fed = fedStream();
  world.upstream.once(() => fed.response);
  const response = await chatStream(world);
  const reader = openReader(response);
  fed.send(chunk({ content: "Hello" }));
  assert.match(await reader.read() ?? "", /"Hello"/); // case 47
  fed.send(chunk({ content: " there" }));
  assert.match(await reader.read() ?? "", /" there"/);
  assert.equal((await usageOf(world)).length, 0);
  fed.send({ ...chunk({}), choices: [finished] });
  assert.match(await reader.read() ?? "", /"stop"/);
  fed.send(usageChunk());
  fed.send("[DONE]");
  assert.equal(await reader.read(), "data: [DONE]\n\n");
  assert.equal(await reader.read(), null);
  await assertChargedOnce(world);
});

Deno.test("chat stream: the charge is stored before the last frame is sent", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  world.upstream.once(helloStream);
  const reader = openReader(await chatStream(world));
  let lastFrames = 0;
  for (let frame = await reader.read(); frame !== null; frame = await reader.read()) {
    if (!frame.includes("[DONE]")) continue;
    lastFrames++;
    await assertChargedOnce(world);
  }
  assert.equal(lastFrames, 1);
});

Deno.test("chat stream: a stream in one piece ends where it should, and is not cut", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const sent = [chunk({ content: "Hi" }), "[DONE]", chunk({ content: " more" })];
  const frames = sent.map((data) => typeof data === "string" ? data : JSON.stringify(data));
  const text = frames.map((data) => `data: ${data}\n\n`).join("");
  const headers = { "content-type": "text/event-stream" };
  world.upstream.once(() => new Response(text, { headers }));
  const events = await readEvents(await chatStream(world));
  const told = events.slice(0, -1).map(({ choices: [choice] }) => choice);
  assert.deepEqual(told.map(({ delta, finish_reason }) => [delta.content, finish_reason]), [
    ["Hi", null],
    [undefined, "stop"],
  ]);
});

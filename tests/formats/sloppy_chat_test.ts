import assert from "node:assert/strict";
import { messagesToChat } from "../../src/formats/bridges/messages_to_chat/bridge.ts";
import { responsesToChat } from "../../src/formats/bridges/responses_to_chat/bridge.ts";
import { chat, chatStream } from "../support/chat.ts";
import { chunk, completion, readEvents, sse, usage } from "../support/upstream.ts";
import { type Body, createWorld } from "../support/world.ts";
import { optionsOf, wholeOf } from "./bridges/support.ts";
import {
  asMessage,
  asMessages,
  asResponse,
  asResponses,
  assertSaid,
  joined,
  type Said,
  thinks,
  wholeChat,
} from "./said.ts";

const a = { name: "a", arguments: '{"x":1}' };
const b = { name: "b", arguments: "{}" };
const both: Said = { calls: [["a", '{"x":1}'], ["b", "{}"]], finish: "tool_calls" };
const one: Said = { calls: [["a", '{"x":1}']], finish: "tool_calls" };
const begun = { role: "assistant", content: "" };
const calls = (...tool_calls: unknown[]) => chunk({ tool_calls });
const end = (reason = "tool_calls") => chunk({}, reason);

const streams: [string, unknown[], Said][] = [
  ["no role", [chunk({ content: "Hi" }), chunk({ content: "!" }), end("stop")], { text: "Hi!" }],
  ["an empty role", [chunk({ role: "", content: "Hi" }), end("stop")], { text: "Hi" }],
  ["a role of null in each chunk", [
    chunk({ role: null, content: "Hi" }),
    chunk({ role: null, content: "!" }),
    end("stop"),
  ], { text: "Hi!" }],
  ["content as parts", [
    chunk({ ...begun, content: [{ type: "text", text: "Hi" }] }),
    chunk({ content: [{ type: "text", text: "!" }] }, "stop"),
  ], { text: "Hi!" }],
  ["thinking as a part of the content", [
    chunk({ content: [{ type: "thinking", thinking: [{ type: "text", text: "hm" }] }] }),
    chunk({ content: "Hi" }, "stop"),
  ], { text: "Hi", thinking: "hm" }],
  ["a whole message in place of a delta", [
    { ...chunk({}), choices: [{ index: 0, message: { content: "Hi" }, finish_reason: "stop" }] },
  ], { text: "Hi" }],
  ["the whole message again at the end", [
    chunk({ ...begun, content: "Hi" }),
    { ...chunk({}), choices: [{ index: 0, message: { content: "Hi" }, finish_reason: "stop" }] },
  ], { text: "Hi" }],
  ["the index of a choice as text", [
    { ...chunk({}), choices: [{ index: "0", delta: { content: "Hi" }, finish_reason: null }] },
    { ...chunk({}), choices: [{ index: null, delta: {}, finish_reason: "stop" }] },
  ], { text: "Hi" }],
  ["calls without an index", [
    calls({ id: "1", type: "function", function: { name: "a", arguments: '{"x' } }),
    calls({ function: { arguments: '":1}' } }),
    calls({ id: "2", type: "function", function: b }),
    end(),
  ], { ...both, ids: ["1", "2"] }],
  ["calls without an index, at once", [
    calls({ id: "1", function: a }, { id: "2", function: b }),
    end(),
  ], { ...both, ids: ["1", "2"] }],
  ["calls in turns, by their ids", [
    calls({ index: null, id: "1", function: { name: "a", arguments: '{"x' } }),
    calls({ index: null, id: "2", function: { name: "b", arguments: "{" } }),
    calls({ index: null, id: "1", function: { arguments: '":1}' } }),
    calls({ index: null, id: "2", function: { arguments: "}" } }),
    end(),
  ], { ...both, ids: ["1", "2"] }],
  ["calls at once, by their places", [
    calls({ function: { name: "a", arguments: '{"x' } }, { function: { name: "b" } }),
    calls({ function: { arguments: '":1}' } }, { function: { arguments: "{}" } }),
    end(),
  ], both],
  ["an index as text", [
    calls({ index: "0", id: "1", function: a }),
    calls({ index: "1", id: "2", function: b }),
    end(),
  ], { ...both, ids: ["1", "2"] }],
  ["an index as text in later pieces", [
    calls({ index: 0, id: "1", type: "function", function: { name: "a", arguments: '{"x' } }),
    calls({ index: "0", function: { arguments: '":1}' } }),
    end(),
  ], one],
  ["an index that begins at one", [
    calls({ index: 1, id: "1", function: { name: "a", arguments: '{"x' } }),
    calls({ index: 1, function: { arguments: '":1}' } }),
    calls({ index: 2, id: "2", function: b }),
    end(),
  ], { ...both, ids: ["1", "2"] }],
  ["the index 0 for several ids", [
    calls({ index: 0, id: "1", type: "function", function: { name: "a", arguments: "" } }),
    calls({ index: 0, function: { arguments: '{"x":1}' } }),
    calls({ index: 0, id: "2", type: "function", function: b }),
    end(),
  ], { ...both, ids: ["1", "2"] }],
  ["the index 0 for several ids, in turns", [
    calls({ index: 0, id: "1", function: { name: "a", arguments: '{"x' } }),
    calls({ index: 0, id: "2", function: { name: "b", arguments: "{" } }),
    calls({ index: 0, id: "1", function: { arguments: '":1}' } }),
    calls({ index: 0, id: "2", function: { arguments: "}" } }),
    end(),
  ], { ...both, ids: ["1", "2"] }],
  ["the index 0 and no id", [
    calls({ index: 0, function: a }),
    calls({ index: 0, function: b }),
    end(),
  ], both],
  ["the index 0, no id, and one function twice", [
    calls({ index: 0, function: a }),
    calls({ index: 0, function: { name: "a", arguments: '{"x":2}' } }),
    end(),
  ], { calls: [["a", '{"x":1}'], ["a", '{"x":2}']], finish: "tool_calls" }],
  ["one id for several calls", [
    calls({ index: 0, id: "c", type: "function", function: a }),
    calls({ index: 1, id: "c", type: "function", function: b }),
    end(),
  ], both],
  ["empty ids", [
    calls({ index: 0, id: "", type: "function", function: { name: "a", arguments: '{"x' } }),
    calls({ index: 0, id: "", type: "", function: { name: "", arguments: '":1}' } }),
    end(),
  ], one],
  ["the id and the name in each piece", [
    calls({ index: 0, id: "1", type: "function", function: { name: "a", arguments: '{"x' } }),
    calls({ index: 0, id: "1", type: "function", function: { name: "a", arguments: '":1}' } }),
    end(),
  ], { ...one, ids: ["1"] }],
  ["a new id in each piece", [
    calls({ index: 0, id: "1", type: "function", function: { name: "a", arguments: '{"x' } }),
    calls({ index: 0, id: "2", type: "function", function: { arguments: '":1}' } }),
    end(),
  ], { ...one, ids: ["1"] }],
  ["a name after the arguments", [
    calls({ index: 0, id: "1", type: "function" }),
    calls({ index: 0, function: { arguments: '{"x":' } }),
    calls({ index: 0, function: { name: "a", arguments: "1}" } }),
    end(),
  ], { ...one, ids: ["1"] }],
  ["a call said twice", [
    calls({ index: 0, id: "1", type: "function", function: a }),
    chunk({ tool_calls: [{ index: 0, id: "1", type: "function", function: a }] }, "tool_calls"),
  ], { ...one, ids: ["1"] }],
  ["arguments as an object", [
    calls({ index: 0, id: "1", type: "function", function: { name: "a", arguments: { x: 1 } } }),
    end(),
  ], one],
  ["no arguments", [
    calls({ index: 0, id: "1", type: "function", function: { name: "b" } }),
    end(),
  ], { calls: [["b", "{}"]], finish: "tool_calls" }],
  ["no object around name and arguments", [calls({ id: "1", ...a }), end()], one],
  ["calls that are no list", [chunk({ tool_calls: { id: "1", function: a } }), end()], one],
  ["a call as older servers know it", [
    chunk({ function_call: { name: "a", arguments: '{"x' } }),
    chunk({ function_call: { arguments: '":1}' } }, "function_call"),
  ], one],
  ["a stop after calls", [calls({ index: 0, id: "1", function: a }), end("stop")], one],
  ["the end said twice", [chunk({ ...begun, content: "Hi" }), end("stop"), end("stop")], {
    text: "Hi",
  }],
  ["the end in another API's word", [calls({ id: "1", function: a }), end("tool_use")], one],
  ["a bound in another API's word", [chunk({ content: "Hi" }), end("MAX_TOKENS")], {
    text: "Hi",
    finish: "length",
  }],
];

for (const [what, chunks, expected] of streams) {
  Deno.test(`a sloppy chat server: ${what}, in a stream`, async () => {
    using world = await createWorld();
    await world.deposit("ada", "1");
    world.upstream.reply(() => sse(chunks));
    assertSaid(joined(await readEvents(await chatStream(world))), expected, "passed on");
    assertSaid(wholeChat((await chat(world)).body), expected, "put together");
    assertSaid(asResponses(chunks), expected, "as a response");
    assertSaid(asMessages(chunks), expected, "as a message");
  });
}

const wholes: [string, Body, Said][] = [
  ["no role", { message: { content: "Hi" }, finish_reason: "stop" }, { text: "Hi" }],
  ["an empty role", { message: { role: "", content: "Hi" } }, { text: "Hi" }],
  ["a role of null", { message: { role: null, content: "Hi" } }, { text: "Hi" }],
  ["content as parts", {
    message: { content: [{ type: "text", text: "H" }, "i", { type: "output_text", text: "!" }] },
  }, { text: "Hi!" }],
  ["content as one part", { message: { content: { type: "text", text: "Hi" } } }, { text: "Hi" }],
  ["thinking as a part of the content", {
    message: { content: [{ type: "thinking", thinking: "hm" }, { type: "text", text: "Hi" }] },
  }, { text: "Hi", thinking: "hm" }],
  ["no content", { message: { tool_calls: [{ id: "1", type: "function", function: a }] } }, one],
  ["calls without id and type", {
    message: { content: null, tool_calls: [{ function: a }, { id: "", type: "", function: b }] },
    finish_reason: "stop",
  }, both],
  ["one id for several calls", {
    message: { content: null, tool_calls: [{ id: "c", function: a }, { id: "c", function: b }] },
  }, both],
  ["arguments as an object", {
    message: { tool_calls: [{ id: "1", function: { name: "a", arguments: { x: 1 } } }] },
    finish_reason: "stop",
  }, one],
  ["no arguments", {
    message: { tool_calls: [{ id: "1", function: { name: "b", arguments: null } }] },
  }, { calls: [["b", "{}"]], finish: "tool_calls" }],
  ["empty arguments", {
    message: { tool_calls: [{ id: "1", function: { name: "b", arguments: "" } }] },
  }, { calls: [["b", "{}"]], finish: "tool_calls" }],
  ["no object around name and arguments", { message: { tool_calls: [{ id: "1", ...a }] } }, one],
  ["calls that are no list", { message: { tool_calls: { id: "1", function: a } } }, one],
  ["a call as older servers know it", {
    message: { content: null, function_call: { name: "a", arguments: { x: 1 } } },
    finish_reason: "function_call",
  }, one],
  ["an empty list of calls and no end", { message: { content: "Hi", tool_calls: [] } }, {
    text: "Hi",
  }],
  ["the end in another API's word", {
    message: { content: "Hi" },
    finish_reason: "end_turn",
  }, { text: "Hi" }],
  ["an index as text", { index: "0", message: { content: "Hi" } }, { text: "Hi" }],
];

for (const [what, choice, expected] of wholes) {
  Deno.test(`a sloppy chat server: ${what}, whole`, async () => {
    using world = await createWorld();
    await world.deposit("ada", "1");
    const sent = { choices: [choice] };
    world.upstream.reply(() => completion(sent));
    assertSaid(wholeChat((await chat(world)).body), expected, "passed on");
    assertSaid(joined(await readEvents(await chatStream(world))), expected, "as a stream");
    const body = await completion(sent).json();
    assertSaid(asResponse(wholeOf(responsesToChat, body, optionsOf({}, "resp_1"))), expected);
    assertSaid(asMessage(wholeOf(messagesToChat, body, optionsOf(thinks))), expected);
  });
}

Deno.test("a sloppy chat server: several choices in a stream are told apart, and so are their calls", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const choice = (delta: Body, fields: Body = {}) => ({ delta, finish_reason: null, ...fields });
  const both = (first: Body, second: Body) => ({ ...chunk({}), choices: [first, second] });
  world.upstream.once(() =>
    sse([
      both(choice({ content: "A" }), choice({ content: "B" })),
      both(
        choice({ tool_calls: [{ function: { name: "a", arguments: '{"x' } }] }, { index: "0" }),
        choice({ tool_calls: [{ function: b }] }, { index: 1 }),
      ),
      both(choice({ tool_calls: [{ function: { arguments: '":1}' } }] }), choice({})),
      both(choice({}, { finish_reason: "stop" }), choice({}, { finish_reason: "stop" })),
    ])
  );
  const events = await readEvents(await chatStream(world, { n: 2 }));
  const [first, second] = [0, 1].map((index) => joined(events, index));
  assertSaid(first ?? {}, { text: "A", ...one });
  assertSaid(second ?? {}, { text: "B", calls: [["b", "{}"]], finish: "tool_calls" });
  assert.notDeepEqual(first?.ids, second?.ids);
});

Deno.test("a sloppy chat server: several whole choices of one number get numbers of their own", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const choices = ["A", "B"].map((content) => ({ index: 0, message: { content } }));
  world.upstream.once(() => completion({ choices, usage: usage(5, 2) }));
  const { body } = await chat(world, { n: 2 });
  assert.deepEqual(body.choices.map(({ index }: Body) => index), [0, 1]);
});

Deno.test("a sloppy chat server: a call as older servers know it stays one where that was asked for", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const message = { content: null, function_call: { name: "a", arguments: { x: 1 } } };
  world.upstream.once(() => completion({ choices: [{ message, finish_reason: null }] }));
  const { body } = await chat(world, { functions: [{ name: "a", parameters: {} }] });
  const [{ message: { function_call, tool_calls }, finish_reason }] = body.choices;
  assert.deepEqual([function_call, tool_calls, finish_reason], [a, undefined, "function_call"]);
});

Deno.test("a sloppy chat server: an identification that is empty or of another kind is mended", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  world.upstream.once(() => completion({ id: "", object: "", model: null, created: "now" }));
  const { body } = await chat(world);
  assert.match(body.id, /^chatcmpl-/);
  assert.equal(body.object, "chat.completion");
  assert.equal(body.model, "test-model");
  assert.equal(typeof body.created, "number");
});

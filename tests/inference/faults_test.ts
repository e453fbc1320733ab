import assert from "node:assert/strict";
import { speechFormat } from "../../src/formats/audio/speech_format.ts";
import { chatToMessages } from "../../src/formats/bridges/chat_to_messages/bridge.ts";
import { responsesToChat } from "../../src/formats/bridges/responses_to_chat/bridge.ts";
import { chatFormat } from "../../src/formats/chat/chat_format.ts";
import { imagesFormat } from "../../src/formats/images/images_format.ts";
import { messagesFormat } from "../../src/formats/messages/messages_format.ts";
import { responsesFormat } from "../../src/formats/responses/responses_format.ts";
import { BodyScan } from "../../src/inference/meter/body_scan.ts";
import { CallTelemetry } from "../../src/inference/telemetry.ts";
import { UsageMeter } from "../../src/inference/meter/usage_meter.ts";
import { chatBody, usageOf } from "../support/chat.ts";
import { plant } from "../support/plant.ts";
import { completion, helloStream } from "../support/upstream.ts";
import { verify } from "../support/verify.ts";
import { type Body, createWorld, type World } from "../support/world.ts";

const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
const messageUsage = { input_tokens: 10, output_tokens: 5 };
const textBlock = { type: "text", text: "Hello there" };
const message = { id: "m", type: "message", role: "assistant", content: [textBlock] };
const outputText = { type: "output_text", text: "Hello there", annotations: [] };
const item = { id: "msg_1", type: "message", role: "assistant", content: [outputText] };
const whole = { id: "resp_1", object: "response", status: "completed", output: [item] };

function eventsOf(events: Body[]): Response {
  const frames = events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
  return new Response(frames.join(""), { headers: { "content-type": "text/event-stream" } });
}

const messageEvents = () =>
  eventsOf([
    { type: "message_start", message: { ...message, content: [], usage: messageUsage } },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Hello there" } },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 5 } },
    { type: "message_stop" },
  ]);
const responseEvents = () =>
  eventsOf([
    { type: "response.created", response: { ...whole, output: [] } },
    { type: "response.output_item.added", output_index: 0, item: { ...item, content: [] } },
    {
      ...{ type: "response.output_text.delta", item_id: "msg_1", output_index: 0 },
      ...{ content_index: 0, delta: "Hello there" },
    },
    { type: "response.completed", response: { ...whole, usage: messageUsage } },
  ]);

/** A kind of body: how it is asked for, what the upstream answers, and the steps that may fail. */
interface Kind {
  path: string;
  body: Body;
  answer: () => Response;
  project?: Body;
  env?: Record<string, string>;
  steps: (readonly [object, string, string?])[];
}

const price = { input: "1", output: "2", maxOutputTokens: 1000, reasoning: false };
const models = {
  "test-model": price,
  "an-image": { ...price, images: { "*": "0.04" } },
  "a-voice": { input: "0", output: "0", characters: "15" },
};
const settled: Kind["steps"] = [
  [UsageMeter.prototype, "usage"],
  [CallTelemetry.prototype, "end"],
];
const ofWhole: Kind["steps"] = [
  [UsageMeter.prototype, "addText"],
  [UsageMeter.prototype, "addUsage"],
  [CallTelemetry.prototype, "begin"],
  ...settled,
];
const speaking = (format: string) => ({
  upstream: { url: "https://other.test/v1", formats: [format] },
});
const sound = () =>
  new Response(`ID3${"a".repeat(5_000)}`, { headers: { "content-type": "audio/mpeg" } });
const made = { model: "an-image", prompt: "a", user: "ada" };

const kinds: Record<string, Kind> = {
  "a whole chat": {
    path: "/v1/chat/completions",
    body: chatBody(),
    answer: () => completion(),
    steps: [[chatFormat, "readResponse"], [chatFormat, "writeUsage"], ...ofWhole],
  },
  "a whole chat under a key": {
    path: "/v1/chat/completions",
    body: chatBody(),
    answer: () => completion(),
    project: { responseCache: { enabled: true, maxTemperature: 2 } },
    steps: [[chatFormat, "readResponse"], [chatFormat, "writeUsage"], ...settled],
  },
  "a chat whose upstream sends events": {
    path: "/v1/chat/completions",
    body: chatBody(),
    answer: helloStream,
    steps: [[chatFormat, "createAssembler", "add"], [chatFormat, "createAssembler", "complete"]],
  },
  "a streamed chat": {
    path: "/v1/chat/completions",
    body: chatBody({ stream: true, stream_options: { include_usage: true } }),
    answer: helloStream,
    steps: [
      [chatFormat, "errorOf"],
      [chatFormat, "createStream"],
      [chatFormat, "createStream", "takeAll"],
      [chatFormat, "createStream", "finish"],
      [chatFormat, "createStream", "usageFrame"],
      [chatFormat, "writeUsage"],
      ...ofWhole,
    ],
  },
  "a chat that is too large": {
    path: "/v1/chat/completions",
    body: chatBody(),
    answer: () => completion({ id: "i".repeat(5_000) }),
    env: { UPSTREAM_BODY_BYTES_MAX: "2000" },
    steps: [
      [BodyScan.prototype, "push"],
      [BodyScan.prototype, "end"],
      [UsageMeter.prototype, "noteUnreadOutput"],
      ...settled,
    ],
  },
  "a bridged chat": {
    path: "/v1/chat/completions",
    body: chatBody(),
    answer: () => Response.json({ ...message, usage: messageUsage }),
    project: speaking("messages"),
    steps: [[chatToMessages, "translateWhole"], ...ofWhole],
  },
  "a bridged stream": {
    path: "/v1/chat/completions",
    body: chatBody({ stream: true }),
    answer: messageEvents,
    project: speaking("messages"),
    steps: [
      [chatToMessages, "createTranslator"],
      [chatToMessages, "createTranslator", "take"],
    ],
  },
  "a response": {
    path: "/v1/responses",
    body: { model: "test-model", input: "Hi", user: "ada" },
    answer: () => Response.json({ ...whole, usage: messageUsage }),
    steps: [[responsesFormat, "readResponse"], [responsesFormat, "writeUsage"], ...ofWhole],
  },
  "a streamed response": {
    path: "/v1/responses",
    body: { model: "test-model", input: "Hi", user: "ada", stream: true },
    answer: responseEvents,
    steps: [
      [responsesFormat, "createStream", "takeAll"],
      [responsesFormat, "createStream", "finish"],
      [responsesFormat, "createStream", "usageFrame"],
    ],
  },
  "a bridged response, whose turn is kept": {
    path: "/v1/responses",
    body: { model: "test-model", input: "Hi", user: "ada" },
    answer: () => completion(),
    project: speaking("chat"),
    steps: [[responsesToChat, "translateWhole"], [responsesFormat.kept ?? {}, "inputItems"]],
  },
  "a message": {
    path: "/v1/messages",
    body: { model: "test-model", max_tokens: 9, messages: [{ role: "user", content: "Hi" }] },
    answer: () => Response.json({ ...message, usage: messageUsage }),
    steps: [[messagesFormat, "readResponse"], [messagesFormat, "writeUsage"]],
  },
  "a streamed message": {
    path: "/v1/messages",
    body: {
      ...{ model: "test-model", max_tokens: 9, stream: true },
      messages: [{ role: "user", content: "Hi" }],
    },
    answer: messageEvents,
    steps: [
      [messagesFormat, "createStream", "takeAll"],
      [messagesFormat, "createStream", "finish"],
    ],
  },
  "an image": {
    path: "/v1/images/generations",
    body: made,
    answer: () => Response.json({ created: 1, data: [{ b64_json: "AAAA" }], usage }),
    steps: [
      [BodyScan.prototype, "push"],
      [BodyScan.prototype, "end"],
      [imagesFormat, "createScanner"],
      ...settled,
    ],
  },
  "a sound": {
    path: "/v1/audio/speech",
    body: { model: "a-voice", input: "Hi", voice: "v", user: "ada" },
    answer: sound,
    steps: [[speechFormat, "countOutput"], ...settled],
  },
};

async function open(kind: Kind): Promise<World> {
  const { project = {}, env = {} } = kind;
  const world = await createWorld({ project: { pricing: { models }, ...project }, env });
  await world.deposit("ada", "1");
  return world;
}

for (const [name, kind] of Object.entries(kinds)) {
  for (const [target, method, within] of kind.steps) {
    Deno.test(`faults: ${name} is charged once where ${within ?? method} throws`, async () => {
      using world = await open(kind);
      using planted = plant(target, method, { within });
      world.upstream.reply(() => {
        planted.isArmed = true;
        return kind.answer();
      });
      const headers = { "x-service-user": "ada" };
      const asked = () => world.call(kind.path, { body: kind.body, headers });
      const response = await asked();
      const text = await response.text().catch((error) => `cut: ${error}`);
      assert.ok(planted.hasThrown, "the step was not reached");
      const entries = await usageOf(world);
      assert.equal(entries.length, 1, text);
      assert.ok(Number(entries[0]?.amount) > 0, JSON.stringify(entries[0]));
      assert.equal((await world.balance("ada")).held, "0");
      const errors = world.logged.filter(({ level }) => level === "error");
      assert.ok(JSON.stringify(errors).includes("planted in"), JSON.stringify(world.logged));
      const isAnswer = /Hello|AAAA|ID3/.test(text);
      const isError = response.status === 500 || /internal_error|api_error|cut:/.test(text);
      assert.ok(isAnswer || isError, text);
      // What comes after is served, and charged as usual.
      planted.isArmed = false;
      assert.equal((await asked()).status, 200);
    });
  }
}

Deno.test("faults: a charged one has an answer of its own for its idempotency key", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  using planted = plant(chatFormat, "writeUsage");
  world.upstream.reply(() => {
    planted.isArmed = true;
    return completion();
  });
  const headers = { "idempotency-key": "k" };
  const first = await world.json("/v1/chat/completions", { body: chatBody(), headers });
  assert.deepEqual([first.status, first.body.error.code], [500, "internal_error"]);
  assert.equal(first.response.headers.get("x-should-retry"), "false");
  const again = await world.json("/v1/chat/completions", { body: chatBody(), headers });
  assert.deepEqual([again.status, again.body], [500, first.body]);
  assert.equal(world.upstream.calls.length, 1);
  assert.equal((await usageOf(world)).length, 1);
});

/** Has what a method returns throw where it is read for the first time. */
function plantInResult(target: object, name: string): Disposable {
  const methods = target as Record<string, unknown>;
  const original = methods[name];
  let hasThrown = false;
  methods[name] = async function (this: unknown, ...given: unknown[]) {
    const made = await (original as (...given: unknown[]) => Promise<object>).apply(this, given);
    return new Proxy(made, {
      get(object, member) {
        if (member === "then" || hasThrown) return Reflect.get(object, member);
        hasThrown = true;
        throw new TypeError("planted in the bill");
      },
    });
  };
  return { [Symbol.dispose]: () => void (methods[name] = original) };
}

Deno.test("faults: where the bill cannot be made, what was held is charged, and the books agree", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  using _ = plantInResult(UsageMeter.prototype, "usage");
  let held = "";
  world.upstream.reply(async () => {
    held = (await world.balance("ada")).held;
    return completion();
  });
  const { status } = await world.json("/v1/chat/completions", { body: chatBody() });
  assert.equal(status, 200);
  const [entry] = await usageOf(world);
  assert.deepEqual([entry?.amount, entry?.usage.source], [held, "estimated"]);
  assert.deepEqual((await verify(world)).faults, []);
});

Deno.test("faults: a counter that throws prevents no charge", async () => {
  for (const stream of [false, true]) {
    using world = await createWorld();
    await world.deposit("ada", "1");
    using planted = plant(world.deps.metrics.addedTime, "observeMs");
    world.upstream.reply(() => {
      planted.isArmed = true;
      return stream ? helloStream() : completion();
    });
    const response = await world.call("/v1/chat/completions", { body: chatBody({ stream }) });
    assert.match(await response.text(), /Hello/);
    assert.ok(planted.hasThrown);
    assert.equal((await usageOf(world)).length, 1);
  }
});

Deno.test("faults: a tool's type never breaks a header", async () => {
  for (const stream of [false, true]) {
    for (const type of ["𝕏", "a\r\nx-evil: 1", "é", "x".repeat(65), ""]) {
      using world = await open({ ...kinds["a response"], project: {} } as Kind);
      const body = { model: "test-model", input: "Hi", user: "ada", stream, tools: [{ type }] };
      const { status, body: said } = await world.json("/v1/responses", { body });
      assert.deepEqual([status, said.error.param], [400, "tools.0.type"]);
      assert.equal(world.upstream.calls.length, 0);
    }
  }
});

Deno.test("faults: an upstream's content type with odd characters passes on encoded", async () => {
  using world = await open(kinds["a sound"] ?? assert.fail());
  world.upstream.reply(() =>
    new Response("ID3", { headers: { "content-type": "audio/mpeg; a=\xe9" } })
  );
  const body = { model: "a-voice", input: "Hi", voice: "v", user: "ada" };
  const response = await world.call("/v1/audio/speech", { body });
  assert.equal(response.headers.get("content-type"), "audio/mpeg; a=%C3%83%C2%A9");
  await response.bytes();
  assert.equal((await usageOf(world)).length, 1);
});

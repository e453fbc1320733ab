import assert from "node:assert/strict";
import { usageOf } from "../support/chat.ts";
import { askedOf, replies, routedWorld, twoUpstreams } from "../support/routing.ts";
import { asAda } from "../support/messages.ts";
import { chunk, completion, fedStream, usage, usageChunk } from "../support/upstream.ts";
import type { Body, World } from "../support/world.ts";

// An attempt that fails before it has said anything has failed, whatever it began with: the next
// target is asked, or the caller gets the error's own status. Nothing is charged.

const frame = (event: unknown) => {
  const { type } = Object(event);
  const data = typeof event === "string" ? event : JSON.stringify(event);
  return `${type ? `event: ${type}\n` : ""}data: ${data}\n\n`;
};
const eventStream = (events: readonly unknown[]) =>
  new Response(events.map(frame).join(""), { headers: { "content-type": "text/event-stream" } });

const message = { id: "msg_1", type: "message", role: "assistant", model: "a", content: [] };
const response = { id: "resp_1", object: "response", created_at: 1, model: "a", output: [] };
const inProgress = { ...response, status: "in_progress" };
const item = { id: "msg_1", type: "message", role: "assistant", content: [] };
const part = { type: "output_text", text: "", annotations: [] };
const place = { item_id: "msg_1", output_index: 0, content_index: 0 };
const busy = { code: 529, message: "Overloaded" };
const overloaded = { type: "error", error: { type: "overloaded_error", message: "Overloaded" } };
const limited = { type: "error", error: { type: "rate_limit_error", message: "Slow down" } };

/** What each format begins a stream with, before the model has said anything. */
const preambles: Record<string, unknown[]> = {
  chat: [
    { ...chunk({}), choices: [], prompt_filter_results: [{ prompt_index: 0 }] },
    chunk({ role: "assistant", content: "", refusal: null, tool_calls: [] }),
    chunk({}, null, { usage: usage(10, 1) }),
  ],
  completions: [{ ...chunk({}), choices: [{ index: 0, text: "", finish_reason: null }] }],
  messages: [
    {
      type: "message_start",
      message: { ...message, usage: { input_tokens: 9, output_tokens: 1 } },
    },
    { type: "ping" },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "" } },
  ],
  responses: [
    { type: "response.created", response: inProgress },
    { type: "response.in_progress", response: inProgress },
    {
      type: "response.output_item.added",
      output_index: 0,
      item: { id: "rs_1", type: "reasoning" },
    },
    { type: "response.output_item.added", output_index: 0, item },
    { type: "response.content_part.added", ...place, part },
  ],
};

const failedResponse = (code: string) => ({
  type: "response.failed",
  response: { ...response, status: "failed", error: { code, message: "It failed." } },
});

/** How an attempt fails after its preamble, and the status of that. */
const failures: Record<string, [unknown[], number][]> = {
  chat: [
    [[{ error: busy }], 529],
    [[{ error: { code: 429, message: "Slow down" } }], 429],
    [[{ error: { message: "no code" } }], 502],
    [
      [{ error: busy, choices: [{ index: 0, delta: { content: "" }, finish_reason: "error" }] }],
      529,
    ],
    [[chunk({ content: "" }, "error")], 502],
    [
      [{ ...chunk({}), choices: [{ index: 0, delta: {}, error: busy, finish_reason: "error" }] }],
      529,
    ],
    [["[DONE]"], 502],
    [[usageChunk(usage(10, 0)), "[DONE]"], 502],
    [[], 502],
  ],
  completions: [[[{ error: busy }], 529], [["[DONE]"], 502], [[], 502]],
  messages: [
    [[overloaded], 529],
    [[limited], 429],
    [[{ type: "error", message: "odd" }], 502],
    [[{ type: "content_block_stop", index: 0 }, { type: "message_stop" }], 502],
    [[], 502],
  ],
  responses: [
    [[failedResponse("server_error")], 502],
    [[failedResponse("rate_limit_exceeded")], 429],
    [[{ type: "error", code: "server_overloaded", message: "busy" }], 529],
    [["[DONE]"], 502],
    [[], 502],
  ],
};

/** The endpoint and the body of a caller's format. */
const calls: Record<string, { path: string; body: Body }> = {
  chat: {
    path: "/v1/chat/completions",
    body: { user: "ada", messages: [{ role: "user", content: "Hi" }] },
  },
  completions: { path: "/v1/completions", body: { user: "ada", prompt: "Hi" } },
  messages: {
    path: "/v1/messages",
    body: { max_tokens: 50, messages: [{ role: "user", content: "Hi" }] },
  },
  responses: { path: "/v1/responses", body: { user: "ada", input: "Hi" } },
};
/** Caller's formats by the format that the upstream speaks. */
const callersOf: Record<string, string[]> = {
  chat: ["chat", "messages", "responses", "completions"],
  completions: ["completions"],
  messages: ["messages", "chat", "responses", "completions"],
  responses: ["responses", "chat", "messages"],
};

const ask = (world: World, caller: string, asked: { model: string; stream?: boolean }) => {
  const { path, body } = calls[caller] ?? assert.fail();
  const headers = caller === "messages" ? asAda : {};
  return world.call(path, { body: { stream: true, ...body, ...asked }, headers });
};

async function worldOf(spoken: string): Promise<World> {
  const formats = spoken === "completions" ? {} : { formats: [spoken] };
  const upstreams = {
    main: { ...twoUpstreams.main, ...formats },
    spare: { ...twoUpstreams.spare, formats: ["chat"] },
  };
  const targets = [{ upstream: "main", model: "a" }, { upstream: "spare", model: "b" }];
  const alone = { targets: [{ upstream: "main", model: "a" }] };
  const usual = { ...twoUpstreams.main, ...formats };
  const routes = { smart: { targets }, alone };
  return await routedWorld({ upstreams, routes, upstream: usual });
}

for (const [spoken, fails] of Object.entries(failures)) {
  for (const caller of callersOf[spoken] ?? []) {
    Deno.test(`preamble: an attempt of ${spoken} for a caller of ${caller} that fails after it is no response`, async () => {
      for (const [failure, status] of fails) {
        using world = await worldOf(spoken);
        const events = [...preambles[spoken] ?? [], ...failure];
        const what = JSON.stringify(failure);
        world.upstream.reply(() => eventStream(events));
        const refused = await ask(world, caller, { model: "a" });
        assert.equal(refused.status, status, what);
        if (status === 429) assert.ok(refused.headers.get("retry-after"), what);
        await refused.body?.cancel();
        assert.equal((await world.balance("ada")).held, "0");
        if (caller === "completions") continue;
        world.upstream.calls.length = 0;
        replies(world, {
          main: () => eventStream(events),
          spare: () =>
            eventStream([chunk({ content: "Hello there" }), chunk({}, "stop"), "[DONE]"]),
        });
        const answered = await ask(world, caller, { model: "smart" });
        assert.equal(answered.status, 200, what);
        const text = await answered.text();
        assert.match(text, /Hello there/, what);
        assert.ok(!/It failed|Overloaded|msg_1|resp_1/.test(text), "nothing of the first attempt");
        assert.deepEqual(askedOf(world), ["main a", "spare b"]);
        assert.equal((await usageOf(world)).length, 1, what);
      }
    });
  }
}

Deno.test("preamble: after two seconds a comment keeps the line open, and an error is not charged", async () => {
  using world = await worldOf("messages");
  const fed = fedStream();
  world.upstream.once(() => fed.response);
  for (const event of preambles.messages ?? []) fed.send(event);
  const responding = ask(world, "messages", { model: "a" });
  await world.until(fed.isRead);
  await world.clock.advance(2_000);
  const response = await responding;
  assert.equal(response.status, 200);
  fed.send(overloaded);
  const text = await response.text();
  assert.match(text, /^: keep-alive\n\n/);
  assert.match(text, /event: error\ndata: .*overloaded_error/);
  assert.ok(!text.includes("msg_1"), text);
  assert.deepEqual(await usageOf(world), []);
  assert.equal((await world.balance("ada")).held, "0");
});

Deno.test("preamble: what was held back comes first, in its order", async () => {
  using world = await worldOf("chat");
  const [judged, role] = preambles.chat ?? [];
  world.upstream.once(() =>
    eventStream([judged, role, chunk({ content: "Hi" }), chunk({}, "stop"), "[DONE]"])
  );
  const text = await (await ask(world, "chat", { model: "a" })).text();
  const order = ["prompt_filter_results", '"role":"assistant"', '"content":"Hi"', "[DONE]"];
  const places = order.map((part) => text.indexOf(part));
  assert.deepEqual(places, places.toSorted((one, other) => one - other));
  assert.ok(!places.includes(-1));
});

/** Whole bodies with status 200 that are no answers, by the format, and the status of each. */
const bodies: [spoken: string, body: Body, status: number][] = [
  ["chat", { choices: [], usage: usage(10, 5) }, 502],
  ["chat", { choices: [{ index: 0, finish_reason: "error", message: { content: "" } }] }, 502],
  ["chat", { choices: [{ index: 0, error: busy, message: { content: "" } }] }, 529],
  ["chat", { choices: [{ index: 0, error: { code: 429, message: "slow" } }] }, 429],
  ["chat", { error: { code: 429, message: "slow" } }, 429],
  ["completions", { choices: [], usage: usage(10, 5) }, 502],
  ["completions", { choices: [{ index: 0, text: "", finish_reason: "error" }] }, 502],
  ["messages", overloaded, 529],
  ["messages", { type: "error", message: "odd" }, 502],
  ["responses", { ...failedResponse("rate_limit_exceeded").response, usage: usage(10, 5) }, 429],
  ["responses", { ...response, status: "failed", error: null, usage: usage(10, 5) }, 502],
  ["responses", { type: "error", code: "rate_limit_exceeded", message: "slow" }, 429],
];
for (const [spoken, body, status] of bodies) {
  for (const caller of callersOf[spoken] ?? []) {
    Deno.test(`no answer: ${JSON.stringify(body).slice(0, 90)} of ${spoken} is ${status} for a caller of ${caller}, and free`, async () => {
      using world = await worldOf(spoken);
      const main = () => Response.json({ id: "up", model: "a", ...body });
      world.upstream.reply(main);
      for (const stream of [false, true]) {
        const asked = await ask(world, caller, { model: "a", stream });
        assert.equal(asked.status, status);
        await asked.body?.cancel();
      }
      replies(world, { main, spare: () => completion({ model: "b" }) });
      if (caller !== "completions") {
        const asked = await ask(world, caller, { model: "smart", stream: false });
        assert.equal(asked.status, 200);
        assert.match(await asked.text(), /Hello there/);
      }
      assert.equal((await usageOf(world)).length, caller === "completions" ? 0 : 1);
    });
  }
}

import assert from "node:assert/strict";
import { responsesFormat } from "../../../src/formats/responses/responses_format.ts";
import {
  deltasOf,
  openAiClient,
  readResponseEvents,
  respond,
  respondStream,
  tokens,
  upstreamResponse,
} from "../../support/responses.ts";
import { type Body, createWorld, type World } from "../../support/world.ts";

const link = /https:\/\/farebox\.test\/t\//;
const json = {
  text: {
    format: {
      type: "json_schema",
      name: "city",
      schema: { type: "object", properties: {}, additionalProperties: false },
    },
  },
};

Deno.test("responses paywall: whole and streamed, it is a normal response with the link", async () => {
  using world = await createWorld();
  const { status, body, response } = await respond(world);
  assert.equal(status, 200);
  assert.equal(response.headers.get("x-service-paywall"), "insufficient_funds");
  assert.match(body.id, /^resp_paywall_[0-9A-Z]{26}$/);
  assert.match(body.output[0].id, /^msg_paywall_[0-9A-Z]{26}$/);
  assert.match(body.output[0].content[0].text, link);
  assert.deepEqual(body.output[0].content[0].annotations, []);
  assert.deepEqual([body.status, body.error, body.paywall.reason], [
    "completed",
    null,
    "insufficient_funds",
  ]);
  assert.match(body.paywall.url, link);
  assert.deepEqual(body.usage, { ...tokens(0, 0), cost: 0, cost_exact: "0" });
  const events = await readResponseEvents(await respondStream(world));
  assert.deepEqual(events.map(({ type }) => type), [
    "response.created",
    "response.in_progress",
    "response.output_item.added",
    "response.content_part.added",
    "response.output_text.delta",
    "response.output_text.done",
    "response.content_part.done",
    "response.output_item.done",
    "response.completed",
  ]);
  assert.deepEqual(events.map(({ sequence_number }) => sequence_number), [...events.keys()]);
  assert.match(deltasOf(events), link);
  assert.equal(events[0]?.response.paywall.reason, "insufficient_funds");
  assert.equal(events.at(-1)?.response.output[0].content[0].text, deltasOf(events));
  assert.equal(world.upstream.calls.length, 0);
});

for (
  const [what, fields] of [
    ["JSON", json],
    ["a call of a tool", {
      tools: [{ type: "function", name: "f", parameters: {} }],
      tool_choice: "required",
    }],
    ["one tool by name", {
      tools: [{ type: "function", name: "f", parameters: {} }],
      tool_choice: { type: "function", name: "f" },
    }],
  ] satisfies [string, Body][]
) {
  Deno.test(`responses paywall: where ${what} is required, the message is a refusal`, async () => {
    using world = await createWorld();
    const { body } = await respond(world, fields);
    assert.deepEqual(body.output[0].content.map(({ type }: Body) => type), ["refusal"]);
    assert.match(body.output[0].content[0].refusal, link);
    const events = await readResponseEvents(await respondStream(world, fields));
    const types = events.map(({ type }) => type);
    assert.ok(types.includes("response.refusal.delta") && types.includes("response.refusal.done"));
  });
}

async function paid(world: World): Promise<void> {
  await world.deposit("ada", "1");
  world.upstream.reply(() => Response.json(upstreamResponse()));
}

const sentOf = (world: World): Body => world.upstream.calls.at(-1)?.body ?? assert.fail();

Deno.test("responses paywall: after it was paid, our messages and references to them are left out", async () => {
  using world = await createWorld();
  const { body: refused } = await respond(world);
  await paid(world);
  const [own] = refused.output;
  const user = { role: "user", content: "Hi" };
  const again = { role: "user", content: "Hello?" };
  await respond(world, { input: [user, own, again] });
  assert.deepEqual(sentOf(world).input, [user, again]);
  await respond(world, { input: [user, { type: "item_reference", id: own.id }, again] });
  assert.deepEqual(sentOf(world).input, [user, again]);
  await respond(world, { input: [user, { id: own.id }, again] });
  assert.deepEqual(sentOf(world).input, [user, again]);
  const { status, body } = await respond(world, { input: [own] });
  assert.equal(status, 400);
  assert.equal(body.error.param, "input");
});

Deno.test("responses paywall: the response before ours takes its place, however often it was refused", () => {
  const fields = { unknown: "refuse", allowed: [] } as const;
  const read = (previous: string | null) =>
    responsesFormat.readRequest(
      { model: "m", input: "Hi", previous_response_id: previous },
      { bytes: 100, fields },
    );
  const head = { id: "resp_01K9Z0C8Q4R7T2V5X8Z1B3D5F7", created: 1, model: "m" };
  const paywall = {
    message: "Pay",
    paywall: { reason: "insufficient_funds", url: "https://a.test" },
  };
  for (const real of [null, "resp_0a1b2c", "resp_with_many_parts"]) {
    let previous = real;
    for (let times = 0; times < 5; times++) {
      const request = read(previous);
      assert.equal(request.body.previous_response_id ?? null, real);
      const references = [...responsesFormat.kept?.references(request) ?? []];
      const expected = real ? [{ kind: "response", id: real, param: "previous_response_id" }] : [];
      assert.deepEqual(references, expected);
      previous = JSON.parse(responsesFormat.writePaywall(paywall, request, head)).id;
      assert.match(previous ?? "", /^resp_paywall_/);
    }
  }
  const nested = `resp_paywall_${"A".repeat(26)}_resp_paywall_${"B".repeat(26)}_resp_1`;
  assert.equal(read(nested).body.previous_response_id, "resp_1");
  for (const odd of ["resp_paywall_", "resp_paywall_short", `resp_paywall_${"A".repeat(26)}_`]) {
    assert.equal("previous_response_id" in read(odd).body, false, odd);
  }
});

Deno.test("responses paywall: references are items that the upstream has to look up, and no others", () => {
  const input = [
    { type: "item_reference", id: "msg_1" },
    { id: "rs_1" },
    { type: "reasoning", id: "rs_2", summary: [{ type: "summary_text", text: "a" }] },
    { type: "reasoning", id: "rs_3", summary: [], encrypted_content: "gAAA" },
    { type: "reasoning", id: "rs_4", content: [{ type: "reasoning_text", text: "a" }] },
    { type: "message", id: "msg_2", role: "assistant", content: "Hi" },
    { type: "function_call", id: "fc_1", call_id: "c", name: "f", arguments: "{}" },
    { type: "image_generation_call", id: "ig_1" },
    { type: "image_generation_call", id: "ig_2", result: "AAAA" },
    { type: "web_search_call", id: "ws_1", status: "completed" },
    { role: "user", content: "Hi" },
  ];
  const request = responsesFormat.readRequest({ model: "m", input }, {
    bytes: 100,
    fields: { unknown: "refuse", allowed: [] },
  });
  const references = [...responsesFormat.kept?.references(request) ?? []];
  assert.deepEqual(references.map(({ id, param }) => [id, param]), [
    ["msg_1", "input.0.id"],
    ["rs_1", "input.1.id"],
    ["rs_2", "input.2.id"],
    ["ig_1", "input.7.id"],
    ["ws_1", "input.9.id"],
  ]);
});

Deno.test("responses paywall: OpenAI's client shows it, parsed and streamed, and goes on once it is paid", async () => {
  using world = await createWorld();
  const client = openAiClient(world);
  const first = await client.responses.create({ model: "test-model", input: "Hi" });
  assert.match(first.output_text, link);
  const stream = client.responses.stream({ model: "test-model", input: "Hi" });
  assert.match((await stream.finalResponse()).output_text, link);
  const parsed = await client.responses.parse({ model: "test-model", input: "Hi", ...strict });
  const [said] = parsed.output;
  assert.ok(said?.type === "message" && said.content[0]?.type === "refusal");
  assert.match(said.content[0].refusal, link);
  await paid(world);
  const next = await client.responses.create({
    model: "test-model",
    input: "Hello?",
    previous_response_id: first.id,
  });
  assert.equal(next.output_text, "Hello there");
  assert.equal("previous_response_id" in sentOf(world), false);
});

const strict = {
  text: {
    format: {
      type: "json_schema" as const,
      name: "city",
      strict: true,
      schema: { type: "object", properties: {}, additionalProperties: false },
    },
  },
};

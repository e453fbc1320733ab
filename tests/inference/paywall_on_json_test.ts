import assert from "node:assert/strict";
import OpenAI from "openai";
import { chat, chatBody } from "../support/chat.ts";
import { hiddenFields, signedIn } from "../support/console.ts";
import { asAda, messageBody, send } from "../support/messages.ts";
import { openAiClient, respond } from "../support/responses.ts";
import { adminKey, type Body, createWorld, testPricing, type World } from "../support/world.ts";

const link = /https:\/\/farebox\.test\/t\/\w{17}/;
const format = { type: "json_schema", json_schema: { name: "a", schema: { type: "object" } } };
const price = Object.values(testPricing.models)[0];
const pricing = { models: { "*": price } };
const tool = { type: "function", function: { name: "f", parameters: {} } };
const given = { model: "test-model", user: "ada" };
const schema = { type: "object", properties: {} };

/** Requests that require JSON or a call of a tool, by path. */
const requiring: [string, Body][] = [
  ["/v1/chat/completions", chatBody({ response_format: format })],
  ["/v1/chat/completions", chatBody({ response_format: { type: "json_object" } })],
  ["/v1/chat/completions", chatBody({ tools: [tool], tool_choice: "required" })],
  ["/v1/chat/completions", chatBody({ guided_json: schema })],
  ["/v1/chat/completions", chatBody({ structured_outputs: { json: schema } })],
  ["/v1/ada/chat/completions", chatBody({ tools: [tool], tool_choice: tool })],
  ["/v1/responses", { ...given, input: "Hi", text: { format: { type: "json_object" } } }],
  ["/v1/responses", {
    ...{ ...given, input: "Hi", tool_choice: "required" },
    tools: [{ type: "function", name: "f", parameters: {} }],
  }],
  ["/v1/messages", messageBody({ output_config: { format: { type: "json_schema", schema } } })],
  [
    "/v1/messages",
    messageBody({
      tools: [{ name: "a", input_schema: {} }],
      tool_choice: { type: "tool", name: "a" },
    }),
  ],
  ["/v1/completions", { ...given, prompt: "Hi", guided_json: schema }],
  ["/v1/completions", { ...given, prompt: "Hi", json_schema: schema }],
];

for (const [path, body] of requiring) {
  const { model: _, messages: __, input: ___, ...fields } = body;
  Deno.test(`paywallOnJson: ${path} answers 402 whole and streamed (${JSON.stringify(fields).slice(0, 60)})`, async () => {
    using world = await createWorld({ project: { pricing, paywallOnJson: "402" } });
    for (const stream of [false, true]) {
      const asked = { body: { ...body, stream }, headers: asAda };
      const { status, body: seen, response } = await world.json(path, asked);
      assert.equal(status, 402, JSON.stringify(seen));
      const { message, type, code } = seen.error;
      const [url] = link.exec(message) ?? [];
      assert.equal(message, `You have run out of credit. Top up here to continue: ${url}`);
      assert.equal(code, "insufficient_funds");
      const isAnthropic = path === "/v1/messages";
      assert.equal(type, isAnthropic ? "billing_error" : "payment_required");
      assert.equal(seen.type, isAnthropic ? "error" : undefined);
      assert.equal(response.headers.get("content-type"), "application/json");
      assert.equal(response.headers.get("x-service-paywall"), "insufficient_funds");
      assert.equal(response.headers.get("x-service-paywall-url"), url);
    }
    assert.equal(world.upstream.calls.length, 0);
  });

  Deno.test(`paywallOnJson: ${path} gets the message by default (${JSON.stringify(fields).slice(0, 60)})`, async () => {
    using world = await createWorld({ project: { pricing } });
    assert.equal((await world.json(path, { body, headers: asAda })).status, 200);
  });
}

Deno.test("paywallOnJson: what asks for text gets the message as text all the same", async () => {
  using world = await createWorld({ project: { pricing, paywallOnJson: "402" } });
  const tools = { tools: [tool], tool_choice: "auto" };
  for (const fields of [{}, tools, { response_format: { type: "text" }, guided_json: null }]) {
    assert.match((await chat(world, fields)).body.choices[0].message.content, link);
  }
  assert.equal((await respond(world, {})).status, 200);
  assert.equal((await send(world)).status, 200);
  const completion = { ...given, prompt: "Hi" };
  assert.equal((await world.json("/v1/completions", { body: completion })).status, 200);
});

Deno.test("paywallOnJson: OpenAI's client throws an error that shows the link, and asks once", async () => {
  using world = await createWorld({ project: { pricing, paywallOnJson: "402" } });
  const error = await openAiClient(world).chat.completions.create({
    model: "test-model",
    user: "ada",
    messages: [{ role: "user", content: "Hi" }],
    response_format: { type: "json_object" },
  }).catch((error) => error);
  assert.ok(error instanceof OpenAI.APIError);
  assert.equal(error.status, 402);
  assert.match(error.message, link);
});

const joins: [string, (world: World) => Promise<string>][] = [
  ["chat", async (world) => {
    const { body } = await chat(world, { response_format: format });
    const { content, refusal } = body.choices[0].message;
    return `${content}${refusal}`;
  }],
  ["responses", async (world) => {
    const { body } = await respond(world, { text: { format: { type: "json_object" } } });
    return `${body.output[0].content[0].refusal}next`;
  }],
  ["messages", async (world) => {
    const fields = { output_config: { format: { type: "json_schema", schema } } };
    const { body } = await send(world, fields);
    return `${body.content[0].text}${body.stop_details.explanation}`;
  }],
];
for (const [name, join] of joins) {
  Deno.test(`paywall where JSON is required: ${name}'s link ends where texts are joined`, async () => {
    using world = await createWorld({ project: { pricing } });
    const text = await join(world);
    const [url] = /https:\S+/.exec(text) ?? [];
    assert.match(url ?? "", new RegExp(`^${link.source}$`));
  });
}

Deno.test("paywallOnJson: the console's form sets it, and other values are 400", async () => {
  using world = await createWorld();
  const visitor = await signedIn(world);
  const { html } = await visitor.get("settings");
  assert.match(html, /name="paywallOnJson"/);
  assert.doesNotMatch(html, /name="paywallOnJson"[^>]* checked/);
  const form = { name: "Test", amounts: "5", paywallOnJson: "on" };
  await visitor.submit("settings", { ...hiddenFields(html, "/settings"), ...form });
  const path = `/v1/admin/projects/${world.projectId}`;
  const { body } = await world.json(path, { key: adminKey });
  assert.equal(body.project.paywallOnJson, "402");
  assert.match((await visitor.get("settings")).html, /name="paywallOnJson"[^>]* checked/);
  const options = { method: "PATCH", key: adminKey, body: { paywallOnJson: 402 } };
  assert.equal((await world.json(path, options)).status, 400);
});

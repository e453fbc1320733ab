import assert from "node:assert/strict";
import { ChatOpenAI } from "@langchain/openai";
import { createOpenRouter } from "@openrouter/ai-sdk-provider";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, streamText } from "ai";
import { z } from "zod";
import { openaiClient, throughService } from "../support/clients.ts";
import { createWorld, type World } from "../support/world.ts";
import { helloStream } from "../support/upstream.ts";

const link = /https:\/\/farebox\.test\/t\//;
const headers = { "x-service-user": "ada" };
const prompt = "Hi";

const schema = {
  type: "object" as const,
  properties: { city: { type: "string" as const } },
  required: ["city"],
  additionalProperties: false,
};
const jsonFormat = {
  type: "json_schema" as const,
  json_schema: { name: "place", schema, strict: true },
};

async function paidWorld(): Promise<World> {
  const world = await createWorld();
  await world.deposit("ada", "1");
  return world;
}

function aiModels(world: World) {
  const { baseURL, apiKey, fetch } = throughService(world);
  const openrouter = createOpenRouter({ baseURL, apiKey, fetch, headers });
  const compatible = createOpenAICompatible({ name: "farebox", baseURL, apiKey, fetch, headers });
  return {
    OpenRouter: openrouter.chat("test-model", { usage: { include: true } }),
    compatible: compatible("test-model"),
  };
}

for (const name of ["OpenRouter", "compatible"] as const) {
  Deno.test(`clients: the AI SDK's ${name} provider gets responses, their cost and the paywall`, async () => {
    using world = await paidWorld();
    using poor = await createWorld();
    const model = aiModels(world)[name];
    const whole = await generateText({ model, prompt, maxRetries: 0 });
    assert.equal(whole.text, "Hello there");
    world.upstream.once(() => helloStream());
    assert.equal(await streamText({ model, prompt, maxRetries: 0 }).text, "Hello there");
    if (name === "OpenRouter") {
      const { openrouter } = whole.providerMetadata as Record<string, { usage: { cost: number } }>;
      assert.equal(openrouter?.usage.cost, 0.00002);
    }
    const walled = aiModels(poor)[name];
    assert.match((await generateText({ model: walled, prompt, maxRetries: 0 })).text, link);
    assert.match(await streamText({ model: walled, prompt, maxRetries: 0 }).text, link);
    assert.equal(poor.upstream.calls.length, 0);
  });
}

Deno.test("clients: where JSON is asked for, OpenAI's parse helper shows the link as a refusal", async () => {
  using poor = await createWorld();
  const client = openaiClient(throughService(poor));
  const body = { model: "test-model", messages: [{ role: "user" as const, content: prompt }] };
  const parsed = await client.chat.completions.parse({ ...body, response_format: jsonFormat });
  const [choice] = parsed.choices;
  assert.match(choice?.message.refusal ?? "", link);
  assert.match(choice?.message.content ?? "", link);
  const plain = await client.chat.completions.create(body);
  assert.equal(plain.choices[0]?.message.refusal, null);
  assert.match(plain.choices[0]?.message.content ?? "", link);
});

const forced: Record<string, unknown>[] = [
  { response_format: { type: "json_object" } },
  { response_format: jsonFormat },
  { tool_choice: "required" },
  { tool_choice: { type: "function", function: { name: "f" } } },
];
for (const fields of forced) {
  for (const stream of [false, true]) {
    Deno.test(`clients: with ${Object.keys(fields)} ${JSON.stringify(Object.values(fields)[0]).slice(0, 40)}${stream ? ", streamed," : ""} the paywall is a refusal as well`, async () => {
      using poor = await createWorld();
      const tools = [{ type: "function", function: { name: "f" } }];
      const body = {
        model: "test-model",
        user: "ada",
        messages: [{ role: "user", content: prompt }],
      };
      const response = await poor.call("/v1/chat/completions", {
        body: { ...body, ...(fields.tool_choice ? { tools } : {}), ...fields, stream },
      });
      const text = await response.text();
      const said = stream
        ? text.split("\n\n").filter((frame) => frame.startsWith("data: {"))
          .map((frame) => JSON.parse(frame.slice(6)).choices[0]?.delta ?? {})
        : [JSON.parse(text).choices[0].message];
      for (const field of ["content", "refusal"]) {
        assert.match(said.map((part) => part[field] ?? "").join(""), link, field);
      }
    });
  }
}

for (const choice of ["auto", "none"]) {
  Deno.test(`clients: with tool_choice ${choice} the paywall is text alone`, async () => {
    using poor = await createWorld();
    const { body } = await poor.json("/v1/chat/completions", {
      body: {
        model: "test-model",
        user: "ada",
        messages: [{ role: "user", content: prompt }],
        tools: [{ type: "function", function: { name: "f" } }],
        tool_choice: choice,
      },
    });
    assert.equal(body.choices[0].message.refusal, null);
    assert.match(body.choices[0].message.content, link);
  });
}

Deno.test("clients: LangChain's structured output fails with the whole link", async () => {
  using poor = await createWorld();
  const { baseURL, apiKey, fetch } = throughService(poor);
  const chat = new ChatOpenAI({
    model: "test-model",
    apiKey,
    maxRetries: 0,
    configuration: { baseURL, fetch, defaultHeaders: headers },
  });
  const place = z.object({ city: z.string() });
  const structured = chat.withStructuredOutput(place, { method: "jsonSchema", name: "place" });
  await assert.rejects(structured.invoke(prompt), (error: Error) => link.test(error.message));
  assert.match(String((await chat.invoke(prompt)).content), link);
});

import assert from "node:assert/strict";
import fc from "fast-check";
import { ApiError } from "../../src/base/errors.ts";
import type { JsonObject } from "../../src/base/json.ts";
import { readChatRequest } from "../../src/formats/chat/request.ts";
import { readCompletionRequest } from "../../src/formats/completions/request.ts";
import type { FieldPolicy } from "../../src/inference/model_request.ts";
import { always } from "../support/property.ts";

const refuse: FieldPolicy = { unknown: "refuse", allowed: [] };
const pass: FieldPolicy = { unknown: "pass", allowed: [] };
const messages = [{ role: "user", content: "Hi" }];

const readChat = (fields: JsonObject, policy = refuse) =>
  readChatRequest({ model: "m", messages, ...fields }, { bytes: 100, fields: policy });
const readCompletion = (fields: JsonObject, policy = refuse) =>
  readCompletionRequest({ model: "m", prompt: "Hi", ...fields }, { bytes: 100, fields: policy });

/** The place and the code of the error that reading throws; null where it does not. */
function refusalOf(read: () => unknown): [string | null, string | null] | null {
  try {
    read();
    return null;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return [error.param, error.code];
  }
}

const chatReference: JsonObject = {
  ...{ audio: null, frequency_penalty: 0, function_call: "auto", functions: [], logit_bias: {} },
  ...{
    logprobs: true,
    max_completion_tokens: 5,
    max_tokens: 5,
    metadata: {},
    modalities: ["text"],
  },
  ...{ n: 1, parallel_tool_calls: true, presence_penalty: 0, prompt_cache_key: "k" },
  ...{ prompt_cache_options: { mode: "explicit" }, prompt_cache_retention: "24h", seed: 1 },
  ...{ reasoning_effort: "low", response_format: { type: "text" }, safety_identifier: "s" },
  ...{ service_tier: "auto", stop: ["x"], store: false, stream: true, stream_options: {} },
  ...{ temperature: 1, tool_choice: "auto", tools: [], top_logprobs: 1, top_p: 1, user: "u" },
  ...{ verbosity: "low", web_search_options: null },
};
const otherServers: JsonObject = {
  ...{ thinking: {}, reasoning: {}, include_reasoning: true, enable_thinking: true },
  ...{ thinking_budget: 1, chat_template_kwargs: {}, top_k: 1, min_p: 0, top_a: 0 },
  ...{ repetition_penalty: 1, cache_control: {}, n_predict: 5, min_tokens: 1, stop_token_ids: [] },
  ...{ guided_json: {}, guided_regex: "", guided_choice: [], guided_grammar: "", grammar: "" },
  ...{ json_schema: {}, structured_outputs: {}, mirostat: 0, mirostat_tau: 1, mirostat_eta: 1 },
  ...{ typical_p: 1, tfs_z: 1, ignore_eos: false, skip_special_tokens: true, echo: false },
  ...{ add_generation_prompt: true, google: { thinking_config: {}, thought_tag_marker: "t" } },
  ...{ extra_body: { google: { thinking_config: {} }, enable_thinking: true } },
};
const completionReference: JsonObject = {
  ...{ best_of: 1, echo: false, frequency_penalty: 0, logit_bias: {}, logprobs: 1, max_tokens: 5 },
  ...{ n: 1, presence_penalty: 0, seed: 1, stop: "x", stream: false, stream_options: {} },
  ...{ suffix: "x", temperature: 1, top_p: 1, user: "u" },
};

for (const [field, value] of Object.entries({ ...chatReference, ...otherServers })) {
  Deno.test(`fields: a chat's ${field} is known`, () => {
    assert.deepEqual(readChat({ [field]: value }).body[field], value);
  });
}
for (const [field, value] of Object.entries(completionReference)) {
  Deno.test(`fields: a legacy completion's ${field} is known`, () => {
    assert.deepEqual(readCompletion({ [field]: value }).body[field], value);
  });
}

const unknownFields = [
  ...["deferred", "prediction", "moderation", "provider", "preset", "route", "user_config"],
  ...["api_base", "base_url", "api_key", "custom_llm_provider", "best_of", "use_beam_search"],
  ...["prompt_logprobs", "chat_template", "priority", "kv_transfer_params", "max_new_tokens"],
  ...["max_output_tokens", "options", "features", "web_search", "mcp_servers", "files"],
  ...["models", "fallbacks", "n_cmpl", "safety_model", "logits_processors", "Preset", "__proto__"],
];
for (const field of unknownFields) {
  // As JSON has it: `__proto__` is a member like any other.
  const fields: JsonObject = JSON.parse(`{"${field}":"x"}`);
  const body = (): JsonObject =>
    JSON.parse(`{"model":"m","messages":${JSON.stringify(messages)},"${field}":"x"}`);
  const read = (policy: FieldPolicy) => () => readChatRequest(body(), { bytes: 9, fields: policy });
  Deno.test(`fields: ${field} is refused unless a setting opens it`, () => {
    assert.deepEqual(refusalOf(read(refuse)), [field, "unknown_parameter"]);
    assert.equal(refusalOf(read({ unknown: "refuse", allowed: [field] })), null);
    assert.equal(refusalOf(read(pass)), null);
    assert.deepEqual(Object.keys(fields), [field]);
  });
}

const nested: [string, JsonObject, string][] = [
  ["messages.1.files", { messages: [...messages, { role: "user", files: [] }] }, "files"],
  [
    "tools.0.google_search",
    { tools: [{ type: "function", function: { name: "f" }, google_search: {} }] },
    "google_search",
  ],
  ["extra_body.model", { extra_body: { model: "other" } }, "model"],
  ["extra_body.max_tokens", { extra_body: { max_tokens: 9e9 } }, "extra_body"],
  ["google.cached_content", { google: { cached_content: "c" } }, "google"],
  [
    "extra_body.google.cached_content",
    { extra_body: { google: { cached_content: "c" } } },
    "cached_content",
  ],
];
for (const [place, fields, opener] of nested) {
  Deno.test(`fields: ${place} is refused by its place, and opened by '${opener}'`, () => {
    assert.deepEqual(refusalOf(() => readChat(fields)), [place, "unknown_parameter"]);
    assert.equal(refusalOf(() => readChat(fields, { unknown: "refuse", allowed: [opener] })), null);
    // What a provider keeps is not passed on unread either.
    const kept = place.endsWith("cached_content") ? [place, "not_found"] : null;
    assert.deepEqual(refusalOf(() => readChat(fields, pass)), kept);
  });
}

Deno.test("fields: a tool that is no object is refused", () => {
  assert.deepEqual(refusalOf(() => readChat({ tools: ["web_search"] }))?.[0], "tools.0");
  assert.equal(refusalOf(() => readChat({ tools: ["web_search"] }, pass)), null);
});

Deno.test("fields: known ones in any order pass unchanged, and one more name is refused", async () => {
  const known = { ...chatReference, ...otherServers };
  const names = fc.subarray(Object.keys(known));
  const unknown = fc.string({ minLength: 1, maxLength: 20 }).filter((name) =>
    !(name.toLowerCase() in known) && !["model", "messages"].includes(name.toLowerCase()) &&
    refusalOf(() => readChat(JSON.parse(JSON.stringify({ [name]: 1 })))) !== null
  );
  await always(
    200,
    fc.property(names, unknown, (chosen, name) => {
      const fields = Object.fromEntries(chosen.map((field) => [field, known[field] ?? null]));
      const { body } = readChat(fields);
      assert.deepEqual(body, { model: "m", messages, ...fields });
      assert.equal(refusalOf(() => readChat({ ...fields, [name]: 1 }))?.[1], "unknown_parameter");
    }),
  );
});

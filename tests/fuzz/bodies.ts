import type { JsonObject } from "../../src/base/json.ts";

// Valid bodies of the endpoints that call models, with as many of their members as fit together.

const pixel = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk";
const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const common = { model: "test-model", user: "ada" };

const chat: JsonObject = {
  ...common,
  messages: [
    { role: "system", content: "Be brief." },
    {
      role: "user",
      content: [
        { type: "text", text: "What is it?", cache_control: { type: "ephemeral", ttl: "5m" } },
        { type: "image_url", image_url: { url: pixel, detail: "low" } },
      ],
    },
    {
      role: "assistant",
      content: null,
      tool_calls: [{ id: "c1", type: "function", function: { name: "f", arguments: "{}" } }],
    },
    { role: "tool", tool_call_id: "c1", content: [{ type: "text", text: "1" }] },
    { role: "user", content: "And now?" },
  ],
  max_tokens: 20,
  n: 1,
  temperature: 0,
  top_p: 1,
  stop: ["x"],
  logit_bias: { "1": 1 },
  tools: [{
    type: "function",
    function: { name: "f", description: "d", parameters, strict: true },
  }],
  tool_choice: { type: "function", function: { name: "f" } },
  parallel_tool_calls: false,
  response_format: { type: "json_schema", json_schema: { name: "j", schema: parameters } },
  metadata: { a: "b" },
  seed: 1,
  reasoning_effort: "low",
  prompt_cache_key: "k",
};

const chatOptions: JsonObject = {
  ...common,
  messages: [
    {
      role: "user",
      content: [
        { type: "text", text: "Hi" },
        { type: "input_audio", input_audio: { data: "UklGRg==", format: "wav" } },
        { type: "file", file: { filename: "a.txt", file_data: "data:text/plain;base64,YQ==" } },
      ],
    },
    { role: "assistant", content: "Yes", reasoning_content: "r", annotations: [] },
    { role: "user", content: "Go on" },
  ],
  max_completion_tokens: 20,
  modalities: ["text"],
  service_tier: "default",
  thinking: { type: "enabled", budget_tokens: 10 },
  web_search_options: { search_context_size: "low", user_location: { type: "approximate" } },
  tools: [{ type: "web_search", max_uses: 2 }, { type: "function", function: { name: "f" } }],
  functions: [{ name: "g", parameters }],
  function_call: { name: "g" },
  google: { thinking_config: { thinking_budget: 5 } },
  extra_body: { google: { thinking_config: {} }, thinking: {} },
  chat_template_kwargs: { enable_thinking: true },
  max_tool_calls: 2,
  safety_identifier: "ada",
};

/** What every upstream can be asked, by a bridge too. */
const carriedChat: JsonObject = {
  ...common,
  messages: chat.messages ?? null,
  max_tokens: 20,
  temperature: 0.5,
  stop: ["x"],
  tools: chat.tools ?? null,
  tool_choice: "auto",
  reasoning_effort: "low",
};

const plainChat: JsonObject = { ...common, messages: [{ role: "user", content: "Hi" }] };
const streamed: JsonObject = { stream: true, stream_options: { include_usage: true } };

const completion: JsonObject = {
  ...common,
  prompt: ["Once", "Twice"],
  suffix: "end",
  max_tokens: 5,
  n: 1,
  best_of: 1,
  echo: false,
  logprobs: 1,
  stop: "x",
  logit_bias: { "1": 1 },
};

const userMessage = {
  type: "message",
  role: "user",
  content: [
    { type: "input_text", text: "What is it?" },
    { type: "input_image", image_url: pixel, detail: "low" },
    { type: "input_file", filename: "a.txt", file_data: "data:text/plain;base64,YQ==" },
  ],
};

const response: JsonObject = {
  ...common,
  instructions: "Be brief.",
  input: [
    userMessage,
    { type: "function_call", id: "fc_1", call_id: "c1", name: "f", arguments: "{}" },
    { type: "function_call_output", call_id: "c1", output: "1" },
    { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "e" },
    { type: "message", role: "assistant", content: [{ type: "output_text", text: "Yes" }] },
    { role: "user", content: "And now?" },
  ],
  max_output_tokens: 20,
  tools: [
    { type: "function", name: "f", parameters, strict: true },
    { type: "web_search", search_context_size: "low", filters: { allowed_domains: ["a.test"] } },
    { type: "namespace", name: "n", tools: [{ type: "function", name: "g", parameters }] },
  ],
  tool_choice: { type: "function", name: "f" },
  text: { format: { type: "json_schema", name: "j", schema: parameters }, verbosity: "low" },
  reasoning: { effort: "low", summary: "auto" },
  metadata: { a: "b" },
  include: ["reasoning.encrypted_content"],
  store: false,
  truncation: "disabled",
  context_management: [],
  prompt_cache_options: { ttl: "5m" },
  max_tool_calls: 3,
};

const carriedResponse: JsonObject = {
  ...common,
  instructions: "Be brief.",
  input: response.input ?? null,
  max_output_tokens: 20,
  tools: [{ type: "function", name: "f", parameters, strict: true }],
  tool_choice: { type: "function", name: "f" },
  text: { format: { type: "json_schema", name: "j", schema: parameters } },
};

const hostedResponse: JsonObject = {
  ...common,
  input: [
    { type: "computer_call_output", call_id: "c", output: { type: "computer_screenshot" } },
    { type: "mcp_list_tools", server_label: "m", tools: [{ name: "t", input_schema: {} }] },
    { type: "additional_tools", role: "developer", tools: [{ type: "web_search" }] },
    { type: "item_reference", id: "msg_paywall_1" },
    { role: "user", content: "Hi" },
  ],
  tools: [
    { type: "file_search", max_num_results: 1 },
    { type: "code_interpreter", container: { type: "auto" } },
    { type: "image_generation", input_image_mask: { image_url: pixel } },
    { type: "mcp", server_label: "m", server_url: "https://m.test", allowed_tools: ["t"] },
    { type: "shell", environment: { type: "local" } },
  ],
  tool_choice: "auto",
  conversation: null,
  prompt: null,
};

const message: JsonObject = {
  model: "test-model",
  max_tokens: 20,
  system: [{ type: "text", text: "Be brief.", cache_control: { type: "ephemeral", ttl: "5m" } }],
  messages: [
    {
      role: "user",
      content: [
        { type: "text", text: "What is it?", citations: [] },
        {
          type: "image",
          source: { type: "base64", media_type: "image/png", data: "iVBORw0KGgo=" },
        },
        {
          type: "document",
          source: { type: "text", media_type: "text/plain", data: "a" },
          title: "t",
        },
      ],
    },
    {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "t", signature: "s" },
        { type: "tool_use", id: "t1", name: "f", input: { city: "Paris" } },
      ],
    },
    {
      role: "user",
      content: [{
        type: "tool_result",
        tool_use_id: "t1",
        is_error: false,
        content: [{ type: "text", text: "1" }],
      }],
    },
  ],
  tools: [
    { name: "f", description: "d", input_schema: parameters },
    { type: "web_search_20250305", name: "web_search", max_uses: 2 },
    { type: "bash_20250124", name: "bash" },
  ],
  tool_choice: { type: "auto", disable_parallel_tool_use: true },
  thinking: { type: "enabled", budget_tokens: 10 },
  metadata: { user_id: "u" },
  stop_sequences: ["x"],
  temperature: 1,
  output_config: { effort: "low" },
  context_management: { edits: [{ type: "clear_tool_uses_20250919" }] },
  mcp_servers: [],
  service_tier: "auto",
};

const plainMessage: JsonObject = {
  model: "test-model",
  max_tokens: 20,
  messages: [{ role: "user", content: "Hi" }],
};
const { max_tokens: _most, ...counted } = message;

/** What is refused as it is, and may not be once it is spoiled. */
const keptThings: readonly (readonly [string, JsonObject])[] = [
  ["/responses", { ...common, input: "Hi", conversation: { id: "conv_1" } }],
  ["/responses", {
    ...common,
    input: "Hi",
    prompt: { id: "p", variables: { a: { file_id: "f" } } },
  }],
  ["/responses", { ...common, input: "Hi", previous_response_id: "resp_1" }],
  ["/responses", { ...common, input: "Hi", context_management: [{ type: "compaction" }] }],
  ["/responses", {
    ...common,
    input: [{ role: "user", content: [{ type: "input_file", file_id: "file-1" }] }],
    tools: [{ type: "file_search", vector_store_ids: ["vs_1"] }, {
      type: "code_interpreter",
      container: "c",
    }],
    tool_choice: { type: "allowed_tools", mode: "auto", tools: [{ type: "file_search" }] },
  }],
  ["/messages", {
    ...plainMessage,
    container: { id: "c", skills: [{ type: "custom", skill_id: "s", version: "1" }] },
    tools: [{ type: "code_execution_20250825", name: "code_execution" }],
    diagnostics: { previous_message_id: "m" },
    thread: { type: "create" },
  }],
  ["/messages", {
    ...plainMessage,
    messages: [{ role: "user", content: [{ type: "container_upload", file_id: "file_1" }] }],
  }],
  ["/chat/completions", {
    ...common,
    messages: [
      { role: "user", content: [{ type: "file", file: { file_id: "file-1" } }] },
      { role: "assistant", audio: { id: "audio_1" } },
    ],
    google: { cached_content: "c" },
    thread_id: "t",
  }],
];

/** Bodies by the path that they are sent to, below `/v1`. */
export const modelBodies: readonly (readonly [string, JsonObject])[] = [
  ["/chat/completions", plainChat],
  ["/chat/completions", { ...plainChat, ...streamed }],
  ["/chat/completions", chat],
  ["/chat/completions", { ...chat, ...streamed }],
  ["/chat/completions", carriedChat],
  ["/chat/completions", { ...carriedChat, ...streamed }],
  ["/chat/completions", chatOptions],
  ["/chat/completions", { ...chatOptions, ...streamed }],
  ["/completions", completion],
  ["/completions", { ...completion, prompt: "Once", ...streamed }],
  ["/embeddings", { ...common, input: ["a", "b"], encoding_format: "float", dimensions: 2 }],
  ["/embeddings", { ...common, input: [[1, 2], [3]] }],
  ["/responses", { ...common, input: "Hi" }],
  ["/responses", { ...common, input: "Hi", stream: true }],
  ["/responses", response],
  ["/responses", { ...response, stream: true }],
  ["/responses", carriedResponse],
  ["/responses", { ...carriedResponse, stream: true }],
  ["/responses", hostedResponse],
  ["/responses", { ...hostedResponse, stream: true }],
  ["/responses/input_tokens", { ...common, input: "Hi" }],
  ["/messages", plainMessage],
  ["/messages", { ...plainMessage, stream: true }],
  ["/messages", message],
  ["/messages", { ...message, stream: true }],
  ["/messages/count_tokens", counted],
  ["/images/generations", { ...common, prompt: "a", n: 1, size: "1024x1024", quality: "low" }],
  ["/audio/speech", {
    ...common,
    input: "Hi",
    voice: { id: "v" },
    speed: 1,
    response_format: "mp3",
  }],
  ["/moderations", { ...common, input: [{ type: "text", text: "a" }] }],
  ...keptThings,
];

import { badRequest } from "../../base/errors.ts";
import { isObject, type JsonObject } from "../../base/json.ts";
import type { FieldPolicy } from "../../inference/model_request.ts";
import { isCallersTool } from "./extras.ts";

/** The words of these lines. */
export function words(...lines: string[]): string[] {
  return lines.flatMap((line) => line.split(" "));
}

/**
 * Sampling, output formats and reasoning of other servers: they cost nothing besides the tokens,
 * and reach no other model, key or address.
 */
export const harmlessFields = words(
  "top_k top_a min_p typical_p tfs_z repetition_penalty repeat_penalty repeat_last_n mirostat",
  "mirostat_tau mirostat_eta length_penalty min_tokens stop_token_ids bad_words ignore_eos",
  "include_stop_str_in_output skip_special_tokens spaces_between_special_tokens",
  "dry_multiplier dry_base dry_allowed_length dry_penalty_last_n dry_sequence_breakers",
  "xtc_probability xtc_threshold dynatemp_range dynatemp_exponent samplers random_seed",
  "guided_json guided_regex guided_choice guided_grammar guided_whitespace_pattern",
  "structured_outputs grammar json_schema cache_prompt n_probs timings_per_token",
  "add_special_tokens truncate_prompt_tokens transforms safe_prompt return_token_ids",
  "allowed_token_ids top_n_sigma min_keep do_sample",
);

/** Whether and how a model reasons, by the names of many servers. */
const reasoningFields = words(
  "reasoning_effort thinking reasoning include_reasoning enable_thinking think thinking_budget",
  "thinking_budget_tokens chat_template_kwargs reasoning_format reasoning_split prompt_mode",
  "preserve_thinking clear_thinking disable_reasoning",
);

/**
 * Members of a chat request: https://platform.openai.com/docs/api-reference/chat/create without
 * `prediction`, whose rejected tokens are billed, and `moderation`, which calls another model.
 */
const chatFields = new Set([
  ...words(
    "model messages user stream stream_options n max_tokens max_completion_tokens temperature top_p",
    "frequency_penalty presence_penalty logit_bias logprobs top_logprobs stop seed tools tool_choice",
    "parallel_tool_calls functions function_call response_format verbosity modalities audio",
    "service_tier store metadata safety_identifier prompt_cache_key prompt_cache_retention",
    "prompt_cache_options web_search_options",
  ),
  ...words(
    "n_predict usage echo add_generation_prompt continue_final_message documents cache_control",
    "tool_stream speed max_tool_calls google extra_body",
    "search_parameters enable_search plugins search_domain_filter search_recency_filter",
    "search_after_date_filter search_before_date_filter search_mode disable_search",
    "return_images return_related_questions language_preference",
  ),
  ...reasoningFields,
  ...harmlessFields,
]);

/** Members of `extra_body`, which some servers merge into the body. */
const extraFields = new Set(["google", ...reasoningFields]);

/** Members of `google`: https://ai.google.dev/gemini-api/docs/openai */
const googleFields = new Set(["thinking_config", "thought_tag_marker"]);

/** Members of a message, with what servers add to those that clients send back. */
export const chatMessageFields: ReadonlySet<string> = new Set(words(
  "role content name tool_calls tool_call_id function_call refusal audio annotations",
  "reasoning reasoning_content reasoning_details thinking thinking_blocks cache_control prefix",
  "partial images parsed provider_specific_fields",
));

/** Members of a tool that the caller runs. */
const toolFields = new Set(["type", "function", "custom", "cache_control"]);

/** Members of a legacy completion: https://platform.openai.com/docs/api-reference/completions */
const completionFields = new Set([
  ...words(
    "model prompt suffix user stream stream_options n best_of max_tokens temperature top_p echo",
    "frequency_penalty presence_penalty logit_bias logprobs stop seed",
  ),
  ...harmlessFields,
]);

/**
 * Members of a request for embeddings: https://platform.openai.com/docs/api-reference/embeddings
 * with what other servers need to know of the input.
 */
const embeddingFields = new Set(words(
  "model input user encoding_format dimensions safety_identifier input_type truncate task",
  "truncate_prompt_tokens add_special_tokens prompt_name normalize output_dtype late_chunking",
));

/** Members of requests for images, speech, transcripts and moderations. */
const madeFields = {
  images: new Set(words(
    "model prompt n size quality user stream partial_images response_format style background",
    "moderation output_format output_compression safety_identifier seed negative_prompt",
  )),
  speech: new Set(words(
    "model input voice instructions response_format speed stream_format user safety_identifier",
    "language",
  )),
  transcriptions: new Set(words(
    "model language prompt response_format temperature stream user safety_identifier",
    "timestamp_granularities timestamp_granularities[] include include[] chunking_strategy",
    "chunking_strategy[type] chunking_strategy[prefix_padding_ms]",
    "chunking_strategy[silence_duration_ms] chunking_strategy[threshold]",
    "known_speaker_names[] known_speaker_references[] hotwords vad_filter seed",
  )),
};

/** Throws 400 for an unknown member of such a request, where those are refused. */
export function requireKnownMadeFields(
  body: JsonObject,
  { of, policy }: { of: keyof typeof madeFields; policy: FieldPolicy },
): void {
  if (policy.unknown === "refuse") requireKnown(body, madeFields[of], { policy, at: "" });
}

/** Throws 400 for an unknown member of a request for embeddings, where those are refused. */
export function requireKnownEmbeddingFields(body: JsonObject, policy: FieldPolicy): void {
  if (policy.unknown === "refuse") requireKnown(body, embeddingFields, { policy, at: "" });
}

/**
 * Throws 400 for a member of a chat request that is unknown, where the project refuses those. Such
 * a field may cost what is not priced, or reach another model, key or address.
 */
export function requireKnownChatFields(body: JsonObject, policy: FieldPolicy): void {
  if (policy.unknown === "pass") return;
  requireKnown(body, chatFields, { policy, at: "" });
  requireKnownNested(body, policy, "");
  if (Array.isArray(body.messages)) {
    for (const [index, message] of body.messages.entries()) {
      if (isObject(message)) {
        requireKnown(message, chatMessageFields, { policy, at: `messages.${index}.` });
      }
    }
  }
  if (!Array.isArray(body.tools)) return;
  for (const [index, tool] of body.tools.entries()) {
    if (!isObject(tool)) throw badRequest(`tools.${index}`, `'tools.${index}' must be an object.`);
    // A tool that runs at the provider has members of its own, and a price.
    if (!isCallersTool(tool)) continue;
    requireKnown(tool, toolFields, { policy, at: `tools.${index}.` });
  }
}

/** Throws 400 for an unknown member of the fields that hold other servers' options. */
function requireKnownNested(place: JsonObject, policy: FieldPolicy, at: string): void {
  const { google, extra_body: extra } = place;
  if (isObject(google) && !policy.allowed.includes("google")) {
    requireKnown(google, googleFields, { policy, at: `${at}google.` });
  }
  if (!isObject(extra) || policy.allowed.includes("extra_body")) return;
  requireKnown(extra, extraFields, { policy, at: `${at}extra_body.` });
  requireKnownNested(extra, policy, `${at}extra_body.`);
}

/**
 * Throws 400 for a field of a legacy completion that is not known, where the policy refuses those.
 */
export function requireKnownCompletionFields(body: JsonObject, policy: FieldPolicy): void {
  if (policy.unknown === "refuse") requireKnown(body, completionFields, { policy, at: "" });
}

/** Throws 400 for a member that is neither known nor allowed; `at` is the path before its name. */
export function requireKnown(
  value: JsonObject,
  known: ReadonlySet<string>,
  { policy, at }: { policy: FieldPolicy; at: string },
): void {
  for (const name in value) {
    if (known.has(name) || value[name] === null || policy.allowed.includes(name)) continue;
    throw badRequest(
      `${at}${name.slice(0, 64)}`,
      `'${name.slice(0, 64)}' is not passed on here. The project's setting 'allowedFields' opens ` +
        `it, and 'unknownFields: "pass"' opens every unknown field.`,
      "unknown_parameter",
    );
  }
}

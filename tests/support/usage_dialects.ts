import fc from "fast-check";

/** A partition of a call's tokens, as a provider knows it. */
export const partNames = {
  plain: 50_000,
  read: 50_000,
  write: 20_000,
  hour: 5_000,
  audio: 3_000,
  image: 3_000,
  citation: 30_000,
  text: 20_000,
  thought: 20_000,
  speech: 2_000,
  picture: 2_000,
};
/** The name of a part. */
export type Part = keyof typeof partNames;
/** Tokens of each part. */
export type Parts = Record<Part, number>;

/** Any partition. */
export const parts = fc.record(
  Object.fromEntries(
    Object.entries(partNames).map(([name, max]) => [
      name,
      fc.integer({ min: name === "plain" || name === "text" ? 1 : 0, max }),
    ]),
  ) as Record<Part, fc.Arbitrary<number>>,
);

const cached: Part[] = ["plain", "read", "text", "thought"];
const written: Part[] = [...cached, "write"];

/** How providers and gateways write a partition down, and the parts that they can report. */
export const dialects: Record<
  string,
  { has: Part[]; write(parts: Parts): Record<string, unknown> }
> = {
  "OpenAI: everything inside": {
    has: [...written, "audio", "image", "speech", "picture"],
    write: ({ plain, read, write, audio, image, text, thought, speech, picture }) => ({
      prompt_tokens: plain + read + write + audio + image,
      completion_tokens: text + thought + speech + picture,
      total_tokens: plain + read + write + audio + image + text + thought + speech + picture,
      prompt_tokens_details: {
        cached_tokens: read,
        cache_write_tokens: write,
        audio_tokens: audio,
        image_tokens: image,
      },
      completion_tokens_details: {
        reasoning_tokens: thought,
        audio_tokens: speech,
        image_tokens: picture,
      },
    }),
  },
  "OpenAI's responses": {
    has: [...written, "hour"],
    write: ({ plain, read, write, hour, text, thought }) => ({
      input_tokens: plain + read + write + hour,
      input_tokens_details: {
        cached_tokens: read,
        cache_write_tokens: write + hour,
        cache_write_tokens_details: { ttl_30m_tokens: write, ttl_12h_tokens: hour },
      },
      output_tokens: text + thought,
      output_tokens_details: { reasoning_tokens: thought },
      total_tokens: plain + read + write + hour + text + thought,
    }),
  },
  "xAI: reasoning beside the completion": {
    has: cached,
    write: ({ plain, read, text, thought }) => ({
      prompt_tokens: plain + read,
      completion_tokens: text,
      total_tokens: plain + read + text + thought,
      prompt_tokens_details: { cached_tokens: read },
      completion_tokens_details: { reasoning_tokens: thought },
    }),
  },
  "Gemini's own names: thoughts beside the candidates": {
    has: [...cached, "audio", "image", "picture"],
    write: ({ plain, read, audio, image, text, thought, picture }) => ({
      promptTokenCount: plain + read + audio + image,
      promptTokensDetails: [
        { modality: "TEXT", tokenCount: plain + read },
        { modality: "AUDIO", tokenCount: audio },
        { modality: "IMAGE", tokenCount: image },
      ],
      cachedContentTokenCount: read,
      cacheTokensDetails: [{ modality: "TEXT", tokenCount: read }],
      candidatesTokenCount: text + picture,
      candidatesTokensDetails: [
        { modality: "TEXT", tokenCount: text },
        { modality: "IMAGE", tokenCount: picture },
      ],
      thoughtsTokenCount: thought,
      totalTokenCount: plain + read + audio + image + text + picture + thought,
    }),
  },
  "Gemini by OpenAI's names: only the total has the thoughts": {
    has: ["plain", "text", "thought"],
    write: ({ plain, text, thought }) => ({
      prompt_tokens: plain,
      completion_tokens: text,
      total_tokens: plain + text + thought,
    }),
  },
  "Anthropic: the cache beside the input, by its life": {
    has: [...written, "hour"],
    write: ({ plain, read, write, hour, text, thought }) => ({
      input_tokens: plain,
      cache_read_input_tokens: read,
      cache_creation_input_tokens: write + hour,
      cache_creation: { ephemeral_5m_input_tokens: write, ephemeral_1h_input_tokens: hour },
      output_tokens: text + thought,
      output_tokens_details: { thinking_tokens: thought },
    }),
  },
  "a gateway: Anthropic's cache beside, and in the total": {
    has: written,
    write: ({ plain, read, write, text, thought }) => ({
      prompt_tokens: plain,
      completion_tokens: text + thought,
      total_tokens: plain + read + write + text + thought,
      cache_read_input_tokens: read,
      cache_creation_input_tokens: write,
      completion_tokens_details: { reasoning_tokens: thought },
    }),
  },
  "a gateway: Anthropic's cache inside the prompt": {
    has: written,
    write: ({ plain, read, write, text, thought }) => ({
      prompt_tokens: plain + read + write,
      completion_tokens: text + thought,
      total_tokens: plain + read + write + text + thought,
      prompt_tokens_details: { cached_tokens: read },
      cache_read_input_tokens: read,
      cache_creation_input_tokens: write,
      completion_tokens_details: { reasoning_tokens: thought },
    }),
  },
  "DeepSeek: hits and misses": {
    has: cached,
    write: ({ plain, read, text, thought }) => ({
      prompt_tokens: plain + read,
      prompt_cache_hit_tokens: read,
      prompt_cache_miss_tokens: plain,
      completion_tokens: text + thought,
      total_tokens: plain + read + text + thought,
      completion_tokens_details: { reasoning_tokens: thought },
    }),
  },
  "Perplexity: citations and reasoning beside everything": {
    has: ["plain", "text", "thought", "citation"],
    write: ({ plain, text, thought, citation }) => ({
      prompt_tokens: plain,
      completion_tokens: text,
      total_tokens: plain + text,
      citation_tokens: citation,
      reasoning_tokens: thought,
      num_search_queries: 3,
    }),
  },
};

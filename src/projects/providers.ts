import type { FormatName } from "../base/endpoints.ts";

/** The formats that an upstream can be set to speak; calls in others are translated. */
export const upstreamFormats = [
  "chat",
  "responses",
  "messages",
] as const satisfies readonly FormatName[];
/** A format that an upstream can be set to speak. */
type UpstreamFormat = typeof upstreamFormats[number];

/** A header that carries an upstream's key. */
type KeyHeader = "authorization" | "x-api-key" | "api-key";

/**
 * How a chat server is asked to continue the assistant's last message, and to send only what
 * follows: by `prefix` of the message, or by fields of the request.
 */
export type Prefill = "prefix" | "continue_final_message";

/** Which fields a provider takes. Where its errors say otherwise, they are believed. */
export interface KnownFields {
  /** Absent: by the model's name. */
  maxTokensField?: "max_tokens" | "max_completion_tokens";
  /** False: it refuses `stream_options`, and reports usage without it. Absent: true. */
  requestsUsage?: false;
  /** Fields that it refuses, and that only tell whose a request is or whether it is kept. */
  refused?: readonly string[];
  /** Absent: it is not known to continue a message. */
  prefill?: Prefill;
}

/** The properties of a provider that are known beforehand. */
export interface Provider {
  /** The provider's base URL; null where each customer has one. */
  url: string | null;
  /** Null where each is tried once. */
  formats: readonly UpstreamFormat[] | null;
  keyHeader: KeyHeader;
  /** Headers that it requires of every request. */
  headers?: Readonly<Record<string, string>>;
  /**
   * The path of the provider's list of models, below the base URL. Absent: `/models`. Null: the
   * list has other names.
   */
  modelsPath?: string | null;
  fields?: KnownFields;
  /** The provider's id in the catalogue of list prices; null where it has none. */
  catalogue: string | null;
}

const bearer = { keyHeader: "authorization" } as const;
const chatOnly = { ...bearer, formats: ["chat"] } as const;

/**
 * Prepared providers, by the name that settings use. A base URL is the one that the provider
 * documents for its OpenAI-compatible API.
 */
export const providers: Readonly<Record<string, Provider>> = {
  openai: {
    ...bearer,
    url: "https://api.openai.com/v1",
    formats: ["chat", "responses"],
    fields: { maxTokensField: "max_completion_tokens" },
    catalogue: "openai",
  },
  anthropic: {
    url: "https://api.anthropic.com/v1",
    formats: ["messages"],
    keyHeader: "x-api-key",
    headers: { "anthropic-version": "2023-06-01" },
    // The most on one page.
    modelsPath: "/models?limit=1000",
    catalogue: "anthropic",
  },
  google: {
    ...chatOnly,
    url: "https://generativelanguage.googleapis.com/v1beta/openai",
    catalogue: "google",
  },
  azure: {
    url: null,
    formats: ["chat", "responses"],
    keyHeader: "api-key",
    // It lists base models. Calls go to deployments, whose names are the customer's.
    modelsPath: null,
    catalogue: "azure",
  },
  openrouter: {
    ...bearer,
    url: "https://openrouter.ai/api/v1",
    formats: ["chat", "responses", "messages"],
    catalogue: "openrouter",
  },
  groq: {
    ...bearer,
    url: "https://api.groq.com/openai/v1",
    formats: ["chat", "responses"],
    catalogue: "groq",
  },
  mistral: {
    ...chatOnly,
    url: "https://api.mistral.ai/v1",
    fields: {
      maxTokensField: "max_tokens",
      requestsUsage: false,
      refused: ["user", "safety_identifier", "store"],
    },
    catalogue: "mistral",
  },
  deepseek: {
    ...chatOnly,
    url: "https://api.deepseek.com/v1",
    fields: { prefill: "prefix" },
    catalogue: "deepseek",
  },
  xai: {
    ...bearer,
    url: "https://api.x.ai/v1",
    // Its messages are deprecated.
    formats: ["chat", "responses"],
    catalogue: "x-ai",
  },
  together: { ...chatOnly, url: "https://api.together.xyz/v1", catalogue: "together" },
  fireworks: {
    ...bearer,
    url: "https://api.fireworks.ai/inference/v1",
    formats: ["chat", "responses", "messages"],
    catalogue: "fireworks",
  },
  cerebras: { ...chatOnly, url: "https://api.cerebras.ai/v1", catalogue: "cerebras" },
  ollama: { ...bearer, url: "http://127.0.0.1:11434/v1", formats: null, catalogue: null },
  vllm: {
    ...bearer,
    url: "http://127.0.0.1:8000/v1",
    formats: null,
    fields: { prefill: "continue_final_message" },
    catalogue: null,
  },
  "llama.cpp": { ...bearer, url: "http://127.0.0.1:8080/v1", formats: null, catalogue: null },
};

/** The prepared provider of this name; null where there is none. */
export function providerNamed(name: string | undefined): Provider | null {
  return name !== undefined && Object.hasOwn(providers, name) ? providers[name] ?? null : null;
}

/**
 * The fields that a server takes, where it is a provider's own; another may take other ones. Any
 * server may be at a local address: its provider is the one that the settings name.
 */
export function fieldsAt(url: string, named: Provider | null = null): KnownFields {
  const { origin } = new URL(url);
  const found = Object.values(providers).find((one) =>
    one.url?.startsWith("https:") && new URL(one.url).origin === origin
  );
  const own = named?.url?.startsWith("http:") ? named : found;
  return own?.fields ?? {};
}

// A provider of models that speaks chat completions, responses, messages and embeddings as OpenAI
// and Anthropic do, as far as the programs that are tried can tell.
import { isObject, type JsonObject, parseJson } from "../../src/base/json.ts";
import { newId, ProviderError } from "./model.ts";
import { answerChat } from "./provider_chat.ts";
import { answerMessages } from "./provider_messages.ts";
import { answerResponses, KeptResponses } from "./provider_responses.ts";

/** A provider that listens on loopback. */
export interface Provider extends AsyncDisposable {
  url: string;
  /** The key that it accepts. */
  key: string;
  /** Every call, in order, with the status that it got. */
  calls: ProviderCall[];
}

/** The formats of text that a provider may speak. */
export const providerFormats = ["chat", "responses", "messages"] as const;
/** One of them. */
export type ProviderFormat = typeof providerFormats[number];

/** One call that the provider got. */
interface ProviderCall {
  method: string;
  path: string;
  headers: Record<string, string>;
  body: JsonObject;
  status: number;
  /** The error that it answered with. */
  error: string | null;
}

/** Starts a provider that speaks these formats, and answers 404 for the others. */
export function startProvider(formats: readonly ProviderFormat[]): Provider {
  const key = "provider-key";
  const calls: ProviderCall[] = [];
  const kept = new KeptResponses();
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    const { method, headers } = request;
    const path = new URL(request.url).pathname;
    const body = bodyOf(await request.text());
    const call = { method, path, headers: Object.fromEntries(headers), body };
    try {
      requireKey(headers, key);
      requireFormat(path, formats);
      const response = answer(method, path, body, kept);
      calls.push({ ...call, status: response.status, error: null });
      return response;
    } catch (error) {
      if (!(error instanceof ProviderError)) throw error;
      const { status, message } = error;
      calls.push({ ...call, status, error: message });
      return refusal(error, path);
    }
  });
  return {
    url: `http://127.0.0.1:${server.addr.port}/v1`,
    key,
    calls,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

function bodyOf(text: string): JsonObject {
  if (text === "") return {};
  const body = parseJson(text);
  return isObject(body) ? body : {};
}

function requireKey(headers: Headers, key: string): void {
  const given = headers.get("x-api-key") ?? headers.get("authorization")?.replace("Bearer ", "");
  if (given !== key) throw new ProviderError(401, "Incorrect API key provided.");
}

function requireFormat(path: string, formats: readonly ProviderFormat[]): void {
  const format = providerFormats.find((name) => path.startsWith(`/v1/${name}`));
  if (format === undefined || formats.includes(format)) return;
  throw new ProviderError(404, `Unknown request URL: POST ${path}.`);
}

function answer(method: string, path: string, body: JsonObject, kept: KeptResponses): Response {
  if (method === "HEAD") return new Response(null);
  switch (`${method} ${path}`) {
    case "POST /v1/chat/completions":
      return answerChat(body);
    case "POST /v1/responses":
      return answerResponses(body, kept);
    case "POST /v1/messages":
      return answerMessages(body);
    case "POST /v1/messages/count_tokens":
      return Response.json({ input_tokens: 20 });
    case "POST /v1/embeddings":
      return embeddings(body);
    case "GET /v1/models":
      return Response.json({ object: "list", data: [] });
  }
  throw new ProviderError(404, `Unknown request URL: ${method} ${path}.`);
}

function embeddings({ model = null, input, encoding_format }: JsonObject): Response {
  const vector = Float32Array.of(0.1, 0.2, 0.3);
  const embedding = encoding_format === "base64"
    ? new Uint8Array(vector.buffer).toBase64()
    : [...vector];
  const inputs = Array.isArray(input) ? input : [input];
  return Response.json({
    object: "list",
    data: inputs.map((_, index) => ({ object: "embedding", index, embedding })),
    model,
    usage: { prompt_tokens: 5 * inputs.length, total_tokens: 5 * inputs.length },
  });
}

/** An error in the shape of the API that the path belongs to. */
function refusal({ status, message, param }: ProviderError, path: string): Response {
  const isAnthropic = path.startsWith("/v1/messages");
  const type = status === 401 ? "authentication_error" : "invalid_request_error";
  const body = isAnthropic
    ? { type: "error", error: { type, message }, request_id: newId("req_") }
    : { error: { message, type: "invalid_request_error", param, code: null } };
  return Response.json(body, { status });
}

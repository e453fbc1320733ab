import OpenAI from "openai";
import { sseBytes } from "./upstream.ts";
import type { Body, CallOptions, World } from "./world.ts";

export const responsesPath = "/v1/responses";

/** Ada's default request. */
function responseRequest(fields: Body = {}): Body {
  return { model: "test-model", input: "Hi", user: "ada", ...fields };
}

/** Asks for a response, and reads its JSON. */
export function respond(world: World, fields: Body = {}, options: CallOptions = {}) {
  return world.json(responsesPath, { body: responseRequest(fields), ...options });
}

/** Asks for a streamed response. */
export function respondStream(
  world: World,
  fields: Body = {},
  options: CallOptions = {},
): Promise<Response> {
  const body = responseRequest({ stream: true, ...fields });
  return world.call(responsesPath, { body, ...options });
}

/** Usage as responses report it. */
export function tokens(input: number, output: number, more: Body = {}): Body {
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: input + output,
    ...more,
  };
}

export function message(text: string, more: Body = {}): Body {
  return {
    id: "msg_up",
    type: "message",
    role: "assistant",
    status: "completed",
    content: [{ type: "output_text", text, annotations: [], logprobs: [] }],
    ...more,
  };
}

export function functionCall(more: Body = {}): Body {
  const called = { call_id: "call_1", name: "weather", arguments: '{"city":"Paris"}' };
  return { id: "fc_up", type: "function_call", status: "completed", ...called, ...more };
}

/** A response of the upstream: "Hello there" for 10 tokens in and 5 out by default. */
export function upstreamResponse(more: Body = {}): Body {
  return {
    id: "resp_up",
    object: "response",
    created_at: 1767225600,
    status: "completed",
    error: null,
    incomplete_details: null,
    instructions: null,
    max_output_tokens: null,
    model: "test-model",
    output: [message("Hello there")],
    parallel_tool_calls: true,
    previous_response_id: null,
    store: true,
    temperature: 1,
    text: { format: { type: "text" } },
    tool_choice: "auto",
    tools: [],
    top_p: 1,
    metadata: {},
    usage: tokens(10, 5),
    ...more,
  };
}

/** The events of an item, as OpenAI sends them. */
function itemEvents(item: Body, output_index: number): Body[] {
  const place = { item_id: item.id, output_index };
  const added = { type: "response.output_item.added", output_index };
  const done = { type: "response.output_item.done", output_index, item };
  if (item.type === "function_call") {
    const name = "response.function_call_arguments";
    return [
      { ...added, item: { ...item, status: "in_progress", arguments: "" } },
      ...pieces(item.arguments).map((delta) => ({ type: `${name}.delta`, ...place, delta })),
      { type: `${name}.done`, ...place, arguments: item.arguments, name: item.name },
      done,
    ];
  }
  if (item.type !== "message") return [{ ...added, item }, done];
  const [part] = item.content;
  const here = { ...place, content_index: 0 };
  const name = part.type === "refusal" ? "refusal" : "output_text";
  const field = part.type === "refusal" ? "refusal" : "text";
  return [
    { ...added, item: { ...item, status: "in_progress", content: [] } },
    { type: "response.content_part.added", ...here, part: { ...part, [field]: "" } },
    ...pieces(part[field]).map((delta) => ({ type: `response.${name}.delta`, ...here, delta })),
    { type: `response.${name}.done`, ...here, [field]: part[field] },
    { type: "response.content_part.done", ...here, part },
    done,
  ];
}

function pieces(text: string): string[] {
  return text.match(/.{1,5}/gs) ?? [];
}

/** The events of a response, numbered, as OpenAI sends them. */
export function upstreamEvents(response: Body = upstreamResponse()): Body[] {
  const begun = { ...response, status: "in_progress", output: [], usage: null };
  const end = { completed: "completed", incomplete: "incomplete", failed: "failed" };
  const last = Object.entries(end).find(([status]) => status === response.status)?.[1];
  return [
    { type: "response.created", response: begun },
    { type: "response.in_progress", response: begun },
    ...response.output.flatMap(itemEvents),
    { type: `response.${last}`, response },
  ].map((event, sequence_number) => ({ ...event, sequence_number }));
}

/** Events as the text of a stream. */
export function framesOf(events: Body[]): string {
  return events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("");
}

/** A stream of these events, one read each. */
export function eventStream(events: Body[] = upstreamEvents()): Response {
  return sseBytes(events.map((event) => new TextEncoder().encode(framesOf([event]))));
}

/** The events of a stream as its caller reads them. */
export async function readResponseEvents(response: Response): Promise<Body[]> {
  const text = await response.text();
  return text.split("\n\n").flatMap((frame) => {
    const data = /^data: (.*)$/m.exec(frame)?.[1];
    return data === undefined ? [] : [JSON.parse(data)];
  });
}

/** All text of the deltas. */
export function deltasOf(events: Body[]): string {
  return events.filter(({ type }) => type === "response.output_text.delta")
    .map(({ delta }) => delta).join("");
}

/** OpenAI's client, as Ada uses it. */
export function openAiClient(world: World): OpenAI {
  return new OpenAI({
    apiKey: world.apiKey,
    baseURL: "http://localhost/v1",
    maxRetries: 0,
    defaultHeaders: { "x-service-user": "ada" },
    fetch: (input: string | URL | Request, init?: RequestInit) =>
      Promise.resolve(world.app.fetch(new Request(input, init))),
  });
}

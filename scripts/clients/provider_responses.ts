import { isObject, type Json, type JsonObject } from "../../src/base/json.ts";
import {
  eventStream,
  newId,
  objectsOf,
  piecesOf,
  ProviderError,
  type Reply,
  replyTo,
  textOf,
} from "./model.ts";

const usage = {
  input_tokens: 20,
  input_tokens_details: { cached_tokens: 0 },
  output_tokens: 10,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 30,
};

/** What an id of an item begins with, by the item's type. */
const prefixes: Readonly<Record<string, string>> = {
  message: "msg_",
  function_call: "fc_",
  reasoning: "rs_",
};

/** What the provider keeps of responses with `store`: items and whole conversations, by id. */
export class KeptResponses {
  readonly #items = new Map<string, JsonObject>();
  readonly #conversations = new Map<string, JsonObject[]>();

  /** The input of a request with all that it refers to. Throws 400 for what is not kept. */
  resolve({ input, previous_response_id: previous }: JsonObject): JsonObject[] {
    const given = typeof input === "string"
      ? [{ type: "message", role: "user", content: input }]
      : objectsOf(input);
    return [...this.#before(previous), ...given.map((item, index) => this.#itemOf(item, index))];
  }

  keep(id: string, conversation: JsonObject[], output: JsonObject[]): void {
    for (const item of output) this.#items.set(String(item.id), item);
    this.#conversations.set(id, [...conversation, ...output]);
  }

  #before(previous: Json | undefined): JsonObject[] {
    if (typeof previous !== "string") return [];
    const kept = this.#conversations.get(previous);
    if (kept) return kept;
    const message = `Previous response with id '${previous}' not found.`;
    throw new ProviderError(400, message, "previous_response_id");
  }

  #itemOf(item: JsonObject, index: number): JsonObject {
    const { type = "message", id } = item;
    if (type === "item_reference") {
      const kept = this.#items.get(String(id));
      if (kept) return kept;
      const hint = "Items are not persisted when `store` is set to false.";
      throw new ProviderError(400, `Item with id '${id}' not found. ${hint}`, "input");
    }
    const prefix = prefixes[String(type)];
    if (typeof id === "string" && prefix !== undefined && !id.startsWith(prefix)) {
      const message = `Invalid 'input[${index}].id': '${id}'. Expected an ID that begins with ` +
        `'${prefix.slice(0, -1)}'.`;
      throw new ProviderError(400, message, `input[${index}].id`);
    }
    return item;
  }
}

/** Answers `POST /responses` as OpenAI does. */
export function answerResponses(body: JsonObject, kept: KeptResponses): Response {
  const input = kept.resolve(body);
  requireCalls(input);
  const last = input.at(-1);
  const isResult = String(last?.type).endsWith("_output");
  const reply = replyTo({
    prompts: input.filter(({ role }) => role === "user").map(({ content }) => textOf(content)),
    toolResult: isResult ? resultOf(last?.output) : null,
    tools: objectsOf(body.tools).flatMap(({ type, name }) =>
      type === "function" ? [String(name)] : []
    ),
  });
  const output = outputOf(body, reply);
  const response = responseOf(body, output);
  if (body.store !== false) kept.keep(String(response.id), input, output);
  return body.stream === true ? streamed(response, output) : Response.json(response);
}

/** Throws 400 as OpenAI does, unless each result belongs to a call that stands before it. */
function requireCalls(input: readonly JsonObject[]): void {
  const calls = new Set<Json>();
  for (const { type, call_id } of input) {
    if (call_id === undefined) continue;
    if (!String(type).endsWith("_output")) calls.add(call_id);
    else if (!calls.has(call_id)) {
      const message = `No tool call found for function call output with call_id ${call_id}.`;
      throw new ProviderError(400, message, "input");
    }
  }
}

function resultOf(output: Json | undefined): string {
  return isObject(output) ? JSON.stringify(output) : textOf(output);
}

function outputOf({ model, include }: JsonObject, reply: Reply): JsonObject[] {
  const encrypted = Array.isArray(include) && include.includes("reasoning.encrypted_content");
  const reasoning: JsonObject = {
    id: newId("rs_"),
    type: "reasoning",
    summary: [],
    ...(encrypted ? { encrypted_content: "gAAAAAB" } : {}),
  };
  const item: JsonObject = "text" in reply
    ? {
      id: newId("msg_"),
      type: "message",
      status: "completed",
      role: "assistant",
      content: [{ type: "output_text", text: reply.text, annotations: [], logprobs: [] }],
    }
    : {
      id: newId("fc_"),
      type: "function_call",
      status: "completed",
      call_id: newId("call_"),
      name: reply.call.name,
      arguments: JSON.stringify(reply.call.arguments),
    };
  return String(model).startsWith("gpt-5") ? [reasoning, item] : [item];
}

function responseOf(body: JsonObject, output: JsonObject[]): JsonObject {
  return {
    id: newId("resp_"),
    object: "response",
    created_at: Math.floor(Date.now() / 1000),
    status: "completed",
    background: false,
    error: null,
    incomplete_details: null,
    instructions: body.instructions ?? null,
    max_output_tokens: body.max_output_tokens ?? null,
    model: body.model ?? null,
    output,
    parallel_tool_calls: body.parallel_tool_calls ?? true,
    previous_response_id: body.previous_response_id ?? null,
    reasoning: { effort: null, summary: null },
    service_tier: "default",
    store: body.store ?? true,
    temperature: 1,
    text: body.text ?? { format: { type: "text" } },
    tool_choice: body.tool_choice ?? "auto",
    tools: body.tools ?? [],
    top_p: 1,
    truncation: "disabled",
    usage,
    metadata: body.metadata ?? {},
  };
}

function streamed(response: JsonObject, output: JsonObject[]): Response {
  const started = { ...response, status: "in_progress", output: [], usage: null };
  const events: JsonObject[] = [
    { type: "response.created", response: started },
    { type: "response.in_progress", response: started },
    ...output.flatMap((item, output_index) => eventsOf(item, output_index)),
    { type: "response.completed", response },
  ];
  return eventStream(events.map((data, sequence_number) => ({
    event: String(data.type),
    data: { ...data, sequence_number },
  })));
}

function eventsOf(item: JsonObject, output_index: number): JsonObject[] {
  const at = { item_id: item.id ?? null, output_index };
  const content_index = 0;
  const [part] = objectsOf(item.content);
  const whole = { ...item, status: "in_progress" };
  const done = { type: "response.output_item.done", output_index, item };
  if (part) {
    const text = String(part.text);
    const in_part = { ...at, content_index };
    return [
      { type: "response.output_item.added", output_index, item: { ...whole, content: [] } },
      { type: "response.content_part.added", ...in_part, part: { ...part, text: "" } },
      ...piecesOf(text).map((delta) => (
        { type: "response.output_text.delta", ...in_part, delta, logprobs: [] }
      )),
      { type: "response.output_text.done", ...in_part, text, logprobs: [] },
      { type: "response.content_part.done", ...in_part, part },
      done,
    ];
  }
  if (item.type !== "function_call") {
    return [{ type: "response.output_item.added", output_index, item }, done];
  }
  const { arguments: given = "", name = null } = item;
  return [
    { type: "response.output_item.added", output_index, item: { ...whole, arguments: "" } },
    { type: "response.function_call_arguments.delta", ...at, delta: given },
    { type: "response.function_call_arguments.done", ...at, arguments: given, name },
    done,
  ];
}

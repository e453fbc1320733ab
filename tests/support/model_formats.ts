import { chunk, completion, usage, usageChunk } from "./upstream.ts";

/** The model that every format calls. */
export const modelName = "test-model";

/** Tokens of one response. */
export interface Tokens {
  input: number;
  output: number;
}

/** The content of a response. */
export interface Said {
  /** The call's id. */
  id: string;
  text: string;
  /** Null where the upstream reports no usage. */
  tokens: Tokens | null;
}

/** An event of a stream, as JSON or as it is, and what it has of the response. */
interface SaidEvent {
  data: unknown;
  says?: "text" | "usage";
}

/** One of the service's endpoints, as its callers and the upstream speak it. */
export interface ModelFormat {
  path: string;
  /** Whether it can be streamed, and writes output. */
  hasOutput: boolean;
  body(wish: { user: string; stream: boolean; cap: number }): Record<string, unknown>;
  /** The output bound that the upstream got. */
  capOf(body: Record<string, unknown>): number;
  whole(said: Said): unknown;
  /** The events of a stream; without its end where it breaks off. */
  events(said: Said, pieces: number, breaksOff: boolean): SaidEvent[];
  /** Whether a stream has ended as it should. */
  hasEnded(text: string): boolean;
}

/** What a response has besides tokens, decided by them: no further chance is needed. */
export function extrasOf({ input, output }: Tokens) {
  return { searches: input % 3, tier: output % 2 === 0 ? "default" : "flex" };
}

const question = "How many words do you know?";
const messages = [{ role: "user", content: question }];

function chatUsage(tokens: Tokens) {
  const { searches, tier } = extrasOf(tokens);
  return usage(tokens.input, tokens.output, {
    server_tool_use: { web_search_requests: searches },
    service_tier: tier,
  });
}

const chat: ModelFormat = {
  path: "/chat/completions",
  hasOutput: true,
  body: ({ user, stream, cap }) => ({
    model: modelName,
    user,
    max_tokens: cap,
    messages,
    ...(stream ? { stream } : {}),
    ...(stream && cap % 2 === 0 ? { stream_options: { include_usage: true } } : {}),
  }),
  capOf: ({ max_tokens }) => Number(max_tokens),
  whole({ text: content, tokens }) {
    const choices = [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }];
    return { choices, usage: tokens && chatUsage(tokens) };
  },
  events({ text, tokens }, pieces, breaksOff) {
    const texts = Array.from({ length: pieces }, (): SaidEvent => ({
      data: chunk({ content: text }),
      says: "text",
    }));
    const start: SaidEvent[] = [{ data: chunk({ role: "assistant", content: "" }) }, ...texts];
    if (breaksOff) return start;
    const report: SaidEvent[] = tokens
      ? [{ data: usageChunk(chatUsage(tokens)), says: "usage" }]
      : [];
    return [...start, { data: chunk({}, "stop") }, ...report, { data: "[DONE]" }];
  },
  hasEnded: (text) => text.endsWith("data: [DONE]\n\n"),
};

function responsesUsage(tokens: Tokens) {
  return {
    input_tokens: tokens.input,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: tokens.output,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: tokens.input + tokens.output,
  };
}

function responseObject({ id, tokens }: Said, status: string, output: unknown[]) {
  const extras = tokens && extrasOf(tokens);
  return {
    id: `resp_${id}`,
    object: "response",
    created_at: 1_767_225_600,
    status,
    error: null,
    incomplete_details: null,
    model: modelName,
    output,
    service_tier: extras?.tier ?? "default",
    usage: tokens && responsesUsage(tokens),
    ...(extras ? { tool_usage: { web_search: { num_requests: extras.searches } } } : {}),
  };
}

function messageItem(id: string, text: string) {
  const content = [{ type: "output_text", text, annotations: [], logprobs: [] }];
  return { id: `msg_${id}`, type: "message", status: "completed", role: "assistant", content };
}

const responses: ModelFormat = {
  path: "/responses",
  hasOutput: true,
  body: ({ user, stream, cap }) => ({
    model: modelName,
    user,
    max_output_tokens: cap,
    input: question,
    ...(stream ? { stream } : {}),
  }),
  capOf: ({ max_output_tokens }) => Number(max_output_tokens),
  whole: (said) => responseObject(said, "completed", [messageItem(said.id, said.text)]),
  events(said, pieces, breaksOff) {
    let sequence_number = 0;
    const event = (type: string, rest: Record<string, unknown>): SaidEvent => ({
      data: { type, ...rest, sequence_number: sequence_number++ },
    });
    const begun = responseObject({ ...said, tokens: null }, "in_progress", []);
    const at = { output_index: 0, content_index: 0, item_id: `msg_${said.id}` };
    const empty = { type: "output_text", text: "", annotations: [] };
    const whole = messageItem(said.id, said.text.repeat(pieces));
    const start = [
      event("response.created", { response: begun }),
      event("response.in_progress", { response: begun }),
      event("response.output_item.added", {
        output_index: 0,
        item: { ...whole, status: "in_progress", content: [] },
      }),
      event("response.content_part.added", { ...at, part: empty }),
      ...Array.from({ length: pieces }, (): SaidEvent => ({
        ...event("response.output_text.delta", { ...at, delta: said.text, logprobs: [] }),
        says: "text",
      })),
    ];
    if (breaksOff) return start;
    const [part] = whole.content;
    return [
      ...start,
      event("response.output_text.done", { ...at, text: part?.text, logprobs: [] }),
      event("response.content_part.done", { ...at, part }),
      event("response.output_item.done", { output_index: 0, item: whole }),
      {
        ...event("response.completed", { response: responseObject(said, "completed", [whole]) }),
        ...(said.tokens ? { says: "usage" } : {}),
      },
    ];
  },
  hasEnded: (text) => /"type":\s*"response\.(completed|incomplete)"/.test(text),
};

function messagesUsage(tokens: Tokens) {
  const { searches, tier } = extrasOf(tokens);
  return {
    input_tokens: tokens.input,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 0,
    output_tokens: tokens.output,
    server_tool_use: { web_search_requests: searches },
    service_tier: tier,
  };
}

function messageObject({ id, tokens }: Said, content: unknown[], stop_reason: string | null) {
  return {
    id: `msg_${id}`,
    type: "message",
    role: "assistant",
    model: modelName,
    content,
    stop_reason,
    stop_sequence: null,
    ...(tokens ? { usage: messagesUsage(tokens) } : {}),
  };
}

const messagesFormat: ModelFormat = {
  path: "/messages",
  hasOutput: true,
  body: ({ user, stream, cap }) => ({
    model: modelName,
    metadata: { user_id: user },
    max_tokens: cap,
    messages,
    ...(stream ? { stream } : {}),
  }),
  capOf: ({ max_tokens }) => Number(max_tokens),
  whole: (said) => messageObject(said, [{ type: "text", text: said.text }], "end_turn"),
  events(said, pieces, breaksOff) {
    const event = (type: string, rest: Record<string, unknown> = {}): SaidEvent => ({
      data: { type, ...rest },
    });
    const message = messageObject({ ...said, tokens: null }, [], null);
    const start = [
      event("message_start", { message }),
      event("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
      ...Array.from({ length: pieces }, (): SaidEvent => ({
        ...event("content_block_delta", {
          index: 0,
          delta: { type: "text_delta", text: said.text },
        }),
        says: "text",
      })),
    ];
    if (breaksOff) return start;
    const { tokens } = said;
    return [
      ...start,
      event("content_block_stop", { index: 0 }),
      {
        ...event("message_delta", {
          delta: { stop_reason: "end_turn", stop_sequence: null },
          ...(tokens ? { usage: messagesUsage(tokens) } : {}),
        }),
        ...(tokens ? { says: "usage" } : {}),
      },
      event("message_stop"),
    ];
  },
  hasEnded: (text) => /"type":\s*"message_stop"/.test(text),
};

const embeddings: ModelFormat = {
  path: "/embeddings",
  hasOutput: false,
  body: ({ user }) => ({ model: modelName, user, input: question }),
  capOf: () => 0,
  whole({ tokens }) {
    const data = [{ object: "embedding", index: 0, embedding: [0.5, -0.25] }];
    return { object: "list", data, model: modelName, usage: tokens && chatUsage(tokens) };
  },
  events: () => [],
  hasEnded: () => false,
};

/** The formats of the simulation, and how often each is used. */
export const modelFormats: readonly [ModelFormat, number][] = [
  [chat, 55],
  [responses, 20],
  [messagesFormat, 15],
  [embeddings, 10],
];

/** A whole response of the upstream. */
export function wholeResponse(format: ModelFormat, said: Said): Response {
  const body = format.whole(said);
  return format === chat ? completion(Object(body)) : Response.json(body);
}

/** The format of an upstream's or a caller's URL. */
export function formatOf(url: string): ModelFormat {
  const found = modelFormats.find(([{ path }]) => url.endsWith(path));
  if (!found) throw new Error(`no format is served at ${url}`);
  return found[0];
}

/** Returns any format, or any of those that stream; `between` draws a number from a range. */
export function pickFormat(
  chance: { between(least: number, most: number): number },
  streams: boolean,
): ModelFormat {
  const usable = modelFormats.filter(([{ hasOutput }]) => hasOutput || !streams);
  const all = usable.reduce((sum, [, share]) => sum + share, 0);
  let left = chance.between(0, all);
  for (const [format, share] of usable) {
    left -= share;
    if (left < 0) return format;
  }
  return chat;
}

/** An event as it is sent. */
export function frameOf({ data }: SaidEvent): string {
  const text = typeof data === "string" ? data : JSON.stringify(data);
  const type = Reflect.get(Object(data), "type");
  return `${typeof type === "string" ? `event: ${type}\n` : ""}data: ${text}\n\n`;
}

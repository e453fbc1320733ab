import Anthropic from "@anthropic-ai/sdk";
import { sseBytes } from "./upstream.ts";
import { type Body, type CallOptions, createWorld, type World } from "./world.ts";

export const messagesPath = "/v1/messages";
export const claude = "claude-sonnet-5";

/** Input 3, output 15, cache writes 3.75 and 6, cache reads 0.3 for a million tokens. */
const claudePrice = {
  input: "3",
  output: "15",
  cachedInput: "0.3",
  cacheWrite: "3.75",
  cacheWriteHour: "6",
  maxOutputTokens: 64_000,
};

/** A world whose Ada has money and may call Claude. */
export async function messagesWorld(
  { balance = "10", price = {}, project = {} }: {
    balance?: string | null;
    price?: Body;
    project?: Body;
  } = {},
): Promise<World> {
  const pricing = { models: { [claude]: { ...claudePrice, ...price } } };
  const world = await createWorld({
    project: { pricing, maxOutputTokens: 64_000, ...project },
  });
  world.upstream.reply(({ body }) => body.stream ? messageStream(helloEvents()) : message());
  if (balance !== null) await world.deposit("ada", balance);
  return world;
}

/** Ada's request. */
export function messageBody(fields: Body = {}): Body {
  return {
    model: claude,
    max_tokens: 1000,
    messages: [{ role: "user", content: "Hi" }],
    ...fields,
  };
}

export const asAda = { "x-service-user": "ada" };

/** Sends a request, and reads the JSON of the response. */
export function send(world: World, fields: Body = {}, { headers, ...more }: CallOptions = {}) {
  const body = messageBody(fields);
  return world.json(messagesPath, { body, headers: { ...asAda, ...headers }, ...more });
}

/** Sends a request for a stream. */
export function sendStream(world: World, fields: Body = {}, more: CallOptions = {}) {
  const body = messageBody({ stream: true, ...fields });
  return world.call(messagesPath, { body, headers: asAda, ...more });
}

/** Usage as Anthropic reports it. */
export function claudeUsage(input: number, output: number, more: Body = {}): Body {
  return {
    input_tokens: input,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 0,
    output_tokens: output,
    service_tier: "standard",
    ...more,
  };
}

/** A whole message as an object: "Hello there" for 10 tokens in and 5 out by default. */
export function messageObject(fields: Body = {}): Body {
  return {
    id: "msg_up",
    type: "message",
    role: "assistant",
    model: claude,
    content: [{ type: "text", text: "Hello there" }],
    stop_reason: "end_turn",
    stop_sequence: null,
    usage: claudeUsage(10, 5),
    ...fields,
  };
}

export const message = (fields: Body = {}) => Response.json(messageObject(fields));

export const start = (fields: Body = {}) => ({
  type: "message_start",
  message: {
    ...messageObject({ content: [], stop_reason: null, usage: claudeUsage(10, 1) }),
    ...fields,
  },
});
export const opened = (index: number, block: Body = { type: "text", text: "" }) => ({
  type: "content_block_start",
  index,
  content_block: block,
});
export const said = (index: number, text: string) => ({
  type: "content_block_delta",
  index,
  delta: { type: "text_delta", text },
});
export const closed = (index: number) => ({ type: "content_block_stop", index });
export const ended = (reason: string | null, usage: Body | null = { output_tokens: 5 }) => ({
  type: "message_delta",
  delta: { stop_reason: reason, stop_sequence: null },
  ...(usage ? { usage } : {}),
});
export const stopped = { type: "message_stop" };

/** The usual stream: "Hello", " there", for 10 tokens in and 5 out. */
export function helloEvents(
  { reason = "end_turn", usage = { output_tokens: 5 } }: { reason?: string; usage?: Body } = {},
): Body[] {
  return [
    start(),
    opened(0),
    { type: "ping" },
    said(0, "Hello"),
    said(0, " there"),
    closed(0),
    ended(reason, usage),
    stopped,
  ];
}

/** Events as the bytes of a stream. */
export function eventBytes(events: Body[]): Uint8Array[] {
  return events.map((event) =>
    new TextEncoder().encode(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
  );
}

export const messageStream = (events: Body[]) => sseBytes(eventBytes(events));

/** A stream's events as its caller reads them. Fails where an event's two names differ. */
export async function readMessageEvents(response: Response): Promise<Body[]> {
  const text = await response.text();
  return text.split("\n\n").filter((frame) => frame.startsWith("event: ")).map((frame) => {
    const [first = "", second = ""] = frame.split("\n");
    const event: Body = JSON.parse(second.slice("data: ".length));
    if (`event: ${event.type}` !== first) throw new Error(`${first} is not ${second}`);
    return event;
  });
}

/** The text of the events of a stream. */
export function textIn(events: Body[]): string {
  return events.map(({ delta }) => delta?.text ?? "").join("");
}

/** Anthropic's own client, for Ada. */
export function anthropic(world: World, more: Body = {}): Anthropic {
  return new Anthropic({
    apiKey: world.apiKey,
    baseURL: "http://localhost",
    defaultHeaders: asAda,
    maxRetries: 0,
    fetch: async (input: string | URL | Request, init?: RequestInit) =>
      await world.app.fetch(new Request(input, init)),
    ...more,
  });
}

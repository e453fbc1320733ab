import { chunk, completion, sse, sseBytes } from "./upstream.ts";
import { eventBytes, messageObject } from "./messages.ts";
import type { Body } from "./world.ts";

/** The model of these requests. */
export const reportedModel = "test-model";

/** How an upstream answers "Hi there", with reports at the start, within and at the end. */
interface Answerer {
  whole(report: Body | undefined, more?: Body): Response;
  stream(reports: readonly Body[]): Response;
}

const text = "Hi there";
const words = (count: number) => "word ".repeat(count);

/** The first report comes at the start, the last one at the end, and others with the text. */
function placed<Event>(
  reports: readonly Body[],
  { first, between, last }: {
    first: (report: Body | null) => Event;
    between: (report: Body | null) => Event;
    last: (report: Body | null) => Event;
  },
): Event[] {
  const [start = null, ...others] = reports.length > 1 ? reports : [null, ...reports];
  const end = others.pop() ?? null;
  return [first(start), ...others.map(between), between(null), last(end)];
}

const used = (report: Body | null) => (report ? { usage: report } : {});

const chatUpstream: Answerer = {
  whole(report, more = {}) {
    const message = { role: "assistant", content: text };
    const choices = [{ index: 0, message, finish_reason: "stop" }];
    return completion({ choices, usage: report, ...more });
  },
  stream: (reports) =>
    sse(placed<unknown>(reports, {
      first: (report) => ({ ...chunk({ role: "assistant", content: "" }), ...used(report) }),
      between: (report) => ({ ...chunk(report ? {} : { content: text }), ...used(report) }),
      last: (report) => ({ ...chunk({}, "stop"), ...used(report) }),
    })),
};

const completionsUpstream: Answerer = {
  whole: (report, more = {}) =>
    Response.json({ ...textChunk(text, "stop"), ...(report ? { usage: report } : {}), ...more }),
  stream: (reports) =>
    sse(placed<unknown>(reports, {
      first: (report) => ({ ...textChunk(""), ...used(report) }),
      between: (report) => ({ ...textChunk(report ? "" : text), ...used(report) }),
      last: (report) => ({ ...textChunk("", "stop"), ...used(report) }),
    })),
};

function textChunk(text: string, finish_reason: string | null = null): Body {
  const choices = [{ index: 0, text, logprobs: null, finish_reason }];
  return { id: "cmpl_up", object: "text_completion", created: 1, model: reportedModel, choices };
}

const item = {
  id: "msg_up",
  type: "message",
  status: "completed",
  role: "assistant",
  content: [{ type: "output_text", text, annotations: [], logprobs: [] }],
};
function responseOf(status: string, output: unknown[], report: Body | null | undefined): Body {
  const head = { id: "resp_up", object: "response", created_at: 1, model: reportedModel };
  return { ...head, status, output, error: null, usage: report ?? null };
}

const responsesUpstream: Answerer = {
  whole: (report, more = {}) =>
    Response.json({ ...responseOf("completed", [item], report), ...more }),
  stream: (reports) =>
    sse(placed<unknown>(reports, {
      first: (report) => ({
        type: "response.created",
        response: responseOf("in_progress", [], report),
      }),
      between: (report) =>
        report
          ? { type: "response.in_progress", response: responseOf("in_progress", [], report) }
          : { type: "response.output_item.done", output_index: 0, item },
      last: (report) => ({
        type: "response.completed",
        response: responseOf("completed", [item], report),
      }),
    })),
};

const messagesUpstream: Answerer = {
  whole: (report, more = {}) =>
    Response.json(messageObject({
      content: [{ type: "text", text }],
      model: reportedModel,
      usage: report,
      ...more,
    })),
  stream: (reports) =>
    sseBytes(eventBytes(
      [
        ...placed<Body>(reports, {
          first: (report) => ({
            type: "message_start",
            message: messageObject({
              content: [],
              model: reportedModel,
              stop_reason: null,
              usage: report ?? undefined,
            }),
          }),
          between: (report) =>
            report ? { type: "message_delta", delta: {}, usage: report } : {
              type: "content_block_start",
              index: 0,
              content_block: { type: "text", text },
            },
          last: (report) => ({
            type: "message_delta",
            delta: { stop_reason: "end_turn", stop_sequence: null },
            ...used(report),
          }),
        }),
        { type: "message_stop" },
      ],
    )),
};

/** An endpoint, and what answers it. */
export interface ReportedRoute {
  path: string;
  upstream: Answerer;
  /** Formats that the upstream speaks, where the endpoint's own is not among them. */
  formats?: string[];
  /** Ada's request with a prompt of so many words. */
  body(promptWords: number, more?: Body): Body;
}

const chatBody = (count: number, more: Body = {}): Body => ({
  model: reportedModel,
  user: "ada",
  messages: [{ role: "user", content: words(count) }],
  ...more,
});
const messageBody = (count: number, more: Body = {}): Body => ({
  model: reportedModel,
  metadata: { user_id: "ada" },
  max_tokens: 4_000,
  messages: [{ role: "user", content: words(count) }],
  ...more,
});
const responseBody = (count: number, more: Body = {}): Body => ({
  model: reportedModel,
  user: "ada",
  input: words(count),
  ...more,
});

/** Every text endpoint, directly and over its bridge. */
export const reportedRoutes: Readonly<Record<string, ReportedRoute>> = {
  chat: { path: "/v1/chat/completions", upstream: chatUpstream, body: chatBody },
  completions: {
    path: "/v1/completions",
    upstream: completionsUpstream,
    body: (count, more = {}) => ({
      model: reportedModel,
      user: "ada",
      prompt: words(count),
      ...more,
    }),
  },
  responses: { path: "/v1/responses", upstream: responsesUpstream, body: responseBody },
  messages: { path: "/v1/messages", upstream: messagesUpstream, body: messageBody },
  "chat over messages": {
    path: "/v1/chat/completions",
    upstream: messagesUpstream,
    formats: ["messages"],
    body: chatBody,
  },
  "messages over chat": {
    path: "/v1/messages",
    upstream: chatUpstream,
    formats: ["chat"],
    body: messageBody,
  },
  "responses over chat": {
    path: "/v1/responses",
    upstream: chatUpstream,
    formats: ["chat"],
    body: responseBody,
  },
};

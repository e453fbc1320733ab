import type { Deps } from "../deps.ts";
import { isObject, type Json } from "../base/json.ts";

/** The simulated model of development, which repeats the last message. */
export const sandboxModel = "sandbox/echo";

const pieceDelayMs = 15;
const encoder = new TextEncoder();

interface Script {
  id: string;
  created: number;
  pieces: string[];
  finish: "stop" | "length";
  choices: number;
  usage: { prompt_tokens: number; completion_tokens: number; total_tokens: number };
}

/**
 * Responds to chats as OpenAI does: JSON or a stream, bounded by max_tokens, with usage. Other
 * endpoints are 404.
 */
export async function respondInSandbox(request: Request, deps: Deps): Promise<Response> {
  const { pathname } = new URL(request.url);
  if (!pathname.endsWith("/completions")) {
    const message = `'${sandboxModel}' serves chats only, not ${pathname}.`;
    return Response.json({ error: { message, code: "unknown_url" } }, { status: 404 });
  }
  const body: Record<string, Json> = await request.json();
  const script = write(body, deps);
  if (body.stream === true) return stream(script, body, deps);
  const message = { role: "assistant", content: script.pieces.join(""), refusal: null };
  return Response.json({
    id: script.id,
    object: "chat.completion",
    created: script.created,
    model: sandboxModel,
    choices: Array.from({ length: script.choices }, (_, index) => ({
      index,
      message,
      logprobs: null,
      finish_reason: script.finish,
    })),
    usage: script.usage,
  });
}

/** Decides the response. Four characters count as a token, which is about true of English texts. */
function write(body: Record<string, Json>, deps: Deps): Script {
  const messages = Array.isArray(body.messages) ? body.messages : [];
  const last = messages.findLast((message) => isObject(message) && message.role === "user");
  const lastText = textOf(isObject(last) ? last.content : null) || "nothing";
  const all = tokensOf(`You said: ${lastText}`);
  const max = Number(body.max_tokens ?? body.max_completion_tokens ?? all.length);
  const pieces = all.slice(0, max);
  const choices = Number(body.n ?? 1);
  const prompt = messages.reduce<number>((sum, message) => sum + promptTokens(message), 3);
  const completion = pieces.length * choices;
  return {
    id: deps.id("chatcmpl").replace("_", "-"),
    created: Math.floor(deps.clock.now() / 1000),
    pieces,
    finish: pieces.length < all.length ? "length" : "stop",
    choices,
    usage: {
      prompt_tokens: prompt,
      completion_tokens: completion,
      total_tokens: prompt + completion,
    },
  };
}

function promptTokens(message: Json): number {
  return 4 + tokensOf(isObject(message) ? textOf(message.content) : "").length;
}

function tokensOf(text: string): string[] {
  return text.match(/.{1,4}/gsu) ?? [];
}

function textOf(content: Json | undefined): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.map((part) => (isObject(part) && typeof part.text === "string" ? part.text : ""))
    .join(" ");
}

function stream(script: Script, body: Record<string, Json>, { clock }: Deps): Response {
  const wantsUsage = isObject(body.stream_options) && body.stream_options.include_usage === true;
  const { id, created } = script;
  const head = { id, object: "chat.completion.chunk", created, model: sandboxModel };
  const extra = wantsUsage ? { usage: null } : {};
  const frame = (index: number, delta: Json, finish: string | null) =>
    `data: ${
      JSON.stringify({
        ...head,
        choices: [{ index, delta, logprobs: null, finish_reason: finish }],
        ...extra,
      })
    }\n\n`;
  async function* frames() {
    for (let index = 0; index < script.choices; index++) {
      yield frame(index, { role: "assistant", content: "" }, null);
      for (const piece of script.pieces) {
        await clock.sleep(pieceDelayMs);
        yield frame(index, { content: piece }, null);
      }
      yield frame(index, {}, script.finish);
    }
    if (wantsUsage) {
      yield `data: ${JSON.stringify({ ...head, choices: [], usage: script.usage })}\n\n`;
    }
    yield "data: [DONE]\n\n";
  }
  const source = frames();
  const bytes = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await source.next();
      if (done) controller.close();
      else controller.enqueue(encoder.encode(value));
    },
    cancel: () => void source.return(),
  }, { highWaterMark: 0 });
  return new Response(bytes, { headers: { "content-type": "text/event-stream" } });
}

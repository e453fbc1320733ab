import assert from "node:assert/strict";
import { claudeUsage, eventBytes, messageObject } from "../support/messages.ts";
import { eventStream, tokens, upstreamEvents, upstreamResponse } from "../support/responses.ts";
import { chunk, completion, sse, sseBytes, usage, usageChunk } from "../support/upstream.ts";
import { reportedModel, reportedRoutes } from "../support/usage_reports.ts";
import { createWorld } from "../support/world.ts";

/** An answer, whole and streamed. */
interface Answer {
  whole(): Response;
  stream(): Response;
}

/** A choice of a chat, whole and streamed. */
function chatAnswer(
  message: Record<string, unknown>,
  reason: string | null,
  more: Record<string, unknown> = {},
): Answer {
  const said = { role: "assistant", ...message };
  return {
    whole: () =>
      completion({
        choices: [{ index: 0, message: said, finish_reason: reason, ...more }],
        usage: usage(10, 5),
      }),
    stream: () => {
      const last = chunk({}, reason ?? undefined) as { choices: Record<string, unknown>[] };
      last.choices[0] = { ...last.choices[0], ...more };
      return sse([chunk(said), last, usageChunk(usage(10, 5))]);
    },
  };
}

function textAnswer(text: string, finish_reason: string | null): Answer {
  const choices = [{ index: 0, text, logprobs: null, finish_reason }];
  const body = { id: "c", object: "text_completion", model: reportedModel, choices };
  const whole = { ...body, usage: usage(10, 5) };
  return { whole: () => Response.json(whole), stream: () => sse([body, usageChunk(usage(10, 5))]) };
}

function messageAnswer(content: Record<string, unknown>[], reason: string): Answer {
  const whole = messageObject({
    content,
    stop_reason: reason,
    model: reportedModel,
    usage: claudeUsage(10, 5),
  });
  return {
    whole: () => Response.json(whole),
    stream: () =>
      sseBytes(eventBytes([
        { type: "message_start", message: { ...whole, content: [], stop_reason: null } },
        ...content.flatMap((content_block, index) => [
          { type: "content_block_start", index, content_block },
          { type: "content_block_stop", index },
        ]),
        { type: "message_delta", delta: { stop_reason: reason }, usage: { output_tokens: 5 } },
        { type: "message_stop" },
      ])),
  };
}

function responseAnswer(fields: Record<string, unknown>): Answer {
  const response = upstreamResponse({ model: reportedModel, usage: tokens(10, 5), ...fields });
  return {
    whole: () => Response.json(response),
    stream: () => eventStream(upstreamEvents(response)),
  };
}

const item = (part: Record<string, unknown>, status = "completed") => ({
  output: [{ id: "msg_1", type: "message", role: "assistant", status, content: [part] }],
});
const outputText = { type: "output_text", text: "Hello", annotations: [] };
const thinking = { type: "thinking", thinking: "Hm", signature: "s" };
const text = (text: string) => ({ type: "text", text });

const chatBlocked: Record<string, Answer> = {
  "content_filter": chatAnswer({ content: "Hel" }, "content_filter"),
  "content_filter without content": chatAnswer({ content: "" }, "content_filter"),
  "Google's content filter": chatAnswer({ content: "Hel" }, "content_filter: SAFETY"),
  "a refusal": chatAnswer({ content: null, refusal: "No." }, "stop"),
  "a refusal by the provider's word": chatAnswer({ content: "No." }, "stop", {
    native_finish_reason: "refusal",
  }),
  "nothing": chatAnswer({ content: "" }, "stop"),
  "null": chatAnswer({ content: null }, "stop"),
  "reasoning alone": chatAnswer({ content: "", reasoning_content: "Hm" }, "stop"),
  "a cut": chatAnswer({ content: "Hel" }, "length"),
  "an error": chatAnswer({ content: "Hel" }, "error"),
  "no reason": chatAnswer({ content: "Hel" }, null),
};

const { "an error": _error, "no reason": _none, ...blockedOverBridges } = chatBlocked;

/** By route: what is never kept, and what is. */
const answers: Record<string, { never: Record<string, Answer>; kept: Answer }> = {
  chat: { never: chatBlocked, kept: chatAnswer({ content: "Hello" }, "stop") },
  "messages over chat": {
    never: blockedOverBridges,
    kept: chatAnswer({ content: "Hello" }, "stop"),
  },
  "responses over chat": {
    never: blockedOverBridges,
    kept: chatAnswer({ content: "Hello" }, "stop"),
  },
  completions: {
    never: {
      "content_filter": textAnswer("Hel", "content_filter"),
      "a cut": textAnswer("Hel", "length"),
      "nothing": textAnswer("", "stop"),
    },
    kept: textAnswer("Hello", "stop"),
  },
  messages: {
    never: {
      "a refusal": messageAnswer([text("Hel")], "refusal"),
      "a refusal without content": messageAnswer([], "refusal"),
      "a cut": messageAnswer([text("Hel")], "max_tokens"),
      "a full context": messageAnswer([text("Hel")], "model_context_window_exceeded"),
      "a pause": messageAnswer([text("Hel")], "pause_turn"),
      "nothing": messageAnswer([], "end_turn"),
      "an empty text": messageAnswer([text("")], "end_turn"),
      "thinking alone": messageAnswer([thinking], "end_turn"),
    },
    kept: messageAnswer([text("Hello")], "end_turn"),
  },
  "chat over messages": {
    never: {
      "a refusal": messageAnswer([text("Hel")], "refusal"),
      "a refusal without content": messageAnswer([], "refusal"),
      "a cut": messageAnswer([text("Hel")], "max_tokens"),
      "nothing": messageAnswer([], "end_turn"),
    },
    kept: messageAnswer([text("Hello")], "end_turn"),
  },
  responses: {
    never: {
      "content_filter": responseAnswer({
        ...item(outputText, "incomplete"),
        status: "incomplete",
        incomplete_details: { reason: "content_filter" },
      }),
      "a cut": responseAnswer({
        ...item(outputText, "incomplete"),
        status: "incomplete",
        incomplete_details: { reason: "max_output_tokens" },
      }),
      "a refusal": responseAnswer(item({ type: "refusal", refusal: "No." })),
      "nothing": responseAnswer({ output: [] }),
      "an empty text": responseAnswer(item({ ...outputText, text: "" })),
      "an item that is not whole": responseAnswer(item(outputText, "incomplete")),
      "reasoning alone": responseAnswer({
        output: [{ id: "rs_1", type: "reasoning", summary: [], status: "completed" }],
      }),
    },
    kept: responseAnswer(item(outputText)),
  },
};

for (const [route, { never, kept }] of Object.entries(answers)) {
  const { path, formats, body } = reportedRoutes[route] ?? assert.fail();
  const upstream = formats && { url: "https://own.test/v1", apiKey: "sk-up", formats };
  for (const [what, answer] of Object.entries(never)) {
    for (const stream of [false, true]) {
      Deno.test(`cache: ${what} is never kept: ${route}${stream ? ", streamed" : ""}`, async () => {
        const models = { [reportedModel]: { input: "1", output: "2", maxOutputTokens: 1_000 } };
        using world = await createWorld({
          project: {
            responseCache: { enabled: true, maxAgeSeconds: 3600, costFactor: "0.1" },
            pricing: { models },
            ...(upstream ? { upstream } : {}),
          },
        });
        await world.deposit("ada", "1");
        const ask = async () => {
          const headers = { "x-service-user": "ada" };
          const options = { body: body(5, stream ? { stream } : {}), headers };
          const response = await world.call(path, options);
          await response.text();
          return response.headers.get("x-service-cache");
        };
        world.upstream.once(() => stream ? answer.stream() : answer.whole());
        world.upstream.once(() => stream ? kept.stream() : kept.whole());
        const seen = [await ask(), await ask(), await ask()];
        assert.ok(!seen.slice(0, 2).includes("hit"), `${seen}`);
        assert.equal(seen[2], "hit");
        assert.equal(world.upstream.calls.length, 2);
      });
    }
  }
}

import type { JsonObject } from "../../base/json.ts";
import type { ModelRequest } from "../../inference/model_request.ts";
import type { PaywallMessage, ResponseHead } from "../../inference/upstream_response.ts";
import { ownIds } from "./own_ids.ts";
import { ownMembers } from "./own_members.ts";
import { normalizeObject } from "./response_object.ts";
import { responseEvents } from "./stream_events.ts";
import { FrameWriter } from "./stream_frames.ts";
import { noResponsesUsage } from "./usage.ts";

/**
 * The paywall as the assistant's message: a normal response that used nothing, as a whole stream
 * where the caller asked for one. `paywall` is for callers that branch on it. Where JSON is
 * required, the text is a refusal: clients show that instead of an error of their parser.
 */
export function writeResponsesPaywall(
  { message, paywall }: PaywallMessage,
  request: ModelRequest,
  head: ResponseHead,
): string {
  const ids = ownIds(head, request);
  const part: JsonObject = request.requiresJson
    // A line break ends the link, for clients that join texts.
    ? { type: "refusal", refusal: `${message}\n` }
    : { type: "output_text", text: message, annotations: [], logprobs: [] };
  const output: JsonObject[] = [{
    id: ids.message,
    type: "message",
    role: "assistant",
    status: "completed",
    content: [part],
  }];
  const response = {
    ...normalizeObject(
      { ...ownMembers(request), completed_at: head.created, id: ids.response, paywall },
      { request, head, output },
    ),
    usage: noResponsesUsage,
  };
  if (!request.stream) return JSON.stringify(response);
  const writer = new FrameWriter();
  let frames = "";
  for (const event of responseEvents(response)) frames += writer.add(event);
  return frames;
}

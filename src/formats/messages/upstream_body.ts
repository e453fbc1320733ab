import { isObject, type Json, type JsonObject } from "../../base/json.ts";
import type { ModelRequest } from "../../inference/model_request.ts";
import type { Dialect } from "../../upstreams/dialect.ts";
import { ownThinking } from "../bridges/messages_to_chat/written.ts";
import { withoutEngineIds } from "../openai/fields.ts";

/** The least budget of thinking that providers accept. */
const thinkingTokensMin = 1_024;
/** Output that a response has to have room for after its thinking. */
const answerTokensMin = 1_024;

/**
 * The caller's body as JSON, with our output bound. Where that is lower than the caller's, the
 * budget of thinking is lowered with it, and thinking is switched off where the least budget does
 * not fit: providers refuse a budget that leaves no room for a response.
 */
export function writeMessagesBody(
  { body, maxTokens }: ModelRequest,
  cap: number,
  dialect: Pick<Dialect, "maxTokens" | "contextLeft">,
): string {
  const most = Math.min(cap, dialect.maxTokens, dialect.contextLeft);
  const sent: Partial<JsonObject> = { ...body, max_tokens: most };
  if (Array.isArray(body.messages)) sent.messages = body.messages.map(withoutOwnThinking);
  const { thinking } = body;
  if (isObject(thinking) && maxTokens !== null && most < maxTokens) {
    sent.thinking = fittedThinking(thinking, most);
  }
  return JSON.stringify(withoutEngineIds(sent));
}

/**
 * The turn without thinking that a chat server wrote for an earlier one: its signature is ours, and
 * Anthropic refuses it. A turn of nothing else stays as it is.
 */
function withoutOwnThinking(turn: Json): Json {
  if (!isObject(turn) || turn.role !== "assistant" || !Array.isArray(turn.content)) return turn;
  const { content } = turn;
  const isOwn = (block: Json) => isObject(block) && ownThinking(block) !== null;
  if (!content.some(isOwn)) return turn;
  const others = content.filter((block) => !isOwn(block));
  return others.length > 0 ? { ...turn, content: others } : turn;
}

function fittedThinking(thinking: JsonObject, maxTokens: number): JsonObject {
  const { budget_tokens: budget } = thinking;
  if (thinking.type !== "enabled" || typeof budget !== "number" || budget < maxTokens) {
    return thinking;
  }
  const fitted = Math.max(thinkingTokensMin, maxTokens - answerTokensMin);
  return fitted < maxTokens ? { ...thinking, budget_tokens: fitted } : { type: "disabled" };
}

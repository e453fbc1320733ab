import type { ModelRequest } from "../model_request.ts";

/** The output, in tokens, that a response has room for after its thinking. */
const answerTokensMin = 1_024;

/**
 * The smallest output bound that may be sent, for the thinking that a caller asks for: the budget
 * and an answer, but never more than the caller's own bound. So an upstream that compares the two
 * refuses only what the caller sent. Zero where no thinking is bounded.
 */
export function thinkingRoom(
  { thinkingBudget, maxTokens }: Pick<ModelRequest, "thinkingBudget" | "maxTokens">,
): number {
  if (thinkingBudget === null) return 0;
  return Math.min(thinkingBudget + answerTokensMin, maxTokens ?? Infinity);
}

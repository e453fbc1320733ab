import type { UpstreamErrorBody } from "./error_body.ts";

const statuses = [401, 402, 403];

/** Names of errors about an account or a key, in codes, types and reasons. */
const names = new RegExp(
  "insufficient_(quota|balance|credits?|funds)|(credit_)?balance_(exhausted|too_low)|credit_balance|" +
    "billing|payment_required|invalid_api_key|api_key_(invalid|expired|missing)|authentication|" +
    "exceeded_current_quota|quota_exceeded_error|arrearage|overdue|invalid_organization|" +
    "(account|organization|subscription|key)_?(deactivated|disabled|suspended|restricted|inactive)|" +
    "model_terms_required|permission_denied|permission_error",
  "i",
);

const quoted = /'[^']*'|"[^"]*"|`[^`]*`|“[^”]*”/g;

/**
 * What providers say of an account or a key, under any status: Anthropic, OpenAI, Google,
 * OpenRouter, Mistral, DeepSeek, xAI, Groq, Moonshot, Alibaba and others.
 */
const sayings: readonly RegExp[] = [
  // Money.
  /credit balance is too low|plans? (?:&|and) billing|billing details|enable billing|billing hard limit/,
  /insufficient (?:account )?(?:balance|credits?|funds|quota)|(?:balance|credits?) (?:is|are|has been|have been) (?:too low|exhausted|depleted|insufficient|used up)/,
  /(?:requires|need|purchase|buy|add) (?:more|\d+) credits|out of credits|(?:have|has) (?:no|any) credits|all available credits|please recharge|no resource package/,
  // Limits of the account, and not those of a minute.
  /\b(?:your|the|its) (?:[\w-]+ ){0,4}(?:usage|spend(?:ing)?|budget|credit|monthly) (?:limits?|caps?)\b/,
  /exceeded your current quota|monthly quota|(?:key|credit) limit exceeded|exceeds? (?:the |your )?project(?:'s)? budget/,
  // Keys.
  /api[ _-]?key (?:is |was |has |has been )?(?:not |in)?(?:valid|expired|missing|reported|disabled|revoked|incorrect|required|leaked)/,
  /(?:invalid|incorrect|missing|wrong|expired|no|bad|valid) api[ _-]?key|provide an api[ _-]?key|no auth credentials|authentication fails|\b(?:invalid|missing) (?:authentication|authorization)\b|^unauthorized\b/,
  // The account itself.
  /\b(?:organi[sz]ation|account|workspace|team|subscription|project)\b (?:[\w.-]+ )?(?:is|was|has been|associated [^.]* has been) (?:temporarily |currently )?(?:not active|disabled|suspended|deactivated|restricted|inactive|blocked|overdue|closed)/,
  /account is in good standing|organi[sz]ation must be verified|requires terms acceptance|no such organi[sz]ation|member of an organi[sz]ation/,
  /user location is not supported|not available in your (?:country|region)/,
  // OpenRouter's settings of the account.
  /your data policy|guardrail restrictions and data policy|ignored providers|allowed providers are available/,
];

/** A quota that is free again soon, which Google words like one of the account. */
const passes = /please retry in \d|per[ _-]?minute|perminute/i;

/**
 * Whether an error concerns the operator's account or key, whatever its status: then it is nothing
 * that the caller could mend. What an error quotes, and what it says of a field of the request, may
 * be the caller's own words and does not count.
 */
export function isAccountError(error: UpstreamErrorBody): boolean {
  const { status, type, code, reason, message, param, behind } = error;
  if (statuses.includes(status) || statuses.includes(Number(code))) return true;
  if (status === 429 && passes.test(message)) return false;
  if (names.test(`${type} ${code} ${reason}`)) return true;
  if (behind && isAccountError(behind)) return true;
  const said = message.replace(quoted, "").toLowerCase();
  if (param !== null && !/organi[sz]ation must be verified/.test(said)) return false;
  return sayings.some((saying) => saying.test(said));
}

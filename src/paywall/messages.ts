import { parseAccept } from "@hono/hono/utils/accept";
import { formatForPeople, fromDecimal } from "../base/money.ts";
import type { MessageReason, Project } from "../projects/schema.ts";

/** The values of a message's placeholders, and its reader's languages. */
interface MessageContext {
  /** The link to show. */
  url: string;
  /** The user's balance, as a decimal string. */
  balance: string;
  /** The caller's `Accept-Language`, or null. */
  languages: string | null;
}

/**
 * The messages of a project that has no texts of its own. The ones that follow a response start a
 * new paragraph.
 */
export const standardMessages: Record<MessageReason, string> = {
  insufficient_funds: "You have run out of credit. Top up here to continue: {{url}}",
  authorization_required: "{{name}} needs your permission to charge your wallet. " +
    "Give it here to continue: {{url}}",
  limit_reached: "You have reached the daily limit that you set for {{name}}. " +
    "Change it here to continue: {{url}}",
  spend_limit: "You have reached your spending limit for {{name}}. " +
    "Your balance and what it was used for: {{url}}",
  rate_limit:
    "You are sending messages faster than {{name}} allows. Wait a minute, then try again. " +
    "Your balance: {{url}}",
  busy: "Your earlier answers are still running and hold the rest of your credit. " +
    "Try again when they have finished, or top up here: {{url}}",
  cut: "Your credit paid for this part of the answer. Top up here to get more: {{url}}",
  low_balance: "Your credit is running low ({{balance}} left). Top up here: {{url}}",
};

/** Returns the project's own text in the language that fits best, else the English one. */
export function messageFor(
  { name, currency, messages }: Project,
  reason: MessageReason,
  { url, balance, languages }: MessageContext,
): string {
  const template = preferred(Object.keys(messages), languages)
    .map((language) => messages[language]?.[reason])
    .find((text) => text !== undefined) ?? standardMessages[reason];
  const values: Record<string, string> = {
    url,
    name,
    balance: formatForPeople(fromDecimal(balance), currency),
  };
  const text = template.replace(/\{\{(url|name|balance)\}\}/g, (_, key) => values[key] ?? "");
  return reason === "cut" || reason === "low_balance" ? `\n\n${text}` : text;
}

/**
 * Returns the project's languages that the caller accepts, best first, then English (RFC 9110,
 * 12.5.4).
 */
function preferred(available: readonly string[], languages: string | null): string[] {
  const wanted = parseAccept(languages ?? "").filter(({ q }) => q > 0)
    .map(({ type }) => type.toLowerCase());
  const suiting = wanted.flatMap((tag) =>
    available.filter((language) => tag === language || tag.startsWith(`${language}-`))
  );
  return [...suiting, "en"];
}

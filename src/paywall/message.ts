/** Why an answer is a paywall message. */
export type PaywallReason = "authorization_required" | "insufficient_funds" | "limit_reached";

/** What stands in the way, as people read it: the sentence that goes into the chat. */
export function topUpMessage(url: string): string {
  return `You have run out of credit. Top up here to continue: ${url}`;
}

/** When only answers that are still running hold the money. */
export function busyMessage(url: string): string {
  return "Your earlier answers are still running, and hold the rest of your credit. " +
    `Try again when they have ended, or top up here: ${url}`;
}

/** Appended to an answer that ended because the balance paid for no more of it. */
export function cutMessage(url: string): string {
  return `\n\nYour credit paid for this part of the answer. Top up here to get more: ${url}`;
}

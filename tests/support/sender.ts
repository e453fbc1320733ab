import {
  createWebhookSender,
  type WebhookSenderOptions,
} from "../../src/platform/webhook_sender.ts";

/** The real time. */
export const senderClock = {
  elapsed: () => performance.now(),
  after(ms: number, work: () => void) {
    const timer = setTimeout(work, ms);
    return () => clearTimeout(timer);
  },
};

/** Creates a sender on real time. */
export function startSender(options: Omit<WebhookSenderOptions, "clock"> = {}) {
  return createWebhookSender({ clock: senderClock, ...options });
}

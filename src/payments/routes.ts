import type { PaymentDeps } from "./merchant.ts";
import { stripeWebhook } from "./stripe_webhook.ts";

/** The endpoint that Stripe calls, for a project's own account and for the instance's. */
export function stripeRoutes(services: PaymentDeps) {
  return { webhook: stripeWebhook(services) };
}

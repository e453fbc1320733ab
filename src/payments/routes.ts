import { type ReconcileDeps, reconcileStripe } from "./reconcile.ts";
import { stripeWebhook } from "./stripe_webhook.ts";

/** The endpoints for Stripe's accounts: a project's own, and the instance's. */
export function stripeRoutes(services: ReconcileDeps) {
  return { webhook: stripeWebhook(services), reconcile: reconcileStripe(services) };
}

import type { Handler } from "../base/handler.ts";
import { parseWith, readJsonBody } from "../base/request.ts";
import { jsonResponse } from "../base/response.ts";
import { checkId } from "../projects/admin_guard.ts";
import { byOperator } from "../projects/audit.ts";
import { connectStripeSchema } from "./api_doc.ts";
import type { ConnectStripe } from "./connect_stripe.ts";
import { type ReconcileDeps, reconcileStripe } from "./reconcile.ts";
import { stripeWebhook } from "./stripe_webhook.ts";

interface StripeRouteDeps extends ReconcileDeps {
  connectStripe: ConnectStripe;
}

const bodyBytesMax = 4 * 1024;

/** The endpoints for Stripe's accounts: a project's own, and the instance's. */
export function stripeRoutes(
  services: StripeRouteDeps,
): { webhook: Handler; reconcile: Handler; connect: Handler } {
  const { adminGuard, projectCache, connectStripe } = services;
  return {
    webhook: stripeWebhook(services),
    reconcile: reconcileStripe(services),
    connect: adminGuard(async ({ request, requestId, param, inTime, address }) => {
      const { project } = await projectCache.refresh(checkId(param("projectId"), "project"));
      const { value } = await inTime(readJsonBody(request, bodyBytesMax));
      const { secretKey } = parseWith(connectStripeSchema, value);
      const made = await connectStripe(project, secretKey, byOperator("api", address()));
      return jsonResponse(200, { connected: true, ...made }, requestId, {
        "cache-control": "no-store",
      });
    }),
  };
}

import { ApiError, badRequest, errorFields } from "../base/errors.ts";
import type { Deps } from "../deps.ts";
import { Secret } from "../base/secret.ts";
import type { ProjectAdmin } from "../projects/admin.ts";
import type { Project } from "../projects/schema.ts";
import type { AuditActor } from "../projects/audit.ts";
import { stripeEventTypes } from "./stripe_events.ts";
import { openStripeClient } from "./stripe.ts";

/** The address of this server at which Stripe reports a project's payments. */
export function stripeWebhookUrl(
  { baseUrl }: Pick<Deps["config"], "baseUrl">,
  projectId: string,
): string {
  return `${baseUrl}/v1/stripe/${projectId}`;
}

/**
 * Connects a project to a Stripe account by its secret key alone: creates the webhook there, and
 * stores its signing secret with the key. A webhook that was there for the same address is
 * removed. Throws 400 where Stripe refuses, 502 where it does not respond, 404.
 */
export type ConnectStripe = (
  project: Pick<Project, "id" | "mode">,
  secretKey: string,
  by: AuditActor,
) => Promise<{ webhookUrl: string }>;

/** Creates the connection of projects to Stripe. */
export function createConnectStripe(
  deps: Pick<Deps, "fetch" | "clock" | "config" | "log">,
  admin: Pick<ProjectAdmin, "update">,
): ConnectStripe {
  return async ({ id: projectId, mode }, secretKey, by) => {
    if (mode === "shared") {
      const message = "In the shared mode, payments are made to this server's own Stripe account.";
      throw badRequest(null, message, "mode_conflict");
    }
    if (!/^(sk|rk)_\S{8,300}$/.test(secretKey)) {
      throw badRequest(
        "secretKey",
        "'secretKey' must be a Stripe key that begins with sk_ or rk_.",
      );
    }
    const url = stripeWebhookUrl(deps.config, projectId);
    const { webhookEndpoints } = await openStripeClient(deps, new Secret(secretKey));
    const { data } = await webhookEndpoints.list({ limit: 100 }).catch(refused);
    const made = await webhookEndpoints.create({
      url,
      enabled_events: [...stripeEventTypes],
      description: "Farebox",
      metadata: { farebox_project: projectId },
    }).catch(refused);
    if (!made.secret) throw new Error("Stripe created a webhook without a secret");
    const stripe = { secretKey, webhookSecret: made.secret };
    const remove = (id: string) =>
      webhookEndpoints.del(id).then(
        () => {},
        (error: unknown) =>
          deps.log("warn", "stripe_webhook_not_removed", {
            project: projectId,
            ...errorFields(error),
          }),
      );
    try {
      await admin.update(projectId, () => ({ stripe }), by);
    } catch (error) {
      // Nobody would accept what it reports.
      await remove(made.id);
      throw error;
    }
    for (const former of data) if (former.url === url) await remove(former.id);
    return { webhookUrl: url };
  };
}

function refused(cause: unknown): never {
  const { statusCode, message = String(cause) } = Object(cause);
  if (statusCode >= 400 && statusCode < 500 && statusCode !== 429) {
    throw badRequest("secretKey", `Stripe refuses: ${message}`, "stripe_refused");
  }
  throw new ApiError(502, {
    message: `Stripe did not respond: ${message}`,
    code: "stripe_unavailable",
    cause,
  });
}

import { ApiError } from "../base/errors.ts";
import type { Amount } from "../base/money.ts";
import { newEvent } from "../events/event.ts";
import type { Project } from "../projects/schema.ts";
import { type AccountRef, walletUserOf } from "../ledger/account.ts";
import { merchantOf, type PaymentDeps } from "./merchant.ts";

/**
 * Creates a Stripe checkout session, emits its event, and returns the URL where the user pays.
 * Throws 400, 502.
 */
export async function startCheckout(
  services: Pick<PaymentDeps, "deps" | "secrets" | "emit">,
  { project, ref, amount, formId, path, requestId }: {
    project: Project;
    ref: AccountRef;
    amount: Amount;
    formId: string;
    path: string;
    requestId: string;
  },
): Promise<string> {
  const { account } = await merchantOf(services, project);
  const backUrl = `${services.deps.config.baseUrl}${path}`;
  const { user } = ref;
  const checkout = { project, ref, amount, formId, backUrl };
  const { id, url } = await account.createCheckoutSession(checkout).catch((error) => {
    // The page shows the person no reason; it goes to the log.
    const cause = String(error instanceof ApiError ? error.cause ?? error : error);
    services.deps.log("warn", "checkout_failed", { requestId, project: project.id, cause });
    throw error;
  });
  await services.emit(project.id, [
    newEvent("balance.topup.link.created", {
      trigger: { source: "checkout", actorType: "end-user", actorId: user },
      subject: { type: "balance", id, externalId: user },
    }, { walletUserId: walletUserOf(ref), redirectUrl: url, checkoutSessionId: id }),
  ]);
  return url;
}

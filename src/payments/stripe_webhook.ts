import type { BodyBudget } from "../base/body_budget.ts";
import { readBytes } from "../base/body.ts";
import { ApiError } from "../base/errors.ts";
import type { Handler, Incoming } from "../base/handler.ts";
import type { UnbookedReason } from "../base/unbooked_reasons.ts";
import type { StripeReceipt } from "./api_doc.ts";
import { findProject, handleEvent } from "./handle_event.ts";
import { merchantOfPath, type PaymentDeps } from "./merchant.ts";
import { readClaim } from "./unbooked.ts";

const eventBytesMax = 64 * 1024;

/**
 * `POST /v1/stripe/{projectId}`: Stripe's reports about a project's payments; `POST /v1/stripe`:
 * about payments into wallets. Each event counts once, however often it is sent. 400 when it is not
 * signed; Stripe then sends it again. A payment that cannot be booked is reported to the operator.
 */
export function stripeWebhook(services: PaymentDeps): Handler {
  return async (incoming) => {
    const { request, requestId, inTime, bodies } = incoming;
    const read = () => inTime(readRaw(request, bodies));
    const merchant = await merchantOfPath(services, incoming.param("projectId"))
      .catch((error) => reportUnverifiable(services, { incoming, read, error }));
    const raw = await read();
    const signature = request.headers.get("stripe-signature") ?? "";
    const event = await merchant.account.readEvent(raw, signature).catch(async (error) => {
      const claim = {
        raw,
        merchantId: merchant.id,
        reason: "invalid_signature",
        requestId,
      } as const;
      await reportUnsigned(services, claim, error);
      throw error;
    });
    const outcome = await handleEvent(services, { merchant, event, requestId });
    const body: StripeReceipt = { received: true, outcome };
    return Response.json(body, { headers: { "x-request-id": requestId } });
  };
}

/** Reports the payment in an event that no one here can verify, and throws the error again. */
async function reportUnverifiable(
  services: PaymentDeps,
  { incoming, read, error }: { incoming: Incoming; read: () => Promise<string>; error: unknown },
): Promise<never> {
  if (error instanceof ApiError && error.status === 404) {
    const { param, requestId } = incoming;
    const named = param("projectId");
    const isKnown = named === "" || await findProject(services, named) !== null;
    const merchantId = isKnown ? named || "instance" : null;
    const reason = isKnown ? "no_stripe_account" : "unknown_project";
    const raw = await read().catch(() => "");
    await reportUnsigned(services, { raw, merchantId, reason, requestId }, error);
  }
  throw error;
}

/** Reports the payment that an event claims, unless it does not concern this merchant. */
async function reportUnsigned(
  services: PaymentDeps,
  { raw, merchantId, reason, requestId }: {
    raw: string;
    merchantId: string | null;
    reason: UnbookedReason;
    requestId: string;
  },
  error: unknown,
): Promise<void> {
  const claimed = readClaim(raw);
  if (claimed === null) return;
  const project = await findProject(services, claimed.projectId).catch(() => null);
  const isOurs = merchantId === "instance" ? project !== null : project?.id === merchantId;
  if (merchantId !== null && !isOurs) return;
  const { currency = null } = project ?? {};
  const cause = error instanceof ApiError ? error.cause ?? error.message : error;
  // An event for a project's own account may have been sent to the server's URL.
  const payee = merchantId === "instance" && project?.mode === "default" ? project.id : merchantId;
  const told = { requestId, merchantId: payee, claimed, reason, isSigned: false, currency, cause };
  await services.reportUnbooked(told);
}

async function readRaw(request: Request, bodies: BodyBudget): Promise<string> {
  const tooLarge = () => new ApiError(413, { message: "The event is too large." });
  const bytes = await readBytes(request, { bytesMax: eventBytesMax, tooLarge, bodies });
  return new TextDecoder().decode(bytes);
}

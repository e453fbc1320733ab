import type { BodyShare } from "../base/body_budget.ts";
import { readBytes } from "../base/body.ts";
import { networkOf } from "../base/client_address.ts";
import { ApiError, notFound } from "../base/errors.ts";
import type { Handler } from "../base/handler.ts";
import type { UnverifiedReason } from "../base/unverified_reasons.ts";
import type { StripeReceipt } from "./api_doc.ts";
import { findProject, handleEvent } from "./handle_event.ts";
import { instanceMerchant, merchantOf, type PaymentDeps } from "./merchant.ts";
import { hasSignatureForm, type StripeAccount, UnverifiedError } from "./stripe.ts";
import { merchantIdOf, readClaim } from "./unbooked.ts";

const eventBytesMax = 64 * 1024;

/**
 * `POST /v1/stripe/{projectId}`: Stripe's reports about a project's payments; `POST /v1/stripe`:
 * about payments into wallets. Each event counts once, however often it is sent. 400 when nobody
 * can verify it, whatever the reason; Stripe then sends it again. A payment that Stripe reports and
 * that cannot be booked is reported to the operator.
 */
export function stripeWebhook(services: PaymentDeps): Handler {
  return async ({ request, requestId, inTime, bodies, param, address }) => {
    const payee = await findPayee(services, param("projectId"));
    const refuse = (reason: UnverifiedReason, raw = "") =>
      refuseUnverified(services, { payee, reason, raw });
    const signature = request.headers.get("stripe-signature") ?? "";
    // Before the body is read, which may be slow: Stripe always signs.
    if (!hasSignatureForm(signature)) return await refuse("no_signature");
    const raw = await inTime(readRaw(request, bodies.shareOf(networkOf(address()))));
    const { id, account } = payee;
    if (id === null) return await refuse("unknown_project");
    if (account === null) return await refuse("no_stripe_account");
    let event: unknown;
    try {
      event = await account.readEvent(raw, signature);
    } catch (error) {
      if (error instanceof UnverifiedError) return await refuse(error.reason, raw);
      throw error;
    }
    await services.unverified.verified(id);
    const outcome = await handleEvent(services, { merchant: { id, account }, event, requestId });
    const body: StripeReceipt = { received: true, outcome };
    return Response.json(body, { headers: { "x-request-id": requestId } });
  };
}

/** Who a URL says that a payment is for. */
interface Payee {
  /** The project's id, or `instance`; null where there is no such project. */
  id: string | null;
  /** Null where Stripe is not connected. */
  account: StripeAccount | null;
}

/** Throws 404 where the URL means this server and it has no Stripe account. */
async function findPayee(services: PaymentDeps, projectId: string): Promise<Payee> {
  const { stripe } = services.deps.config;
  if (projectId === "") {
    if (stripe) return await instanceMerchant(services.deps);
    services.unverified.saw("instance", "no_stripe_account");
    throw notFound("Stripe account of this server");
  }
  const project = await findProject(services, projectId);
  if (project === null) return { id: null, account: null };
  const isConnected = project.stripe && (project.mode !== "shared" || stripe);
  return isConnected
    ? await merchantOf(services, project)
    : { id: merchantIdOf(project), account: null };
}

/** Notes an event that nobody can verify. Throws the same 400 for every reason. */
async function refuseUnverified(
  services: PaymentDeps,
  { payee: { id }, reason, raw }: { payee: Payee; reason: UnverifiedReason; raw: string },
): Promise<never> {
  // An event for a project's own account may have been sent to the server's URL.
  const claimed = id === "instance" ? readClaim(raw) : null;
  const project = claimed && await findProject(services, claimed.projectId).catch(() => null);
  services.unverified.saw(project?.mode === "default" ? project.id : id, reason);
  throw new UnverifiedError(reason);
}

async function readRaw(request: Request, bodies: BodyShare): Promise<string> {
  const tooLarge = () => new ApiError(413, { message: "The event is too large." });
  const bytes = await readBytes(request, { bytesMax: eventBytesMax, tooLarge, bodies });
  return new TextDecoder().decode(bytes);
}

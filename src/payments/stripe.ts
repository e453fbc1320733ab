import { createHash } from "node:crypto";
import type { Stripe } from "stripe";
import { unitsPerOne, unitsPerStep } from "../projects/currency.ts";
import { ApiError, badRequest } from "../base/errors.ts";
import type { UnverifiedReason } from "../base/unverified_reasons.ts";
import { type Amount, formatAmount, fromDecimal, toAmount, unit } from "../base/money.ts";
import type { Secret } from "../base/secret.ts";
import type { Deps } from "../deps.ts";
import type { AccountRef } from "../ledger/account.ts";
import type { Project } from "../projects/schema.ts";

/** A payment to request from Stripe. */
interface CheckoutRequest {
  project: Project;
  /** The account that the money is for. */
  ref: AccountRef;
  amount: Amount;
  formId: string;
  backUrl: string;
}

/** A Stripe account, through the official client. */
export interface StripeAccount {
  /** Whether its key is of Stripe's live mode; null where the key does not say. */
  readonly isLive: boolean | null;
  /**
   * Creates a page at Stripe where this user pays; the same form and amount return the same one.
   * Throws 400, 502.
   */
  createCheckoutSession(checkout: CheckoutRequest): Promise<{ id: string; url: string }>;
  /** Reads a webhook's event. Throws `UnverifiedError` where it may be somebody else's. */
  readEvent(raw: string, signature: string): Promise<unknown>;
  /** Lists completed sessions that were created since a time, newest first. Throws 502. */
  listSessions(page: StripePageRequest): Promise<StripePage>;
  /** Lists events of these types since a time, newest first; Stripe keeps 30 days. Throws 502. */
  listEvents(page: StripePageRequest & { types: string[] }): Promise<StripePage>;
}

/** A page to read at Stripe. */
interface StripePageRequest {
  sinceMs: number;
  /** The id to continue after; null at the start. */
  after: string | null;
}

/** Objects as Stripe sent them, and the id to continue after; null at the end. */
interface StripePage {
  items: readonly unknown[];
  next: string | null;
}

const toleranceSeconds = 300;
const timeoutMs = 15_000;
/** Stripe's client waits half a second or more in each attempt that finds the key in use. */
const createAttemptsMax = 12;
/** The most characters of a payment's description. */
const descriptionMax = 500;

/** Converts an amount to Stripe's units; null when it is finer than what can be paid. */
export function toStripeUnits(amount: Amount, currency: string): number | null {
  const scaled = amount * unitsPerOne(currency);
  return scaled % (unit * unitsPerStep(currency)) === 0n ? Number(scaled / unit) : null;
}

/** Converts Stripe's units to an amount. */
export function fromStripeUnits(units: number, currency: string): Amount {
  return toAmount((BigInt(units) * unit) / unitsPerOne(currency));
}

/** Whether a key is of Stripe's live mode, by how it begins; null for a key of another form. */
export function isLiveKey(secretKey: Secret): boolean | null {
  const [, mode] = /^[rs]k_(live|test)_/.exec(secretKey.reveal()) ?? [];
  return mode === undefined ? null : mode === "live";
}

/** Opens Stripe's client, which is loaded with the first one. */
export async function openStripeClient(
  deps: Pick<Deps, "fetch">,
  secretKey: Secret,
): Promise<Stripe> {
  const { default: Client } = await import("stripe");
  const fetchOnly = (input: string | URL | Request, init?: RequestInit) =>
    deps.fetch(input instanceof Request ? input.url : String(input), init ?? {});
  return new Client(secretKey.reveal(), {
    httpClient: Client.createFetchHttpClient(fetchOnly),
    timeout: timeoutMs,
    maxNetworkRetries: 1,
    telemetry: false,
  });
}

/** Opens an account. The client library is loaded with the first one. */
export async function openStripe(
  deps: Pick<Deps, "fetch" | "clock">,
  { secretKey, webhookSecret }: { secretKey: Secret; webhookSecret: Secret },
): Promise<StripeAccount> {
  const { default: Client } = await import("stripe");
  const open = () => openStripeClient(deps, secretKey);
  const crypto = Client.createSubtleCryptoProvider();

  /** Creates a session once for each key, and waits while another request under the key runs. */
  async function createOnce(key: string, parameters: SessionParameters) {
    const digest = createHash("sha256").update(JSON.stringify(parameters)).digest("base64url");
    let freshKeys = 0;
    for (let attempt = 1;; attempt++) {
      const idempotencyKey = freshKeys === 0 ? key : `${key}-${digest}-${freshKeys}`;
      try {
        return await (await open()).checkout.sessions.create(parameters, { idempotencyKey });
      } catch (error) {
        const { rawType, type, statusCode, code } = Object(error);
        const isInUse = statusCode === 409 || code === "lock_timeout";
        const isUsed = rawType === "idempotency_error" || type === "StripeIdempotencyError";
        if (attempt === createAttemptsMax || !(isInUse || isUsed)) throw error;
        // The key was used with other parameters, for example before the project was renamed.
        if (!isInUse) freshKeys++;
      }
    }
  }

  return {
    isLive: isLiveKey(secretKey),
    async createCheckoutSession({ project, ref, amount, formId, backUrl }) {
      const { currency } = project;
      const unitAmount = toStripeUnits(amount, currency);
      if (unitAmount === null) {
        throw badRequest(
          "amount",
          `${formatAmount(amount)} has more decimal places than ${currency} can be paid in.`,
        );
      }
      const parameters = sessionParameters({ project, ref, backUrl, unitAmount });
      // A browser that goes back submits the same form with another amount.
      const idempotencyKey = `farebox-${project.id}-${formId}-${unitAmount}`;
      const session = await createOnce(idempotencyKey, parameters).catch((cause) => {
        throw checkoutError(cause);
      });
      if (!session.url) throw new Error("Stripe created a session without a URL");
      return { id: session.id, url: session.url };
    },
    listSessions: async (page) => {
      const { checkout } = await open();
      return await pageOf(checkout.sessions.list({ ...listParameters(page), status: "complete" }));
    },
    listEvents: async ({ types, ...page }) => {
      const { events } = await open();
      return await pageOf(events.list({ ...listParameters(page), types }));
    },
    async readEvent(raw, signature) {
      const read = (secret: string) =>
        Client.webhooks.constructEventAsync(raw, signature, secret, anyAge, crypto);
      const event = await firstValid(signingSecrets(webhookSecret), read).catch(() => {
        throw new UnverifiedError("invalid_signature");
      });
      if (!isTimely(signature, deps.clock.now())) throw new UnverifiedError("outdated_signature");
      return event;
    },
  };
}

type SessionParameters = Stripe.Checkout.SessionCreateParams;

/** Returns what Stripe is asked for. The payment itself carries what its session does. */
function sessionParameters(
  { project, ref, backUrl, unitAmount }: Pick<CheckoutRequest, "project" | "ref" | "backUrl"> & {
    unitAmount: number;
  },
): SessionParameters {
  const { currency, name } = project;
  const product = { currency, unit_amount: unitAmount, product_data: { name } };
  const metadata = {
    farebox_project: project.id,
    farebox_user: ref.user,
    farebox_units: unitAmount,
    ...(ref.wallet
      ? { farebox_person: ref.wallet.personId, farebox_connection: ref.wallet.connectionId }
      : {}),
  };
  const description = `${name}: top-up for ${ref.user}`.slice(0, descriptionMax).toWellFormed();
  return {
    mode: "payment",
    line_items: [{ price_data: product, quantity: 1 }],
    success_url: `${backUrl}?paid=yes`,
    cancel_url: backUrl,
    metadata,
    payment_intent_data: { metadata, description },
  };
}

const pageSize = 100;

function listParameters({ sinceMs, after }: StripePageRequest) {
  const created = { gte: Math.floor(sinceMs / 1000) };
  return { created, limit: pageSize, ...(after === null ? {} : { starting_after: after }) };
}

async function pageOf(
  list: Promise<{ data: readonly { id: string }[]; has_more: boolean }>,
): Promise<StripePage> {
  const { data, has_more } = await list.catch((cause) => {
    const { message = cause } = Object(cause);
    throw new ApiError(502, {
      message: `Stripe did not return its payments: ${message}`,
      code: "stripe_unavailable",
      cause: message,
    });
  });
  return { items: data, next: has_more ? data.at(-1)?.id ?? null : null };
}

/** Returns the signing secrets of a webhook: while one is replaced, Stripe signs with two. */
function signingSecrets(webhookSecret: Secret): string[] {
  return webhookSecret.reveal().split(/[\s,]+/).filter(Boolean);
}

/** Returns the first result that does not throw; throws the first error if all do. */
async function firstValid<T>(
  secrets: readonly string[],
  read: (secret: string) => Promise<T>,
): Promise<T> {
  const results = await Promise.allSettled(secrets.map(read));
  const valid = results.find((result) => result.status === "fulfilled");
  if (valid) return valid.value;
  const [first] = results;
  throw first?.status === "rejected" ? first.reason : new Error("There is no signing secret");
}

/** Stripe's client checks no timestamp then: it would accept any in the future. */
const anyAge = 0;

/** Whether a signature's timestamp is of the last or the next five minutes. */
function isTimely(signature: string, now: number): boolean {
  // https://docs.stripe.com/webhooks/signature: `t=…,v1=…`. The client takes the last one.
  const times = [...signature.matchAll(/(?:^|,)t=([^,]*)/g)].map(([, time]) => Number(time));
  return times.every((time) => Math.abs(time - Math.floor(now / 1000)) <= toleranceSeconds);
}

/** Whether a header could be a signature of Stripe's. */
export function hasSignatureForm(header: string): boolean {
  return /(^|,)t=\d{1,12}(,|$)/.test(header) && /(^|,)v1=[\da-f]{64}(,|$)/i.test(header);
}

/**
 * An event that nobody can verify. Whoever sends it gets the same 400 for every reason, also where
 * there is no such project.
 */
export class UnverifiedError extends ApiError {
  readonly reason: UnverifiedReason;

  constructor(reason: UnverifiedReason) {
    super(400, {
      message: "The Stripe-Signature does not fit the project in the URL, or its signing secret.",
      code: "invalid_signature",
      cause: reason,
    });
    this.reason = reason;
  }
}

/**
 * Returns the error of a checkout that could not be created. Stripe's own message goes to the log:
 * it may concern the owner.
 */
function checkoutError(cause: unknown): ApiError {
  const { type, statusCode, message = cause } = Object(cause);
  if (type === "StripeInvalidRequestError" && statusCode === 400) {
    return new ApiError(400, {
      message: "This amount cannot be paid here. Try another amount, or ask the app’s owner.",
      code: "checkout_refused",
      param: "amount",
      cause: message,
    });
  }
  return new ApiError(502, {
    message: "The payment service did not answer. Try again shortly.",
    code: "checkout_unavailable",
    cause: message,
  });
}

/**
 * Whether the project takes this amount. The minimum and maximum apply to typed amounts: every
 * amount that the page offers must work.
 */
export function acceptsAmount(
  { topUp: { amounts, min, max } }: { topUp: Omit<Project["topUp"], "checkoutUrl"> },
  amount: Amount,
): boolean {
  if (amount <= 0n) return false;
  const isTyped = amount >= fromDecimal(min) && amount <= fromDecimal(max);
  return isTyped || amounts.includes(formatAmount(amount));
}

import type { Bodies } from "../base/bodies.ts";
import { readBytes } from "../base/body.ts";
import { ApiError, notFound } from "../base/errors.ts";
import type { Handler } from "../base/handler.ts";
import { toBytes } from "../base/json.ts";
import { formatAmount } from "../base/money.ts";
import { type NewEvent, newEvent } from "../events/event.ts";
import { checkId } from "../projects/operator.ts";
import type { Project } from "../projects/schema.ts";
import { decodeAccount, requireOpen, walletUserOf } from "../ledger/account.ts";
import { accountKey, connectionKey, stripePaymentKey } from "../store/keys.ts";
import type { PaywallRooms } from "./rooms.ts";
import type { Taken } from "./operations.ts";
import { instanceMerchant, type Merchant, merchantOf } from "./merchant.ts";
import { nothing, type Payment } from "./payment.ts";
import { byStripe, follow, followKept, isBookedBefore } from "./reversals.ts";
import { paidSession, projectOfSession } from "./stripe.ts";
import { readTold, type Session } from "./stripe_event.ts";

const bodyBytesMax = 512 * 1024;

/**
 * `POST /v1/stripe/{projectId}`: what Stripe tells of a project's payments; `POST /v1/stripe`: of
 * those into wallets. Each event counts once, whatever is repeated. 400 when it is not signed,
 * which Stripe then sends again.
 */
export function stripeWebhook(rooms: PaywallRooms): Handler {
  return async ({ request, param, requestId, inTime, bodies }) => {
    const merchant = await merchantNamed(rooms, param("projectId"));
    const raw = await inTime(readRaw(request, bodies));
    const signature = request.headers.get("stripe-signature") ?? "";
    const event = await merchant.account.readEvent(raw, signature);
    const outcome = await take(rooms, merchant, event);
    const body: Taken = { received: true, outcome };
    return Response.json(body, { headers: { "x-request-id": requestId } });
  };
}

/** The project of the address, or this server where it names none. */
async function merchantNamed(rooms: PaywallRooms, projectId: string): Promise<Merchant> {
  if (projectId === "") {
    if (!rooms.deps.config.stripe) throw notFound("Stripe account of this server");
    return await instanceMerchant(rooms.deps);
  }
  const { project } = await rooms.directory.current(checkId(projectId, "project"));
  if (!project.stripe) throw notFound("Stripe account of this project");
  return await merchantOf(rooms, project);
}

async function readRaw(request: Request, bodies: Bodies): Promise<string> {
  const tooLarge = () => new ApiError(413, { message: "The event is too large." });
  const bytes = await readBytes(request, { bytesMax: bodyBytesMax, tooLarge, bodies });
  return new TextDecoder().decode(bytes);
}

type Outcome = Taken["outcome"];

async function take(
  rooms: PaywallRooms,
  merchant: Merchant,
  event: { id: string; type: string },
): Promise<Outcome> {
  const told = readTold(event);
  if (told === null) return "ignored";
  return told.kind === "session"
    ? await book(rooms, merchant, told.session)
    : await follow(rooms, merchant.id, told);
}

/** Books a paid session, once; one that is not paid yet comes again when it is. */
async function book(
  rooms: PaywallRooms,
  merchant: Merchant,
  session: Session,
): Promise<Outcome> {
  const project = await projectPaid(rooms, merchant, session);
  const paid = project && paidSession(project, session);
  if (!paid) return "ignored";
  const { id, ref, amount, paymentIntent } = paid;
  const own = accountKey(project.id, ref.user);
  const completed = (): NewEvent[] => [
    newEvent("stripe.checkout.session.completed", {
      trigger: byStripe,
      subject: { type: "balance", id, externalId: ref.user },
    }, {
      checkoutSessionId: id,
      amount: formatAmount(amount),
      currency: project.currency,
      walletUserId: walletUserOf(ref),
    }),
  ];
  await rooms.post.deposit({
    ref,
    amount,
    metadata: { source: "stripe", checkoutSessionId: id },
    key: `stripe:${id}`,
    paid: true,
    origin: { trigger: byStripe, source: "stripe", also: completed },
    reads: ref.wallet ? [own] : [],
    alongside(draft, entry) {
      const { projectId, user, wallet } = ref;
      // In a wallet, whose account is open, whoever is being forgotten would be named anew.
      if (wallet) requireOpen(decodeAccount(draft.row(own)));
      // Whoever was forgotten since the session was opened can be found, and forgotten, again.
      if (wallet) draft.put(connectionKey(wallet.personId, projectId, user), new Uint8Array());
      if (paymentIntent === null) return;
      const key = stripePaymentKey(merchant.id, paymentIntent);
      const { currency } = project;
      const payment: Payment = { activityId: entry.id, ref, currency, since: nothing };
      draft.put(key, toBytes(payment));
    },
  }).catch((error) => {
    if (!isBookedBefore(error)) throw error;
  });
  if (paymentIntent !== null) await followKept(rooms, merchant.id, paymentIntent);
  return "booked";
}

/** The project that a session was made for; null where it is none of this merchant's. */
async function projectPaid(
  { directory }: PaywallRooms,
  { id }: Merchant,
  session: Session,
): Promise<Project | null> {
  const projectId = projectOfSession(session);
  if (projectId === null || (id !== "instance" && id !== projectId)) return null;
  try {
    return (await directory.current(projectId)).project;
  } catch (error) {
    // Another server may have the same account at Stripe.
    if (error instanceof ApiError && error.status === 404) return null;
    throw error;
  }
}

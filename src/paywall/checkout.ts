import { badRequest } from "../base/errors.ts";
import type { Amount } from "../base/money.ts";
import { newEvent } from "../events/event.ts";
import type { Project } from "../projects/schema.ts";
import type { LinkSubject } from "./link.ts";
import type { PaywallRooms } from "./rooms.ts";
import { openStripe } from "./stripe.ts";

/** Makes a checkout at Stripe and says so; the address where this user pays. Throws 400, 502. */
export async function startCheckout(
  { deps, secrets, announce }: Pick<PaywallRooms, "deps" | "secrets" | "announce">,
  { project, subject, amount, formId, path }: {
    project: Project;
    subject: LinkSubject;
    amount: Amount;
    formId: string;
    path: string;
  },
): Promise<string> {
  if (!project.stripe) throw badRequest(null, "This app has no checkout.");
  const { user } = subject;
  const account = await openStripe(deps, secrets, { project, keys: project.stripe });
  const backUrl = `${deps.config.baseUrl}${path}`;
  const { id, url } = await account.startCheckout({ user, amount, formId, backUrl });
  await announce(project.id, [
    newEvent("balance.topup.link.created", {
      trigger: { source: "checkout", actorType: "end-user", actorId: user },
      subject: { type: "balance", id, externalId: user },
    }, { walletUserId: user, redirectUrl: url, checkoutSessionId: id }),
  ]);
  return url;
}

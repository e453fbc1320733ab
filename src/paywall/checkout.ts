import type { Amount } from "../base/money.ts";
import { newEvent } from "../events/event.ts";
import type { Project } from "../projects/schema.ts";
import { type AccountRef, walletUserOf } from "../ledger/account.ts";
import { merchantOf } from "./merchant.ts";
import type { PaywallRooms } from "./rooms.ts";

/** Makes a checkout at Stripe and says so; the address where this user pays. Throws 400, 502. */
export async function startCheckout(
  rooms: Pick<PaywallRooms, "deps" | "secrets" | "announce">,
  { project, ref, amount, formId, path }: {
    project: Project;
    ref: AccountRef;
    amount: Amount;
    formId: string;
    path: string;
  },
): Promise<string> {
  const { account } = await merchantOf(rooms, project);
  const backUrl = `${rooms.deps.config.baseUrl}${path}`;
  const { user } = ref;
  const { id, url } = await account.startCheckout({ project, ref, amount, formId, backUrl });
  await rooms.announce(project.id, [
    newEvent("balance.topup.link.created", {
      trigger: { source: "checkout", actorType: "end-user", actorId: user },
      subject: { type: "balance", id, externalId: user },
    }, { walletUserId: walletUserOf(ref), redirectUrl: url, checkoutSessionId: id }),
  ]);
  return url;
}

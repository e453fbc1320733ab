import { isGoingOn } from "../base/lasting.ts";
import { errorFields } from "../base/errors.ts";
import { fromBytes } from "../base/json.ts";
import { allUnverifiedEventsPrefix } from "../store/keys.ts";
import type { Key } from "../store/kv.ts";
import { listAfter } from "../store/scan.ts";
import { instanceMerchant, type Merchant, merchantOf, type PaymentDeps } from "./merchant.ts";
import { reconcilePayments } from "./reconcile.ts";
import { changeUnverified, type UnverifiedEvents } from "./unverified.ts";
import type { Project } from "../projects/schema.ts";

const rowsPerSweep = 20;
/** Strangers can cause these questions, so they are rare. */
const betweenChecksMs = 10 * 60_000;
/** A session can be paid so long after it was created. */
const sessionLifetimeMs = 24 * 60 * 60 * 1000;
/** How many pages of sessions are read at most, the newest first. */
const pagesMax = 3;

/**
 * Creates the sweep that asks Stripe for paid sessions, where events came that nobody could verify.
 * If the signing secret is wrong, payments are booked nevertheless, and the row then says so.
 */
export function createCheckAtStripe(services: PaymentDeps): { sweep(): Promise<void> } {
  const { kv, clock, log } = services.deps;
  let after: Key | null = null;
  function isDue({ lastAt, checkedAt }: UnverifiedEvents): boolean {
    const now = clock.now();
    // An event after a check by a clock that was ahead is dated before it.
    const isNew = lastAt >= checkedAt || checkedAt > now;
    return isNew && !isGoingOn(checkedAt, betweenChecksMs, now);
  }
  return {
    async sweep() {
      const rows = await listAfter(kv, allUnverifiedEventsPrefix, { after, limit: rowsPerSweep });
      after = rows.length < rowsPerSweep ? null : rows.at(-1)?.key ?? null;
      for (const { value } of rows) {
        const events = value && fromBytes<UnverifiedEvents>(value);
        if (!events || !isDue(events)) continue;
        await check(services, events).catch((error) =>
          log("warn", "stripe_not_asked", { merchant: events.merchantId, ...errorFields(error) })
        );
      }
    },
  };
}

async function check(services: PaymentDeps, { merchantId, firstAt }: UnverifiedEvents) {
  const { deps } = services;
  const now = deps.clock.now();
  // Before Stripe is asked: one that does not answer must not be asked at each sweep.
  await changeUnverified(deps, merchantId, (row) => row && { ...row, checkedAt: now });
  const merchant = await findMerchant(services, merchantId);
  if (merchant === null) return;
  const requestId = deps.id("req");
  let after: string | null = null;
  let booked = 0;
  for (let page = 0; page < pagesMax; page++) {
    const asked = { merchant, sinceMs: firstAt - sessionLifetimeMs, after, requestId };
    const { counts, next } = await reconcilePayments(services, { ...asked, onlyOwn: true });
    booked += counts.booked;
    after = next;
    if (after === null) break;
  }
  if (booked === 0) return;
  deps.log("warn", "stripe_payments_found", { merchant: merchantId, booked });
  await changeUnverified(
    deps,
    merchantId,
    (row) => row && { ...row, booked: row.booked + booked, bookedAt: row.bookedAt ?? now },
  );
}

/** Returns who takes the payments of the row; null where Stripe is not connected any more. */
async function findMerchant(services: PaymentDeps, merchantId: string): Promise<Merchant | null> {
  if (merchantId === "instance") {
    return services.deps.config.stripe ? await instanceMerchant(services.deps) : null;
  }
  const { project }: { project: Project } = await services.projectCache.current(merchantId);
  return project.stripe && project.mode !== "shared" ? await merchantOf(services, project) : null;
}

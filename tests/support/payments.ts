import assert from "node:assert/strict";
import { chat } from "./chat.ts";
import type { Session } from "./stripe.ts";
import { openSession, tellServer } from "./wallets.ts";
import { adminKey, type Body, createWorld, type World } from "./world.ts";

/** The Stripe keys of a project in tests. */
export const ownerStripe = {
  secretKey: "sk_test_of_the_owner",
  webhookSecret: "whsec_of_the_owner",
};

export interface PaidWorld {
  world: World;
  /** The session as Stripe reports it once it is paid. */
  session: Session;
  /** Reports the session as completed, with some fields changed. */
  tell(changes?: Body, secret?: string): Promise<{ status: number; body: Body }>;
  /** Reports anything. */
  tellEvent(type: string, object: unknown, id?: string): Promise<{ status: number; body: Body }>;
}

let events = 0;

/** A project with its own Stripe account, and a paid session that is not reported yet. */
export async function paidWorld(
  { project = {}, env = {}, amount = "10" }: {
    project?: Body;
    env?: Record<string, string>;
    amount?: string;
  } = {},
): Promise<PaidWorld> {
  const world = await createWorld({ env, project: { stripe: ownerStripe, ...project } });
  const made = await openSession(world, { amount });
  const path = `/v1/stripe/${world.projectId}`;
  const session = { ...made, payment_status: "paid" };
  const send = (type: string, object: unknown, secret?: string, id = `evt_paid_${++events}`) =>
    tellServer(
      world,
      { id, object: "event", type, data: { object } },
      secret ?? ownerStripe.webhookSecret,
      path,
    );
  return {
    world,
    session,
    tell: (changes = {}, secret) =>
      send("checkout.session.completed", { ...session, ...changes }, secret),
    tellEvent: (type, object, id) => send(type, object, undefined, id),
  };
}

/** The reports of payments that are not booked, as they were logged. */
export function unbookedLog(world: World): Body[] {
  return world.logged.filter(({ event }) => event === "payment_not_booked");
}

/** The only report that was logged. */
export function onlyUnbooked(world: World): Body {
  const [first, ...more] = unbookedLog(world);
  assert.deepEqual(more, []);
  return first ?? assert.fail("nothing was reported");
}

/** A session of a project that is paid and names no user. */
function userlessEvent({ projectId }: World) {
  const object = {
    id: "cs_1",
    payment_status: "paid",
    metadata: { farebox_project: projectId },
  };
  return { id: "evt_1", type: "checkout.session.completed", data: { object } };
}

/** A payment that Stripe reports and that cannot be booked, and what it counts. */
const unbookedCase = {
  moves: { 'farebox_payments_not_booked_total{reason="missing_user"}': 1 },
  async happens(world: World): Promise<void> {
    const settings = { method: "PATCH", key: adminKey, body: { stripe: ownerStripe } };
    await world.call(`/v1/admin/projects/${world.projectId}`, settings);
    const path = `/v1/stripe/${world.projectId}`;
    const told = await tellServer(world, userlessEvent(world), ownerStripe.webhookSecret, path);
    assert.equal(told.status, 200);
  },
};

/** An event that no one here can verify, and what it counts. */
const unverifiedCase = {
  moves: { 'farebox_stripe_events_unverified_total{reason="no_stripe_account"}': 1 },
  async happens(world: World): Promise<void> {
    const path = `/v1/stripe/${world.projectId}`;
    assert.equal((await tellServer(world, userlessEvent(world), "whsec_any", path)).status, 400);
  },
};

/** The case of a call of a model without a price. */
const unpricedCase = {
  moves: { farebox_unpriced_calls_total: 1 },
  async happens(world: World) {
    await chat(world, { model: "no-such-model" });
  },
};

/** These by what happens. */
export const stripeCases = {
  "a payment that cannot be booked": unbookedCase,
  "an event that nobody can verify": unverifiedCase,
  "an unpriced call": unpricedCase,
};

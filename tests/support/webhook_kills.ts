import assert from "node:assert/strict";
import { eventually, type Farebox, makeFolder, serviceEnv, startFarebox } from "./process.ts";
import { type Receiver, receiverEnv, startReceiver } from "./receiver.ts";
import { makeProject, sleep } from "./traffic.ts";

/** The results of killing a service again and again under load. */
interface KillLedger {
  kills: number;
  /** Deposits whose caller got a response that they are recorded. */
  acknowledged: number;
  /** Of those, the ones whose event never arrived. */
  lost: number;
  /** Events that arrived more than once, which at-least-once allows. */
  duplicates: number;
}

const loops = 8;

/**
 * Kills a real process at random moments under a load of deposits, restarts it on its file, and
 * compares its callers' responses with a subscriber's events. Some deliveries fail at first.
 */
export async function killUnderLoad(kills: number): Promise<KillLedger> {
  await using folder = await makeFolder();
  await using receiver = startReceiver();
  const env = {
    ...serviceEnv,
    ...receiverEnv,
    LOG_LEVEL: "warn",
    WEBHOOK_TIMEOUT_MS: "500",
    WEBHOOK_BACKOFF_BASE_MS: "100",
    WEBHOOK_MAX_ATTEMPTS: "20",
  };
  let n = 0;
  receiver.answer = () => new Response(null, { status: ++n % 23 === 0 ? 500 : 200 });
  const start = () => startFarebox({ folder: folder.path, env });
  let farebox = await start();
  try {
    const key = await makeProject(farebox);
    const { subscription } = await farebox.json("/v1/webhooks/subscriptions", {
      key,
      body: { url: receiver.url, events: ["balance.deposit.created"] },
    });
    receiver.secret = subscription.secret;
    const acknowledged = new Set<string>();
    for (let kill = 0; kill < kills; kill++) {
      await loadUntilKilled(farebox, { key, acknowledged });
      await farebox.ended;
      farebox = await start();
    }
    const missing = () => [...acknowledged].filter((id) => !receiver.activities.has(id));
    await eventually(() => missing().length === 0, { withinMs: 40_000, what: "every event" })
      .catch(() => {});
    assert.equal(receiver.forged, 0);
    return {
      kills,
      acknowledged: acknowledged.size,
      lost: missing().length,
      duplicates: duplicatesOf(receiver),
    };
  } finally {
    await farebox[Symbol.asyncDispose]();
  }
}

function duplicatesOf({ events }: Receiver): number {
  return [...events.values()].filter((count) => count > 1).length;
}

/** Sends deposits from several loops at once, until the process dies. */
async function loadUntilKilled(
  farebox: Farebox,
  { key, acknowledged }: { key: string; acknowledged: Set<string> },
): Promise<void> {
  let dead = false;
  const loop = async (at: number) => {
    while (!dead) {
      const body = { user: `user-${at % 3}`, amount: "1" };
      const booked = await farebox.json("/v1/user/balance/deposit", { key, body }).catch(() =>
        null
      );
      if (booked) acknowledged.add(booked.activityId);
      else await sleep(5);
    }
  };
  const running = Array.from({ length: loops }, (_, at) => loop(at));
  await sleep(100 + Math.random() * 700);
  farebox.signal("SIGKILL");
  await farebox.ended;
  dead = true;
  await Promise.all(running);
}

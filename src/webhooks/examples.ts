// Examples for the API documentation of webhooks.

const createdAt = "2026-01-31T09:30:00.000Z";
const projectId = "pw_01K9Z0C8Q4R7T2V5X8Z1B3D5F7";
const subscriptionId = "sub_01K9Z0C8Q4R7T2V5X8Z1B3D5F7";
const eventId = "evt_01K9Z0C8Q4R7T2V5X8Z1B3D5F7";

/** A subscription, as an example. */
export const exampleSubscription = {
  id: subscriptionId,
  paywallId: projectId,
  url: "https://hooks.my.app/farebox",
  events: ["balance.*"],
  isActive: true,
  createdAt,
  updatedAt: createdAt,
  secretSuffix: "k3Y0PQ",
  createdBy: "key_01K9Z0C8Q4R7T2V5X8Z1B3D5F7",
  consecutiveFailures: 0,
  lastDeliveredAt: null,
};

/** An entry of the log, as an example. */
export const exampleLogEntry = {
  id: "dly_01K9Z0C8Q4R7T2V5X8Z1B3D5F7",
  subscriptionId,
  status: "success",
  attempts: 1,
  lastAttemptAt: createdAt,
  nextRetryAt: null,
  responseCode: 200,
  responseLatencyMs: 84,
  error: null,
  createdAt,
  updatedAt: createdAt,
  event: {
    id: eventId,
    paywallId: projectId,
    ownerUserId: "owner",
    type: "balance.depleted",
    version: "1.0",
    status: "pending",
    createdAt,
    trigger: { source: "proxy", actorType: "end-user", actorId: "ada" },
    subject: { type: "balance", id: "ada", externalId: "ada" },
    data: {
      paywallId: projectId,
      ownerUserId: "owner",
      walletUserId: "ada",
      requestedAmount: null,
      availableBalance: "0.5",
    },
    metadata: {},
  },
};

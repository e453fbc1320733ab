import { createMetrics } from "../../src/metrics/metrics.ts";
import { newDelivery } from "../../src/webhooks/delivery/delivery.ts";
import { createGuard } from "../../src/webhooks/delivery/guard.ts";
import { send, type SendResult } from "../../src/webhooks/delivery/send.ts";
import { senderClock, startSender } from "./sender.ts";

interface AttemptOptions {
  url: string;
  /** The addresses of the host's name. */
  addresses: string[];
  sender?: ReturnType<typeof startSender>;
  timeoutMs?: number;
}

/** What the attempt log records of one attempt over the real network. */
export type Logged = Pick<SendResult, "result" | "responseCode" | "error" | "bodyHead">;

/** Makes one attempt, at a receiver on this machine. */
export async function attemptTo(
  { url, addresses, sender = startSender(), timeoutMs = 5_000 }: AttemptOptions,
): Promise<Logged> {
  const clock = { ...senderClock, now: () => Date.now(), sleep: () => Promise.resolve() };
  const guard = createGuard({
    allowCidrs: ["127.0.0.0/8", "::1/128"],
    dev: true,
    baseUrl: "https://farebox.test",
    resolve: () => Promise.resolve(addresses),
    clock,
  });
  const named = { id: "dly_1", projectId: "pw_1", subscriptionId: "sub_1", eventId: "evt_1" };
  const delivery = newDelivery({ ...named, eventType: "updated", eventVersion: "1" }, Date.now());
  const deps = {
    sendWebhook: sender,
    clock,
    metrics: createMetrics(),
    config: { webhooks: { timeoutMs } },
  };
  const subscription = { url, secrets: ["whsec_test"], customHeaders: {} };
  const { result, responseCode, error, bodyHead } = await send(
    // Only these fields are read.
    deps as unknown as Parameters<typeof send>[0],
    guard,
    { delivery, eventText: "{}", subscription } as unknown as Parameters<typeof send>[2],
  );
  return { result, responseCode, error, bodyHead };
}

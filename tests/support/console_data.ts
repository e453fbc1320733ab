import { chatBody, chatPath } from "./books.ts";
import { deliver, subscribe } from "./webhooks.ts";
import { completion, usage } from "./upstream.ts";
import { ownerStripe } from "./payments.ts";
import { createWorld, testPricing, type World } from "./world.ts";

const hourMs = 60 * 60 * 1000;

/**
 * A world whose console has content on every page, created by the service itself. `healthy`:
 * nothing fails, and Stripe is connected.
 */
export async function busyWorld(
  { name = "Ada’s shop", description = "Bookkeeping", healthy = false } = {},
): Promise<World & { subscriptionId: string }> {
  const env = { BASE_URL: "http://localhost:8000" };
  const models = {
    ...testPricing.models,
    "small-model": { input: "0.2", output: "0.4" },
    "thinking-model": { input: "5", cachedInput: "0.5", output: "25" },
  };
  const project = {
    name,
    pricing: { catalogue: true, markupPercent: "20", requestFee: "0.001", models },
    limits: { user: { requestsPerMinute: 20 } },
    lowBalance: "1",
    alerts: {
      emails: ["owner@my.app"],
      paymentNotBooked: true,
      webhookFailing: { afterMinutes: 60 },
      errorRate: {},
      totalBalance: { below: "200" },
    },
    upstreams: {
      main: { provider: "openai", apiKey: "main-key", models: ["gpt-*"] },
      spare: { url: "https://spare.example/v1", timeouts: { connectMs: 2_000 } },
    },
    routes: {
      smart: {
        targets: [{ upstream: "main", model: "gpt-4o" }, { upstream: "spare", model: "large" }],
      },
    },
  };
  if (healthy) Object.assign(project, { stripe: ownerStripe, limits: {} });
  const world = await createWorld({ env, project, sendMail: () => Promise.resolve() });
  const { id: subscriptionId } = await subscribe(world, { description });
  await subscribe(world, { url: "https://crm.example.com/in", events: ["balance.*"] });
  for (const user of ["ada", "bob", "charlie@example.com"]) await world.deposit(user, "25");
  for (let hour = 0; hour < 20; hour++) {
    if (hour === 12 && !healthy) world.subscriber.reply(() => ({ status: 410, bodyHead: "gone" }));
    for (const [user, model] of conversations(hour, healthy ? listedModels : ownModels)) {
      const used = usage(900 + 45 * hour, 150 + 31 * hour);
      world.upstream.once(() => completion({ ...(healthy ? { model } : {}), usage: used }));
      await world.json(chatPath, { body: chatBody(user, { model, max_tokens: 4_000 }) });
    }
    await world.clock.advance(hourMs);
  }
  if (!healthy) {
    await world.json("/v1/user/charge", { body: { user: "bob", amount: "1.25" } });
  }
  for (let n = 0; n < 4; n++) await world.json(chatPath, { body: chatBody("dora") });
  await deliver(world);
  await world.app.sweep();
  return Object.assign(world, { subscriptionId });
}

const ownModels = ["test-model", "small-model", "thinking-model"];
/** Models whose list prices are known, and so their margin. */
const listedModels = ["gpt-5", "gpt-4o", "gpt-4.1-mini"];

/** The models called in an hour: more in the afternoon. */
function conversations(
  hour: number,
  models: readonly string[],
): [user: string, model: string][] {
  const many = Array.from({ length: (hour % 7) + 1 }, (_, n): [string, string] => [
    ["ada", "bob", "charlie@example.com"][n % 3] ?? "ada",
    models[(n + hour) % 3] ?? "test-model",
  ]);
  return hour === 5 ? [] : many;
}

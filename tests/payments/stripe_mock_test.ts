import assert from "node:assert/strict";
import { parseAmount } from "../../src/base/money.ts";
import { Secret } from "../../src/base/secret.ts";
import { openStripe } from "../../src/payments/stripe.ts";
import { createWorld } from "../support/world.ts";

/** Stripe's own mock checks each call against Stripe's API description. */
const mock = Deno.env.get("STRIPE_MOCK") ?? "stripe-mock";

async function isThere(): Promise<boolean> {
  const command = new Deno.Command(mock, { args: ["-version"], stdout: "null", stderr: "null" });
  try {
    return (await command.output()).success;
  } catch {
    return false;
  }
}

Deno.test({
  name: "stripe: the sessions that we ask for are ones that Stripe's API describes",
  ignore: !(await isThere()),
  async fn() {
    const port = freePort();
    const child = new Deno.Command(mock, {
      args: ["-http-port", String(port)],
      stdout: "null",
      stderr: "null",
    }).spawn();
    try {
      using world = await createWorld();
      const project = await world.app.admin.change(
        world.projectId,
        ({ project }) => ({ project, events: [] }),
      );
      const redirected = (url: string, init: RequestInit) =>
        fetch(url.replace("https://api.stripe.com", `http://127.0.0.1:${port}`), init);
      const deps = { clock: world.clock, fetch: redirected };
      const account = await openStripe(deps, {
        secretKey: new Secret("sk_test_123"),
        webhookSecret: new Secret("whsec_123"),
      });
      const wallet = { personId: "per_1", currency: "usd", connectionId: "con_1" };
      for (
        const ref of [{ projectId: project.id, user: "ada" }, {
          projectId: "x",
          user: "ada",
          wallet,
        }]
      ) {
        const checkout = {
          project,
          ref,
          amount: parseAmount("12.5") ?? assert.fail(),
          formId: "form_1",
          backUrl: "https://farebox.test/topup/x",
        };
        const { id, url } = await untilUp(() => account.createCheckoutSession(checkout));
        assert.match(id, /^cs_/);
        assert.ok(url.startsWith("http"), url);
      }
    } finally {
      child.kill("SIGKILL");
      await child.status;
    }
  },
});

function freePort(): number {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return (listener.addr as Deno.NetAddr).port;
}

/** Retries until it listens. */
async function untilUp<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 0;; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (attempt === 50) throw error;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

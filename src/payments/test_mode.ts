import { isPrivateHost } from "../base/host.ts";
import type { Config } from "../config/config.ts";
import type { Project } from "../projects/schema.ts";
import { checkoutKindOf, merchantOf, type PaymentDeps } from "./merchant.ts";

/**
 * Whether a project's users pay in Stripe's test mode: no real money moves, and their balances are
 * real. False in development, where that is expected, and where the key cannot be decrypted.
 */
export async function takesTestMoney(
  services: Pick<PaymentDeps, "deps" | "secrets">,
  project: Project,
): Promise<boolean> {
  const { config } = services.deps;
  if (config.dev || checkoutKindOf(config, project) !== "stripe") return false;
  const merchant = await merchantOf(services, project).catch(() => null);
  return merchant?.account.isLive === false;
}

/** Whether Stripe can report payments to this server, by its URL. In development, tools forward. */
export function isReachedByStripe({ dev, baseUrl }: Pick<Config, "dev" | "baseUrl">): boolean {
  const { protocol, hostname } = new URL(baseUrl);
  return dev || (protocol === "https:" && !isPrivateHost(hostname));
}

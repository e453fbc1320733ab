import { projectKey } from "../store/keys.ts";
import type { Secrets } from "../store/secrets.ts";
import type { CreateProject, StripeKeys, Upstream } from "./schema.ts";

/** An upstream with its key sealed for this project's row. Throws 400 without `SECRETS_KEY`. */
export async function sealUpstream(
  secrets: Secrets,
  projectId: string,
  upstream: CreateProject["upstream"],
): Promise<Upstream | null> {
  if (!upstream) return null;
  const { apiKey, ...rest } = upstream;
  return { ...rest, apiKey: apiKey ? await secrets.seal(apiKey, projectKey(projectId)) : null };
}

/** A Stripe account's keys, sealed for this project's row. Throws 400 without `SECRETS_KEY`. */
export async function sealStripe(
  secrets: Secrets,
  projectId: string,
  keys: CreateProject["stripe"],
): Promise<StripeKeys | null> {
  if (!keys) return null;
  const place = projectKey(projectId);
  return {
    secretKey: await secrets.seal(keys.secretKey, place),
    webhookSecret: await secrets.seal(keys.webhookSecret, place),
  };
}

import { createSecrets } from "../../src/store/secrets.ts";
import { createSignedTokens } from "../../src/store/signed_tokens.ts";
import type { World } from "./world.ts";

const weekMs = 7 * 24 * 60 * 60 * 1000;

/** A top-up link's token that carries what it is for, as in a burst of links. */
export async function signedTopUpToken(world: World, user: string): Promise<string> {
  return await sign(world, "top-up links", [world.projectId, user, world.clock.now() + weekMs]);
}

/** The same of a link that asks for authorization. */
export async function signedAuthorizationToken(world: World, user: string): Promise<string> {
  const value = [world.projectId, user, world.deps.id("areq"), world.clock.now()];
  return await sign(world, "authorization links", value);
}

async function sign(world: World, purpose: string, value: unknown): Promise<string> {
  const { config: { secretsKeys }, randomBytes } = world.deps;
  const secrets = await createSecrets(secretsKeys, randomBytes);
  return await (await createSignedTokens(secrets, purpose)).make(value);
}

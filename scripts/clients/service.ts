import { makeFolder, serviceEnv, startFarebox } from "../../tests/support/process.ts";
import { adminKey } from "../../tests/support/world.ts";
import type { Place } from "./program.ts";
import { type Provider, type ProviderFormat, providerFormats, startProvider } from "./provider.ts";

/** A service in front of the scripted provider. */
export interface ClientsService extends AsyncDisposable {
  provider: Provider;
  /** A place for a new user, with a folder of its own. */
  placeFor(user: string): Promise<Place>;
  /** A place that calls the provider itself, without the service. */
  directPlace(user: string): Promise<Place>;
  /** Gives a user money by the admin API. */
  topUp(user: string): Promise<void>;
  /** Takes all of a user's money by the admin API. */
  drain(user: string): Promise<void>;
}

const price = { input: "1", output: "2", maxOutputTokens: 4_096, reasoning: false };

/** Starts a provider of these formats, and a service in a process of its own with one project. */
export async function startClientsService(
  formats: readonly ProviderFormat[] = providerFormats,
): Promise<ClientsService> {
  await using stack = new AsyncDisposableStack();
  const provider = stack.use(startProvider(formats));
  const folder = stack.use(await makeFolder());
  const env = { ...serviceEnv, UPSTREAM_URL: provider.url, UPSTREAM_API_KEY: provider.key };
  const service = stack.use(await startFarebox({ folder: folder.path, env }));
  const made = await service.json("/v1/admin/projects", {
    key: adminKey,
    body: { name: "Clients", pricing: { models: { "*": price } } },
  });
  const users = `/v1/admin/projects/${made.project.id}/users`;
  let places = 0;
  const placeAt = async (url: string, key: string, user: string): Promise<Place> => {
    const own = `${folder.path}/${user}-${++places}`;
    await Deno.mkdir(own);
    return { url, key, user, folder: own };
  };
  const move = async (kind: "deposit" | "charge", user: string, amount: string) => {
    const headers = { "idempotency-key": crypto.randomUUID() };
    await service.json(`${users}/${user}/${kind}`, { key: adminKey, body: { amount }, headers });
  };
  const running = stack.move();
  return {
    provider,
    placeFor: (user) => placeAt(service.url, made.apiKey, user),
    directPlace: (user) => placeAt(provider.url.replace(/\/v1$/, ""), provider.key, user),
    topUp: (user) => move("deposit", user, "5"),
    async drain(user) {
      const { user: found } = await service.json(`${users}/${user}`, { key: adminKey });
      await move("charge", user, found.balance);
    },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

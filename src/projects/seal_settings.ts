import { badRequest } from "../base/errors.ts";
import { projectKey } from "../store/keys.ts";
import type { Secrets } from "../store/secrets.ts";
import type { CreateProject, Project } from "./schema.ts";
import { sealOrKeep } from "./stored_secret.ts";
import type { StripeKeys } from "./stripe_schema.ts";
import { type UpstreamSettings, urlOf } from "./upstream_schema.ts";

type GivenUpstream = NonNullable<CreateProject["upstream"]>;

/** Encrypts the secrets of one project's settings, or keeps those that are stored. */
interface SettingsSealer {
  /** Throws 400 without `SECRETS_KEY`, and for a key that is kept but not stored for this host. */
  upstream(
    given: CreateProject["upstream"],
    before: UpstreamSettings | null,
  ): Promise<UpstreamSettings | null>;
  /**
   * Returns the named upstreams with their keys encrypted; a key that is left out stays as it was.
   */
  upstreams(
    given: CreateProject["upstreams"],
    before: Project["upstreams"],
  ): Promise<Record<string, UpstreamSettings>>;
  /** Throws 400 without `SECRETS_KEY`, and for a secret that is kept but not stored. */
  stripe(given: CreateProject["stripe"], before: StripeKeys | null): Promise<StripeKeys | null>;
}

/** Creates the sealer for a project's row. */
export function createSettingsSealer(secrets: Secrets, projectId: string): SettingsSealer {
  const place = projectKey(projectId);

  async function sealUpstream(
    { apiKey, ...rest }: GivenUpstream,
    { before, param }: { before: UpstreamSettings | null; param: string },
  ): Promise<UpstreamSettings> {
    if (!apiKey) return { ...rest, apiKey: null };
    const stored = before?.apiKey ?? null;
    if (typeof apiKey !== "string" && before && stored) requireSameHost(before, rest, param);
    return { ...rest, apiKey: await sealOrKeep(secrets, apiKey, { stored, place, param }) };
  }

  return {
    async upstream(given, before) {
      return given && await sealUpstream(given, { before, param: "upstream.apiKey" });
    },
    async upstreams(given, before = {}) {
      const sealed: [string, UpstreamSettings][] = [];
      for (const [name, upstream] of Object.entries(given)) {
        const kept = Object.hasOwn(before, name) ? before[name] ?? null : null;
        const param = `upstreams.${name}.apiKey`;
        sealed.push([name, await sealUpstream(upstream, { before: kept, param })]);
      }
      return Object.fromEntries(sealed);
    },
    async stripe(given, before) {
      if (!given) return null;
      const seal = (name: keyof StripeKeys) =>
        sealOrKeep(secrets, given[name], {
          stored: before?.[name] ?? null,
          place,
          param: `stripe.${name}`,
        });
      return { secretKey: await seal("secretKey"), webhookSecret: await seal("webhookSecret") };
    },
  };
}

/** The key of an upstream is only ever sent to the host that it was given for. */
function requireSameHost(
  before: UpstreamSettings,
  after: Omit<GivenUpstream, "apiKey">,
  param: string,
): void {
  if (isSameHost(before, after)) return;
  const { origin } = new URL(urlOf(before));
  throw badRequest(
    param,
    `'${param}' is stored for ${origin} alone: send the key of the new host.`,
  );
}

/** Whether two upstreams are at one origin. */
export function isSameHost(
  one: Pick<UpstreamSettings, "url" | "provider">,
  other: Pick<UpstreamSettings, "url" | "provider">,
): boolean {
  return new URL(urlOf(one)).origin === new URL(urlOf(other)).origin;
}

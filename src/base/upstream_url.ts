import { endpoints } from "./endpoints.ts";

/** Longer paths first: one may be the end of another. */
const paths = [...Object.values(endpoints).map(({ path }) => path), "/models"]
  .sort((a, b) => b.length - a.length);

/**
 * The base URL that is meant by an upstream's URL with the path of an endpoint at its end, such as
 * `/chat/completions`; null where it has none. Never the base of a URL with credentials, a query or
 * a fragment.
 */
export function baseOfEndpointUrl(url: string): string | null {
  const trimmed = url.replace(/\/+$/, "");
  if (/[?#@]/.test(trimmed)) return null;
  const lower = trimmed.toLowerCase();
  const path = paths.find((path) => lower.endsWith(path));
  if (path === undefined) return null;
  // Azure's addresses of deployments are made of its host.
  const base = trimmed.slice(0, -path.length).replace(/(\/openai\/deployments\/[^/]+)?\/*$/, "");
  return URL.canParse(base) && base.includes("://") ? base : null;
}

/** Checks an upstream's URL in a schema: `schema.refine(...withoutEndpoint)`. */
export const withoutEndpoint = [
  (url: string) => baseOfEndpointUrl(url) === null,
  {
    error: ({ input }: { input?: unknown }) =>
      `must not end with the path of an endpoint: write '${baseOfEndpointUrl(String(input))}'`,
  },
] as const;

import type { ModelEndpoint } from "../base/endpoints.ts";
import type { Upstream } from "./upstream.ts";

/** An endpoint below an upstream's base URL. Its path may have a query. */
export type EndpointAt = Pick<ModelEndpoint, "path" | "ofDeployments">;

/** Whether a version is one of Azure's dated API. Its v1 API has none, or `preview`. */
export function isDated(apiVersion: string | null | undefined): boolean {
  return /^\d{4}-/.test(apiVersion ?? "");
}

/**
 * The URL of an endpoint. With an `apiVersion`, in the form of Azure's APIs:
 * https://learn.microsoft.com/azure/ai-services/openai/reference
 */
export function endpointUrl(
  { url, apiVersion }: Pick<Upstream, "url" | "apiVersion">,
  { path, ofDeployments }: EndpointAt,
  model: string | null,
): string {
  if (apiVersion === null) return url + path;
  const deployment = model !== null && isDated(apiVersion) && ofDeployments
    ? `/deployments/${encodeURIComponent(model)}`
    : "";
  const separator = path.includes("?") ? "&" : "?";
  return `${url}${deployment}${path}${separator}api-version=${encodeURIComponent(apiVersion)}`;
}

/** The headers of every request to an upstream: the owner's, then its key. */
export function upstreamHeaders(
  { headers, keyHeader, apiKey }: Pick<Upstream, "headers" | "keyHeader" | "apiKey">,
): Record<string, string> {
  if (!apiKey) return { ...headers };
  const key = apiKey.reveal();
  return { ...headers, [keyHeader]: keyHeader === "authorization" ? `Bearer ${key}` : key };
}

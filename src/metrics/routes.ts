import { ApiError } from "../base/errors.ts";
import type { Secret } from "../base/secret.ts";
import type { Handler } from "../base/handler.ts";
import type { Deps } from "../deps.ts";
import { addGauges, type GaugeReadings } from "./gauges.ts";

/** `GET /metrics` for Prometheus. It needs `METRICS_TOKEN`; 404 where none is set. */
export function metricsRoutes(deps: Deps, readings: GaugeReadings): { metrics: Handler } {
  const { config: { metricsToken }, metrics: { page } } = deps;
  addGauges(deps, readings);
  return {
    async metrics({ request, requestId }) {
      if (!metricsToken) {
        throw new ApiError(404, {
          message: "The metrics are disabled. Set METRICS_TOKEN to enable them.",
          code: "unknown_url",
        });
      }
      requireToken(request, metricsToken);
      const headers = { "content-type": page.contentType, "x-request-id": requestId };
      return new Response(await page.text(), { headers });
    },
  };
}

function requireToken(request: Request, token: Secret): void {
  const given = /^Bearer (.+)$/i.exec(request.headers.get("authorization") ?? "")?.[1];
  if (given !== undefined && token.is(given)) return;
  throw new ApiError(401, {
    message: "The metrics need the header 'Authorization: Bearer METRICS_TOKEN'.",
    code: "invalid_api_key",
    headers: { "www-authenticate": "Bearer" },
  });
}

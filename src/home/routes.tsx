/** @jsxImportSource @hono/hono/jsx */
import type { Handler } from "../base/handler.ts";
import { publicPath } from "../config.ts";
import type { Deps } from "../deps.ts";
import { pageResponse } from "../pages/response.tsx";
import { LandingPage } from "./landing_page.tsx";
import { StartPage } from "./start_page.tsx";

/**
 * The handler of `/`: the first steps in development; in production what this server is for, or a
 * redirect to `HOME_URL`.
 */
export function homeRoutes({ config }: Pick<Deps, "config">): { home: Handler } {
  const base = publicPath(config, "");
  const { dev, homeUrl } = config;
  return {
    home({ request, requestId }) {
      if (dev) {
        // The port may have been chosen at the start.
        const page = <StartPage url={`${new URL(request.url).origin}${base}`} base={base} />;
        return pageResponse(200, String(page), { requestId });
      }
      if (homeUrl !== null) return redirect(homeUrl, requestId);
      return pageResponse(200, String(<LandingPage base={base} />), { requestId });
    },
  };
}

function redirect(location: string, requestId: string): Response {
  const headers = { location, "x-request-id": requestId, "cache-control": "no-store" };
  return new Response(null, { status: 302, headers });
}

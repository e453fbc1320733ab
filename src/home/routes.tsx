/** @jsxImportSource @hono/hono/jsx */
import type { Handler } from "../base/handler.ts";
import { publicPath } from "../config/config.ts";
import type { Deps } from "../deps.ts";
import { pageResponse, seeOther } from "../pages/response.tsx";
import { devApiKey } from "../base/dev_keys.ts";
import { devProjectId } from "../projects/auth.ts";
import { PlainHomePage, StartPage } from "./home_page.tsx";

/**
 * `/`: a start page in development; in production a redirect to `HOME_URL`, or a plain page where
 * it is not set.
 */
export function homeRoutes({ config }: Pick<Deps, "config">): { home: Handler } {
  const base = publicPath(config, "");
  return {
    home: ({ requestId }) => {
      if (config.homeUrl !== null && !config.dev) return seeOther(config.homeUrl, requestId);
      const { baseUrl } = config;
      const page = config.dev
        ? <StartPage {...{ base, baseUrl }} apiKey={devApiKey} projectId={devProjectId} />
        : <PlainHomePage base={base} />;
      return pageResponse(200, String(page), { requestId });
    },
  };
}

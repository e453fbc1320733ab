/** @jsxImportSource @hono/hono/jsx */
import { ApiError } from "./base/errors.ts";
import type { Handler } from "./base/handler.ts";
import { type Config, publicPath } from "./config/config.ts";
import { errorPage } from "./console/guard.tsx";
import { Page } from "./pages/page.tsx";
import { pageResponse } from "./pages/response.tsx";

/**
 * Handles unknown paths: browsers get a page, programs the error body, as everyone does under
 * `/v1`.
 */
export function createNotFound(config: Pick<Config, "baseUrl">): (refuse: Handler) => Handler {
  const at = (path: string) => publicPath(config, path);
  return (refuse) => async (incoming) => {
    try {
      return await refuse(incoming);
    } catch (error) {
      const { request, requestId, path } = incoming;
      const accepted = request.headers.get("accept") ?? "";
      const isForPeople = accepted.includes("text/html") && !/^\/v1(\/|$)/.test(path);
      if (!(error instanceof ApiError) || !isForPeople) throw error;
      const { status, headers } = error;
      const message = status === 404 ? "Check the link for typos." : "This page is not available.";
      if (/^\/console(\/|$)/.test(path)) {
        const error = new ApiError(status, { message, headers });
        return errorPage(error, { requestId, base: at("") });
      }
      const html = <LostPage says={message} base={at("")} />;
      return pageResponse(status, String(html), { requestId, headers });
    }
  };
}

/** The page of an unknown path, which leads owners and developers on. */
function LostPage(
  { says, base }: { says: string; base: string },
) {
  const title = "Page not found";
  return (
    <Page title={title} base={base}>
      <div class="card">
        <h1>{title}</h1>
        <p>{says}</p>
        <p>
          Owners sign in at <a href={`${base}/console`}>the console</a>. The API is described in
          {" "}
          <a href={`${base}/docs`}>the reference</a>.
        </p>
      </div>
    </Page>
  );
}

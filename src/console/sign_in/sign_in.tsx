/** @jsxImportSource @hono/hono/jsx */
import { ApiError } from "../../base/errors.ts";
import type { Handler, Incoming } from "../../base/handler.ts";
import { publicPath } from "../../config/config.ts";
import { readForm, requireSameOrigin } from "../../pages/form.ts";
import { pageResponse, seeOther } from "../../pages/response.tsx";
import { byUnknown } from "../../projects/refused_keys.ts";
import { createSignInThrottle } from "./sign_in_throttle.ts";
import { errorPage } from "../guard.tsx";
import { flashText, withFlash } from "../flash.ts";
import { FormError, FormField, Hidden } from "../../pages/form_parts.tsx";
import { BarePage } from "../frame.tsx";
import type { ConsoleDeps } from "../console_deps.ts";

/** Signing in to the console, and out of it. */
export function signInRoutes({ deps, sessions, fleet, refusedKeys }: ConsoleDeps) {
  const attempts = createSignInThrottle(deps.clock);
  fleet.join("sign_in", attempts.part);
  const at = (path: string) => publicPath(deps.config, `/console${path}`);

  function page(incoming: Incoming, problem: ApiError | null, to: string): Response {
    const { requestId, query } = incoming;
    const base = publicPath(deps.config, "");
    const view = { action: at("/sign-in"), base, to, problem: problem?.message ?? null };
    const html = <SignInPage {...view} said={flashText(query("flash"))} />;
    const response = pageResponse(problem?.status ?? 200, String(html), { requestId });
    for (const [name, value] of Object.entries(problem?.headers ?? {})) {
      // The browser would show its own password prompt.
      if (name !== "www-authenticate") response.headers.set(name, value);
    }
    return response;
  }

  const show: Handler = (incoming) => page(incoming, null, incoming.query("to") ?? "");

  const signIn: Handler = async (incoming) => {
    const { request, requestId, inTime, address } = incoming;
    let to = "";
    try {
      const form = await inTime(readForm(request, deps.config));
      to = form.get("to") ?? "";
      const started = sessions.start(request, (form.get("key") ?? "").trim(), address());
      const { cookie, projectId } = await started.catch(async (problem) => {
        throw await counted(problem, address());
      });
      const home = projectId === null ? "/projects" : `/projects/${projectId}`;
      return seeOther(placeOf(to) ?? at(home), requestId, [cookie]);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      return page(incoming, error, to);
    }
  };

  /**
   * Counts a failed attempt. A right key is never counted, nor refused for others' attempts: behind
   * a proxy all have one address.
   */
  async function counted(problem: unknown, address: string | null): Promise<unknown> {
    if (!(problem instanceof ApiError) || problem.status >= 500) return problem;
    const by = byUnknown("console", address);
    await refusedKeys.note({ action: "console.sign_in_refused", by, projectId: null });
    const waitMs = attempts.take(address);
    return waitMs > 0 ? tooMany(waitMs) : problem;
  }

  /** Accepts only a path of the console: a link must not redirect elsewhere after the sign-in. */
  function placeOf(to: string): string | null {
    const isOurs = /^\/console(?!\/sign-)(\/[\w-]+)+(\?[\w.~%!*'()&=+-]*)?$/.test(to);
    return isOurs ? publicPath(deps.config, to) : null;
  }

  const signOut: Handler = async ({ request, requestId }) => {
    try {
      requireSameOrigin(request, deps.config);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      return errorPage(error, { requestId, base: publicPath(deps.config, "") });
    }
    const session = await sessions.of(request);
    if (session) await sessions.end(session);
    return seeOther(withFlash(at("/sign-in"), "signed-out"), requestId, [sessions.forgotten]);
  };

  return { show, signIn, signOut };
}

function tooMany(waitMs: number): ApiError {
  const seconds = Math.ceil(waitMs / 1000);
  return new ApiError(429, {
    message: `Too many attempts to sign in. Try again in ${seconds} seconds.`,
    type: "rate_limit_error",
    code: "rate_limited",
    headers: { "retry-after": String(seconds) },
  });
}

function SignInPage({ action, base, to, problem, said }: {
  action: string;
  base: string;
  to: string;
  problem: string | null;
  said: string | null;
}) {
  return (
    <BarePage title="Sign in" base={base}>
      <h1>Sign in</h1>
      {said === null ? null : <p class="flash" role="status">{said}</p>}
      <FormError text={problem} />
      <form method="post" action={action}>
        <Hidden fields={{ to }} />
        <FormField
          name="key"
          label="Key"
          type="password"
          required
          hint="Owners: an API key with the scope owner. Operators: ADMIN_KEY, for all projects."
          more={{ autocomplete: "current-password", autofocus: "" }}
        />
        <button type="submit" class="primary wide">Sign in</button>
      </form>
      <p class="muted small">
        You stay signed in for 12 hours, until you do nothing for one hour, or until the key is
        revoked.
      </p>
    </BarePage>
  );
}

/** @jsxImportSource @hono/hono/jsx */
import type { Child } from "@hono/hono/jsx";
import { ApiError, notFound } from "../base/errors.ts";
import type { Handler, Incoming } from "../base/handler.ts";
import { publicPath } from "../config.ts";
import { readForm, requireSameOrigin } from "../pages/form.ts";
import { pageResponse, seeOther } from "../pages/response.tsx";
import { fromAddress } from "../projects/audit.ts";
import { checkId } from "../projects/admin_guard.ts";
import type { Project } from "../projects/schema.ts";
import { type Flash, withFlash } from "./flash.ts";
import { BarePage, ConsolePage, type NavItem } from "./frame.tsx";
import type { ConsoleDeps } from "./console_deps.ts";
import type { ConsoleSession } from "./session.ts";

/** A request of a signed-in visitor. */
export interface ConsoleVisit {
  incoming: Incoming;
  session: ConsoleSession;
  /** Returns the URL of a page of the console. */
  at(path: string): string;
  /** Returns the submitted form's fields. Throws 413 when it is too large. */
  form(): Promise<URLSearchParams>;
  /** Responds with a page in the frame. */
  page(title: string, children: unknown, options?: PageOptions): Response;
  /** Redirects to a page of the console, which shows a message. */
  go(address: string, flash: Flash): Response;
}

/** The same, on the pages of a project. */
export interface ProjectVisit extends ConsoleVisit {
  project: Project;
  /** Returns the URL of a page of the project. */
  here(path: string): string;
}

interface PageOptions {
  /** The section that it belongs to in the navigation. */
  section?: string;
  /** The title as it is shown on the page, where it contains a name that someone has chosen. */
  heading?: Child;
  /** A sentence below the title. */
  note?: Child;
  /** What can be done on the page, beside its title. */
  actions?: Child;
  /** The error of the submitted form, which the page shows. */
  problem?: string | null;
  status?: number;
}

/** Admits signed-in visitors; others are redirected to the sign-in. */
export interface ConsoleGuard {
  /** For anyone who is signed in. */
  signedIn(answer: (visit: ConsoleVisit) => Promise<Response> | Response): Handler;
  /** For visitors who may see the project in the URL; for others the page does not exist. */
  project(answer: (visit: ProjectVisit) => Promise<Response> | Response): Handler;
}

/** The prices of as many models as the page shows, with long names. */
const formBytesMax = 512 * 1024;

/** Creates the guard of the console. */
export function createConsoleGuard({ deps, projectCache, sessions }: ConsoleDeps): ConsoleGuard {
  const at = (path: string) => publicPath(deps.config, `/console${path}`);

  function visitOf(
    incoming: Incoming,
    session: ConsoleSession,
    project: Project | null,
  ): ConsoleVisit {
    const { request, requestId, inTime, bodies } = incoming;
    const isOperator = session.projectId === null;
    return {
      incoming,
      session,
      at,
      form: () => inTime(readForm(request, deps.config, { bytesMax: formBytesMax, bodies })),
      page(title, children, { section, heading, note, actions, problem = null, status } = {}) {
        const flash = incoming.query("flash");
        const base = publicPath(deps.config, "");
        const place: NavItem = { at, base, isOperator, project, section: section ?? null, flash };
        const page = <ConsolePage {...{ title, heading, note, actions, place, children }} />;
        return pageResponse(status ?? (problem === null ? 200 : 400), String(page), { requestId });
      },
      go: (address, flash) => seeOther(withFlash(address, flash), requestId),
    };
  }

  async function open(
    incoming: Incoming,
    answer: (session: ConsoleSession) => Promise<Response> | Response,
  ): Promise<Response> {
    const { request, requestId } = incoming;
    const onlyReads = request.method === "GET" || request.method === "HEAD";
    try {
      if (!onlyReads) requireSameOrigin(request, deps.config);
      const session = await sessions.of(request);
      if (session) {
        const by = fromAddress(session.by, incoming.address());
        return await answer({ ...session, by });
      }
      if (!onlyReads) {
        return seeOther(withFlash(at("/sign-in"), "session-ended"), requestId);
      }
      const to = encodeURIComponent(incoming.path + new URL(request.url).search);
      return seeOther(at(`/sign-in?to=${to}`), requestId);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      return errorPage(error, { requestId, base: publicPath(deps.config, "") });
    }
  }

  return {
    signedIn: (answer) => (incoming) =>
      open(incoming, (session) => answer(visitOf(incoming, session, null))),
    project: (answer) => (incoming) =>
      open(incoming, async (session) => {
        const id = checkId(incoming.param("projectId"), "project");
        if (session.projectId !== null && session.projectId !== id) throw notFound("project");
        const { project } = await projectCache.refresh(id);
        const here = (path: string) => at(`/projects/${id}${path}`);
        return await answer({ ...visitOf(incoming, session, project), project, here });
      }),
  };
}

/** Throws 404 for an owner: the page is the operator's. */
export function requireOperator({ session }: ConsoleVisit): void {
  if (session.projectId !== null) throw notFound("page");
}

/** Shows an error as a page of its own. */
export function errorPage(
  { status, message, headers }: ApiError,
  { requestId, base }: { requestId: string; base: string },
): Response {
  const title = status === 404 ? "Page not found" : "Something went wrong";
  const page = (
    <BarePage title={title} base={base}>
      <h1>{title}</h1>
      <p>{message}</p>
      <p>
        <a href={`${base}/console`}>Back to the console</a>
      </p>
    </BarePage>
  );
  return pageResponse(status, String(page), { requestId, headers });
}

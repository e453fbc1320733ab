/** @jsxImportSource @hono/hono/jsx */
import type { Child } from "@hono/hono/jsx";
import { ApiError, notFound } from "../base/errors.ts";
import { readFormBody } from "../base/form_body.ts";
import type { Incoming } from "../base/handler.ts";
import { type Config, publicPath } from "../config/config.ts";
import { readForm, requireSameOrigin } from "../pages/form.ts";
import { pageResponse, seeOther } from "../pages/response.tsx";
import { fromAddress, recordAction } from "../projects/audit.ts";
import { checkId } from "../projects/admin_guard.ts";
import { takesTestMoney } from "../payments/test_mode.ts";
import type { Project } from "../projects/schema.ts";
import { type Flash, withFlash } from "./flash.ts";
import { BarePage, ConsolePage, type NavItem } from "./frame.tsx";
import type { ConsoleDeps } from "./console_deps.ts";
import type { ConsoleSession } from "./sign_in/session.ts";

/** A request of a signed-in visitor. */
export interface ConsoleVisit {
  incoming: Incoming;
  session: ConsoleSession;
  /** Returns the URL of a page of the console. */
  at(path: string): string;
  /**
   * Returns the submitted form's fields, a file as its text. Throws 400, and 413 when it is too
   * large.
   */
  form(): Promise<URLSearchParams>;
  /** Responds with a page in the frame. */
  page(title: string, children: unknown, options?: PageOptions): Response;
  /** Redirects to a page of the console, which shows a message. */
  go(address: string, flash: Flash): Response;
}

/** A request of a signed-in visitor for a page of a project. */
export interface ProjectVisit extends ConsoleVisit {
  project: Project;
  /** Whether its users pay in Stripe's test mode, outside development. */
  isTest: boolean;
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

/**
 * Asks for the key again, for what a browser that was left open, or a stolen cookie, must not
 * suffice for. Null when the key was entered within the last minutes, or comes with this form, from
 * which it is then removed. Else the response is a page that sends the same form with the key.
 */
export type AskForKey = (visit: ConsoleVisit, form: URLSearchParams) => Promise<Response | null>;

/** What a request for a page needs besides a session. */
export interface PageRule {
  /**
   * Whether the key must have been entered within the last minutes. By default, every form that is
   * posted needs it, and no page that is read.
   */
  freshKey?: boolean;
  /** How large a posted form may be. */
  formBytesMax?: number;
  /** What the answer is a file of: the audit trail records who downloaded it. */
  download?: string;
}

/** Answers requests for a page, of those who may see it. */
export type GuardedHandler = (incoming: Incoming, rule?: PageRule) => Promise<Response>;

/** Admits signed-in visitors; others are redirected to the sign-in. */
export interface ConsoleGuard {
  /** For anyone who is signed in. */
  signedIn(answer: (visit: ConsoleVisit) => Promise<Response> | Response): GuardedHandler;
  /** For visitors who may see the project in the URL; for others the page does not exist. */
  project(answer: (visit: ProjectVisit) => Promise<Response> | Response): GuardedHandler;
}

/** The prices of as many models as the page shows, with long names. */
const usualFormBytesMax = 512 * 1024;

/** Creates the guard of the console. */
export function createConsoleGuard(
  services: ConsoleDeps,
  askForKey: AskForKey,
): ConsoleGuard {
  const { deps, projectCache, sessions } = services;
  const at = (path: string) => publicPath(deps.config, `/console${path}`);

  function visitOf(
    incoming: Incoming,
    session: ConsoleSession,
    { project, isTest, bytesMax }: {
      project: Project | null;
      isTest: boolean;
      bytesMax: number | undefined;
    },
  ): ConsoleVisit {
    const { requestId, inTime } = incoming;
    const isOperator = session.projectId === null;
    let read: Promise<URLSearchParams> | null = null;
    return {
      incoming,
      session,
      at,
      form: () => read ??= inTime(readAnyForm(incoming, deps.config, bytesMax)),
      page(title, children, { section, heading, note, actions, problem = null, status } = {}) {
        const flash = incoming.query("flash");
        const base = publicPath(deps.config, "");
        const shown = { project, isTest, section: section ?? null, flash };
        const place: NavItem = { at, base, isOperator, ...shown };
        const page = <ConsolePage {...{ title, heading, note, actions, place, children }} />;
        return pageResponse(status ?? (problem === null ? 200 : 400), String(page), { requestId });
      },
      go: (address, flash) => seeOther(withFlash(address, flash), requestId),
    };
  }

  /** Asks for the key before the answer, where the rule requires it. */
  async function admit<Visit extends ConsoleVisit>(
    visit: Visit,
    { freshKey = !onlyReads(visit.incoming), download }: PageRule,
    answer: (visit: Visit) => Promise<Response> | Response,
  ): Promise<Response> {
    if (freshKey) {
      const form = onlyReads(visit.incoming) ? new URLSearchParams() : await visit.form();
      const asked = await askForKey(visit, form);
      if (asked) return asked;
    }
    const answered = await answer(visit);
    if (download !== undefined && answered.ok) await recordDownload(visit, download);
    return answered;
  }

  async function recordDownload(
    { session: { by }, incoming, project }: ConsoleVisit & { project?: Project },
    target: string,
  ): Promise<void> {
    // Their values may name a user.
    const filters = [...new Set(new URL(incoming.request.url).searchParams.keys())];
    const detail = filters.length === 0
      ? {}
      : { filters: filters.map((name) => name.slice(0, 64)) };
    const auditAction = { by, action: "data.exported" as const, target, detail };
    await recordAction(deps, project?.id ?? null, auditAction);
  }

  async function open(
    incoming: Incoming,
    answer: (session: ConsoleSession) => Promise<Response> | Response,
  ): Promise<Response> {
    const { request, requestId } = incoming;
    try {
      if (!onlyReads(incoming)) requireSameOrigin(request, deps.config);
      const session = await sessions.of(request);
      if (session) {
        const by = fromAddress(session.by, incoming.address());
        return await answer({ ...session, by });
      }
      if (!onlyReads(incoming)) {
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
    signedIn: (answer) => (incoming, rule = {}) =>
      open(incoming, (session) => {
        const about = { project: null, isTest: false, bytesMax: rule.formBytesMax };
        return admit(visitOf(incoming, session, about), rule, answer);
      }),
    project: (answer) => (incoming, rule = {}) =>
      open(incoming, async (session) => {
        const id = checkId(incoming.param("projectId"), "project");
        if (session.projectId !== null && session.projectId !== id) throw notFound("project");
        const { project } = await projectCache.refresh(id);
        const here = (path: string) => at(`/projects/${id}${path}`);
        const isTest = await takesTestMoney(services, project);
        const about = { project, isTest, bytesMax: rule.formBytesMax };
        const visit = { ...visitOf(incoming, session, about), project, isTest, here };
        return await admit(visit, rule, answer);
      }),
  };
}

function onlyReads({ request: { method } }: Incoming): boolean {
  return method === "GET" || method === "HEAD";
}

/** Whether a form is sent in parts, as one with a file is. */
export function isMultipart({ headers }: Request): boolean {
  return (headers.get("content-type") ?? "").toLowerCase().startsWith("multipart/form-data");
}

/** Reads a form however the browser encodes it. Throws 403 when another site sent it, 400, 413. */
async function readAnyForm(
  { request, bodies }: Incoming,
  site: Pick<Config, "baseUrl">,
  bytesMax = usualFormBytesMax,
): Promise<URLSearchParams> {
  if (!isMultipart(request)) return await readForm(request, site, { bytesMax, bodies });
  requireSameOrigin(request, site);
  const { value, file } = await readFormBody(request, bytesMax, bodies);
  const fields = Object.entries(value).map(([name, text]) => [name, String(text)]);
  const files = file ? [["file", new TextDecoder().decode(file.bytes)]] : [];
  return new URLSearchParams([...fields, ...files]);
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

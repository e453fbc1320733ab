/** @jsxImportSource @hono/hono/jsx */
import { notFound } from "../base/errors.ts";
import type { Handler } from "../base/handler.ts";
import { listProjectsToReseal } from "../projects/reseal.ts";
import { checkId } from "../projects/admin_guard.ts";
import { seeOther } from "../pages/response.tsx";
import type { ConsoleGuard } from "./guard.tsx";
import { Badge, Pager, Table, TimeCell } from "../pages/parts.tsx";
import { listUnbooked } from "../payments/unbooked.ts";
import { UnbookedPayments } from "./unbooked.tsx";
import type { ConsoleDeps } from "./console_deps.ts";

/** `/console`: redirects an owner to the project, an operator to the list of projects. */
export function consoleHome(guard: ConsoleGuard): Handler {
  return guard.signedIn(({ session, at, incoming }) => {
    const { projectId } = session;
    const path = projectId === null ? "/projects" : `/projects/${projectId}`;
    return seeOther(at(path), incoming.requestId);
  });
}

/** All projects, for the operator. */
export function projectsPage(guard: ConsoleGuard, { deps }: ConsoleDeps): Handler {
  return guard.signedIn(async ({ session, at, incoming, page }) => {
    if (session.projectId !== null) throw notFound("page");
    const cursor = incoming.query("cursor");
    const from = cursor === undefined ? undefined : checkId(cursor, "project");
    const { projects, nextCursor } = await listProjectsToReseal(deps.kv, from);
    const unbooked = await listUnbooked(deps.kv, "instance");
    return page(
      "Projects",
      <>
        <UnbookedPayments payments={unbooked} />
        <Table
          caption="In order of creation"
          columns={["Name", "State", "Currency", "Mode", "Owner", "Created"]}
          rows={projects.map(({ id, name, status, currency, mode, ownerUserId, createdAt }) => [
            <a href={at(`/projects/${id}`)}>
              <bdi>{name}</bdi>
            </a>,
            <Badge tone={status === "active" ? "good" : "late"}>{status}</Badge>,
            currency.toUpperCase(),
            mode,
            ownerUserId,
            <TimeCell at={createdAt} />,
          ])}
          empty="No projects yet."
        />
        <Pager
          older={nextCursor === null ? null : at(`/projects?cursor=${nextCursor}`)}
          newest={cursor === undefined ? null : at("/projects")}
        />
      </>,
      {
        actions: (
          <>
            <a class="button" href={at("/audit")}>Audit trail of the instance</a>
            <a class="button primary" href={at("/projects/new")}>New project</a>
          </>
        ),
      },
    );
  });
}

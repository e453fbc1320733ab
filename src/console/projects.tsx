/** @jsxImportSource @hono/hono/jsx */
import { decodeAlerts } from "../alerts/alert.ts";
import { notFound } from "../base/errors.ts";
import type { Deps } from "../deps.ts";
import { checkoutKindOf } from "../payments/merchant.ts";
import type { Project } from "../projects/schema.ts";
import { alertsKey } from "../store/keys.ts";
import { readSummary } from "../summaries/summary.ts";
import type { Handler } from "../base/handler.ts";
import { searchProjects } from "../projects/search.ts";
import { checkId } from "../projects/admin_guard.ts";
import { FormField } from "../pages/form_parts.tsx";
import { seeOther } from "../pages/response.tsx";
import type { ConsoleGuard } from "./guard.tsx";
import { Badge, MoneyCell, Pager, Table, TimeCell } from "../pages/parts.tsx";
import { listUnbooked } from "../payments/unbooked.ts";
import { readUnverified } from "../payments/unverified.ts";
import { UnbookedPayments } from "./money/unbooked.tsx";
import { UnverifiedNote } from "./money/unverified.tsx";
import type { ConsoleDeps } from "./console_deps.ts";

/** `/console`: redirects an owner to the project, an operator to the list of projects. */
export function consoleHome(guard: ConsoleGuard): Handler {
  return guard.signedIn(({ session, at, incoming }) => {
    const { projectId } = session;
    const path = projectId === null ? "/projects" : `/projects/${projectId}`;
    return seeOther(at(path), incoming.requestId);
  });
}

const dayMs = 24 * 60 * 60 * 1000;
const perPage = 20;

/** What a project did in the last 24 hours, and how many of its alerts fire. */
async function dayOf({ kv, clock }: Pick<Deps, "kv" | "clock">, project: Project) {
  const now = clock.now();
  const [{ totals }, { value }] = await Promise.all([
    readSummary(kv, project.id, { from: now - dayMs, to: now + 1 }),
    kv.get(alertsKey(project.id)),
  ]);
  const firing = decodeAlerts(value).alerts.filter(({ resolvedAt }) => resolvedAt === null).length;
  return { project, totals, firing };
}

function ProjectHealth({ project, firing, config }: {
  project: Project;
  firing: number;
  config: Deps["config"];
}) {
  if (project.status !== "active") return <Badge tone="late">archived</Badge>;
  if (firing > 0) return <Badge tone="bad">{firing === 1 ? "1 alert" : `${firing} alerts`}</Badge>;
  const isPayable = project.topUpUrl !== null || checkoutKindOf(config, project) !== "none";
  return isPayable
    ? <Badge tone="good">healthy</Badge>
    : <Badge tone="bad">users cannot pay</Badge>;
}

/** All projects, for the operator. */
export function projectsPage(guard: ConsoleGuard, { deps }: ConsoleDeps): Handler {
  return guard.signedIn(async ({ session, at, incoming, page }) => {
    if (session.projectId !== null) throw notFound("page");
    const cursor = incoming.query("cursor");
    const from = cursor === undefined ? undefined : checkId(cursor, "project");
    const name = incoming.query("name")?.trim() ?? "";
    const search = { name, cursor: from, limit: perPage };
    const { projects, nextCursor } = await searchProjects(deps.kv, search);
    const query = name === "" ? "" : `${new URLSearchParams({ name })}&`;
    const unbooked = await listUnbooked(deps.kv, "instance");
    const unverified = await readUnverified(deps.kv, "instance");
    const days = await Promise.all(projects.map((project) => dayOf(deps, project)));
    return page(
      "Projects",
      <>
        <UnbookedPayments payments={unbooked} />
        <UnverifiedNote events={unverified} now={deps.clock.now()} />
        <form method="get" action={at("/projects")} role="search" class="actions end">
          <FormField name="name" label="Find by name" type="search" value={name} />
          <button type="submit">Search</button>
        </form>
        <Table
          caption="In order of creation; figures of the last 24 hours"
          columns={[
            { title: "Name", lead: true },
            "Health",
            { title: "Requests", number: true },
            { title: "Failed", number: true },
            { title: "Revenue", number: true },
            { title: "Margin", number: true },
            "Owner",
            "Created",
          ]}
          rows={days.map(({ project, totals, firing }) => [
            <>
              <a href={at(`/projects/${project.id}`)}>
                <bdi>{project.name}</bdi>
              </a>
              {project.mode === "shared" ? <Badge>shared wallets</Badge> : null}
            </>,
            <ProjectHealth {...{ project, firing, config: deps.config }} />,
            totals.requests.toLocaleString("en-US"),
            totals.failed.toLocaleString("en-US"),
            <MoneyCell
              amount={totals.revenue}
              currency={project.currency}
            />,
            totals.upstreamCost > 0n
              ? <MoneyCell amount={totals.margin} currency={project.currency} />
              : "–",
            project.ownerUserId,
            <TimeCell at={project.createdAt} />,
          ])}
          empty={name === "" ? "No projects yet." : "No project has such a name."}
        />
        <Pager
          older={nextCursor === null ? null : at(`/projects?${query}cursor=${nextCursor}`)}
          newest={cursor === undefined ? null : at(`/projects?${query}`)}
        />
      </>,
      {
        actions: <InstanceLinks at={at} />,
      },
    );
  });
}

/** The pages of the whole instance. */
function InstanceLinks({ at }: { at(path: string): string }) {
  return (
    <>
      <a class="button" href={at("/catalogue")}>Price catalogue</a>
      <a class="button" href={at("/wallets")}>Wallets</a>
      <a class="button" href={at("/audit")}>Audit trail of the instance</a>
      <a class="button primary" href={at("/projects/new")}>New project</a>
    </>
  );
}

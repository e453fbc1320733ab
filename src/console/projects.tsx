/** @jsxImportSource @hono/hono/jsx */
import { notFound } from "../base/errors.ts";
import type { Handler } from "../base/handler.ts";
import { pageOfProjects } from "../projects/reseal.ts";
import { checkId } from "../projects/operator.ts";
import { seeOther } from "../pages/response.tsx";
import type { Door } from "./door.tsx";
import { Moment, Pager, Table, Tag } from "./parts.tsx";
import type { ConsoleRooms } from "./rooms.ts";

/** `/console`: leads an owner to the project, an operator to all of them. */
export function home(door: Door): Handler {
  return door.signedIn(({ session, at, incoming }) => {
    const { projectId } = session;
    const path = projectId === null ? "/projects" : `/projects/${projectId}`;
    return seeOther(at(path), incoming.requestId);
  });
}

/** All projects, for the operator. */
export function projectsPage(door: Door, { deps }: ConsoleRooms): Handler {
  return door.signedIn(async ({ session, at, incoming, page }) => {
    if (session.projectId !== null) throw notFound("page");
    const cursor = incoming.query("cursor");
    const from = cursor === undefined ? undefined : checkId(cursor, "project");
    const { projects, nextCursor } = await pageOfProjects(deps.kv, from);
    return page(
      "Projects",
      <>
        <Table
          caption="In order of creation"
          columns={["Name", "State", "Currency", "Mode", "Owner", "Created"]}
          rows={projects.map(({ id, name, status, currency, mode, ownerUserId, createdAt }) => [
            <a href={at(`/projects/${id}`)}>{name}</a>,
            <Tag tone={status === "active" ? "good" : "late"}>{status}</Tag>,
            currency.toUpperCase(),
            mode,
            ownerUserId,
            <Moment at={createdAt} />,
          ])}
          empty="There is no project yet."
        />
        <Pager
          older={nextCursor === null ? null : at(`/projects?cursor=${nextCursor}`)}
          newest={cursor === undefined ? null : at("/projects")}
        />
        <p>
          <a href={at("/audit")}>Audit trail of the instance</a>
        </p>
      </>,
    );
  });
}

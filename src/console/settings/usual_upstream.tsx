/** @jsxImportSource @hono/hono/jsx */
import { changesByPatch } from "../../projects/merge_patch.ts";
import { FormError } from "../../pages/form_parts.tsx";
import type { ConsoleDeps } from "../console_deps.ts";
import type { ConsoleGuard, ProjectVisit } from "../guard.tsx";
import { orShowFormAgain } from "../submitted_fields.ts";
import { type FormValues, requireOperatorOfUpstreams } from "./named_form.tsx";
import { losesKey, readUpstream, UpstreamFields, upstreamValues } from "./upstream_form.tsx";
import { upstreamsSection as section } from "./upstreams.tsx";

const path = `${section}/usual`;

/** The project's own upstream, where models without a route go. Its pages are the operator's. */
export function usualUpstreamPages(guard: ConsoleGuard, { admin }: ConsoleDeps) {
  const page = (visit: ProjectVisit, view: Pick<FormView, "values" | "problem">) =>
    visit.page("The usual upstream", <UsualForm visit={visit} {...view} />, {
      section,
      problem: view.problem,
      note: "Requests for models without a route are sent there.",
    });
  return {
    show: guard.project((visit) => {
      requireOperatorOfUpstreams(visit);
      return page(visit, { values: upstreamValues(visit.project.upstream), problem: null });
    }),
    save: guard.project(async (visit) => {
      requireOperatorOfUpstreams(visit);
      const { project, session, here, go } = visit;
      const form = await visit.form();
      const isRemoved = form.get("action") === "remove";
      const save = async () => {
        const patch = { upstream: isRemoved ? null : partOf(form) };
        const { upstream } = await admin.update(
          project.id,
          (current) => changesByPatch(current, patch),
          session.by,
        );
        if (isRemoved) return go(here(section), "upstream-removed");
        const isLost = losesKey(project.upstream, upstream);
        return go(here(section), isLost ? "upstream-key-removed" : "upstream-changed");
      };
      const values: FormValues = (name) => form.get(name) ?? "";
      return await orShowFormAgain(save, (problem) => page(visit, { values, problem }));
    }),
  };
}

/** The fields as a merge patch has them, without the models, which the form does not ask for. */
function partOf(form: URLSearchParams) {
  const { models: _, ...part } = readUpstream(form);
  return part;
}

interface FormView {
  visit: ProjectVisit;
  values: FormValues;
  problem: string | null;
}

function UsualForm({ visit: { here, project }, values, problem }: FormView) {
  const { upstream } = project;
  return (
    <>
      <FormError text={problem} />
      {upstream === null
        ? (
          <p>
            The project uses the upstream and the routes of this server. With an upstream of its
            own, it uses neither; its own routes stay.
          </p>
        )
        : null}
      <form method="post" action={here(path)}>
        <UpstreamFields stored={upstream} values={values} isUsual />
        <p class="actions">
          <button type="submit" class="primary">Save</button>
          <a class="button" href={here(section)}>Cancel</a>
          {upstream === null ? null : (
            <button
              type="submit"
              name="action"
              value="remove"
              class="plain bad last"
              formnovalidate
              title="The project then uses the upstream and the routes of this server."
            >
              Remove
            </button>
          )}
        </p>
      </form>
    </>
  );
}

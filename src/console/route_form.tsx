/** @jsxImportSource @hono/hono/jsx */
import { badRequest } from "../base/errors.ts";
import { changesByPatch } from "../projects/merge_patch.ts";
import type { Project } from "../projects/schema.ts";
import type { ConsoleDeps } from "./console_deps.ts";
import { orShowFormAgain, submittedText } from "./fields.ts";
import { FormCheckbox, FormError, FormField, Hidden } from "./form.tsx";
import type { ConsoleGuard, ProjectVisit } from "./guard.tsx";
import { Lines } from "./upstream_form.tsx";
import { requireOperator, upstreamsSection } from "./upstreams.tsx";

const path = `${upstreamsSection}/route`;
const strategies = [
  ["order", "in this order"],
  ["weight", "by chance, by their weights"],
  ["cheapest", "the cheapest first"],
  ["fastest", "the fastest first"],
] as const;

/** Adds, changes and removes one route. */
export function routeFormPages(guard: ConsoleGuard, { admin }: ConsoleDeps) {
  const page = (visit: ProjectVisit, view: Omit<FormView, "visit">) =>
    visit.page(
      view.known === null ? "Add a route" : "Change a route",
      <RouteForm visit={visit} {...view} />,
      { section: upstreamsSection, problem: view.problem },
    );
  return {
    show: guard.project((visit) => {
      requireOperator(visit);
      const model = visit.incoming.query("model") ?? null;
      const known = model !== null && visit.project.routes?.[model] ? model : null;
      return page(visit, { known, values: valuesOf(visit.project, known), problem: null });
    }),
    save: guard.project(async (visit) => {
      requireOperator(visit);
      const form = await visit.form();
      const { project, session, here, go } = visit;
      const known = submittedText(form, "known");
      const save = async () => {
        const model = known ?? submittedText(form, "model") ?? "";
        if (model === "") throw badRequest("model", "‘Model’ must not be empty.");
        const route = form.get("action") === "remove" ? null : readRoute(form);
        const patch = { routes: { [model]: route } };
        await admin.update(project.id, (current) => changesByPatch(current, patch), session.by);
        return go(here(upstreamsSection), "saved");
      };
      return await orShowFormAgain(
        save,
        (problem) => page(visit, { known, values: (field) => form.get(field) ?? "", problem }),
      );
    }),
  };
}

interface FormView {
  visit: ProjectVisit;
  /** The model of a route that there is; null for a new one. */
  known: string | null;
  values: Values;
  problem: string | null;
}

type Values = (name: string) => string;

function valuesOf({ routes = {} }: Project, known: string | null): Values {
  const route = known === null ? undefined : routes[known];
  const targets = (route?.targets ?? []).map(({ upstream, model, weight }) =>
    [upstream, model ?? (weight === 1 ? null : "="), weight === 1 ? null : weight]
      .filter((part) => part !== null).join(" ")
  );
  const values: Record<string, string> = {
    strategy: route?.strategy ?? "order",
    sticky: route?.sticky ?? true ? "on" : "",
    targets: targets.join("\n"),
  };
  return (name) => values[name] ?? "";
}

function readRoute(form: URLSearchParams) {
  const lines = (submittedText(form, "targets") ?? "").split("\n").map((line) => line.trim());
  return {
    strategy: submittedText(form, "strategy") ?? "order",
    sticky: form.has("sticky"),
    targets: lines.filter(Boolean).map(targetIn),
  };
}

/** Reads `upstream model weight`; a model of `=` is the name that was asked for. Throws 400. */
function targetIn(line: string) {
  const [upstream = "", model, weight, ...more] = line.split(/\s+/);
  const isNumber = weight === undefined || /^\d+(\.\d+)?$/.test(weight);
  if (more.length > 0 || !isNumber) {
    throw badRequest("targets", `‘${line}’ is not a target such as ‘main gpt-4o 3’.`);
  }
  return {
    upstream,
    ...(model === undefined || model === "=" ? {} : { model }),
    ...(weight === undefined ? {} : { weight: Number(weight) }),
  };
}

function RouteForm({ visit: { here }, known, values, problem }: FormView) {
  return (
    <>
      <FormError text={problem} />
      <form method="post" action={here(path)}>
        {known === null
          ? (
            <FormField
              name="model"
              label="Model"
              value={values("model")}
              required
              hint="The name that callers ask for: a model, a name of your own, or * for all others."
            />
          )
          : <Hidden fields={{ known }} />}
        {known === null ? null : <p>{known}</p>}
        <Lines
          name="targets"
          label="Targets"
          value={values("targets")}
          hint="One a line: upstream, model there, weight. “main gpt-4o 3”; “=” is the name that was asked for."
        />
        <fieldset>
          <legend>Ask them</legend>
          {strategies.map(([name, label]) => (
            <FormCheckbox
              type="radio"
              name="strategy"
              value={name}
              label={label}
              on={values("strategy") === name}
            />
          ))}
        </fieldset>
        <FormCheckbox
          name="sticky"
          label="By weight, a conversation stays with its target"
          on={values("sticky") !== ""}
        />
        <p class="actions">
          <button type="submit" class="primary">Save</button>
          {known === null
            ? null
            : (
              <button type="submit" name="action" value="remove" class="danger" formnovalidate>
                Remove
              </button>
            )}
          <a class="button" href={here(upstreamsSection)}>Cancel</a>
        </p>
      </form>
    </>
  );
}

/** @jsxImportSource @hono/hono/jsx */
import type { Child } from "@hono/hono/jsx";
import { ApiError, badRequest } from "../../base/errors.ts";
import type { JsonObject } from "../../base/json.ts";
import { changesByPatch } from "../../projects/merge_patch.ts";
import type { Project } from "../../projects/schema.ts";
import type { Flash } from "../flash.ts";
import type { ConsoleDeps } from "../console_deps.ts";
import { orShowFormAgain, submittedText } from "../submitted_fields.ts";
import { FormError, FormField, FormSection, Hidden } from "../../pages/form_parts.tsx";
import type { ConsoleGuard, ProjectVisit } from "../guard.tsx";

/** Returns what a field of the form shows. */
export type FormValues = (name: string) => string;

/** A setting that has parts by their names, and the form for one of them. */
export interface NamedSetting {
  setting: "upstreams" | "routes";
  /** What a part is called: `an upstream`. */
  what: string;
  /** The page of the list, and that of the form. */
  section: string;
  path: string;
  /** The field of the form that names a part, and the query parameter. */
  field: { name: string; label: string; hint: string };
  /** With null: of a new part. */
  valuesOf(project: Project, known: string | null): FormValues;
  /** The part as a merge patch has it. Throws 400. */
  read(form: URLSearchParams): JsonObject;
  /** What is said once a part is saved. */
  saved(change: { before: Project; after: Project; name: string }): Flash;
  Fields(view: { project: Project; known: string | null; values: FormValues }): Child;
}

/** Pages that add, change and remove one named part of a setting. They are the operator's. */
export function namedFormPages(guard: ConsoleGuard, { admin }: ConsoleDeps, of: NamedSetting) {
  const { setting, what, section, field } = of;
  const page = (visit: ProjectVisit, view: Omit<FormView, "visit" | "of">) =>
    visit.page(
      view.known === null ? `Add ${what}` : `Edit ${view.known}`,
      <NamedForm visit={visit} of={of} {...view} />,
      { section, problem: view.problem },
    );
  const isKnown = (project: Project, name: string) => Object.hasOwn(project[setting] ?? {}, name);
  return {
    show: guard.project((visit) => {
      requireOperatorOfUpstreams(visit);
      const { project, incoming } = visit;
      const name = incoming.query(field.name);
      const known = name !== undefined && isKnown(project, name) ? name : null;
      return page(visit, { known, values: of.valuesOf(project, known), problem: null });
    }),
    save: guard.project(async (visit) => {
      requireOperatorOfUpstreams(visit);
      const form = await visit.form();
      const { project, session, here, go } = visit;
      const known = submittedText(form, "known");
      const save = async () => {
        const name = known ?? submittedText(form, field.name);
        if (name === null) throw badRequest(field.name, `‘${field.label}’ must not be empty.`);
        if (known === null && isKnown(project, name)) {
          throw badRequest(field.name, `There is ${what} ‘${name}’ already.`);
        }
        const part = form.get("action") === "remove" ? null : of.read(form);
        const patch = { [setting]: { [name]: part } };
        const after = await admin.update(
          project.id,
          (current) => changesByPatch(current, patch),
          session.by,
        );
        return go(
          here(section),
          part === null ? "saved" : of.saved({ before: project, after, name }),
        );
      };
      const values: FormValues = (name) => form.get(name) ?? "";
      return await orShowFormAgain(save, (problem) => page(visit, { known, values, problem }));
    }),
  };
}

/** Throws 403 for an owner: an upstream is asked from within the operator's network. */
export function requireOperatorOfUpstreams({ session }: ProjectVisit): void {
  if (session.projectId === null) return;
  throw new ApiError(403, { message: "Only the operator changes upstreams and routes." });
}

interface FormView {
  visit: ProjectVisit;
  of: NamedSetting;
  /** The name of a part that there is; null for a new one. */
  known: string | null;
  values: FormValues;
  problem: string | null;
}

function NamedForm({ visit: { here, project }, of, known, values, problem }: FormView) {
  const { section, path, field, Fields } = of;
  return (
    <>
      <FormError text={problem} />
      <form method="post" action={here(path)}>
        {known === null
          ? (
            <FormSection title={field.label}>
              <FormField {...field} value={values(field.name)} required />
            </FormSection>
          )
          : <Hidden fields={{ known }} />}
        <Fields project={project} known={known} values={values} />
        <p class="actions">
          <button type="submit" class="primary">Save</button>
          <a class="button" href={here(section)}>Cancel</a>
          {known === null ? null : (
            <button
              type="submit"
              name="action"
              value="remove"
              class="plain bad last"
              formnovalidate
            >
              Remove
            </button>
          )}
        </p>
      </form>
    </>
  );
}

/** A field of several lines. */
export function Lines(
  { name, label, value, hint }: { name: string; label: string; value: string; hint: string },
) {
  return (
    <div class="field">
      <label for={name}>{label}</label>
      <textarea id={name} name={name} rows={4} aria-describedby={`${name}-hint`}>{value}</textarea>
      <span class="hint" id={`${name}-hint`}>{hint}</span>
    </div>
  );
}

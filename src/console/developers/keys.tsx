/** @jsxImportSource @hono/hono/jsx */
import { notFound } from "../../base/errors.ts";
import { Confirm, FormCheckbox } from "../../pages/form_parts.tsx";
import { checkId } from "../../projects/admin_guard.ts";
import type { ApiKey } from "../../projects/schema.ts";
import { readKeyUses } from "../../requests/key_use.ts";
import type { ConsoleDeps } from "../console_deps.ts";
import { orShowFormAgain } from "../submitted_fields.ts";
import type { ConsoleGuard, ProjectVisit } from "../guard.tsx";
import { KeyTable } from "./key_table.tsx";
import { NewKey, NewKeyForm, newKeyLabels, readNewKey } from "./new_key.tsx";
import { submitOnce } from "../submit_once.ts";

const section = "/keys";

/** A project's API keys: listing, creating and revoking them. */
export function keyPages(guard: ConsoleGuard, services: ConsoleDeps) {
  const { admin, deps } = services;

  async function list(visit: ProjectVisit, problem: string | null, form = new URLSearchParams()) {
    const keys = await admin.keys(visit.project.id);
    await services.requestLog.flush();
    const uses = await readKeyUses(deps.kv, visit.project.id);
    const now = deps.clock.now();
    const formId = deps.id("form");
    const page = (
      <>
        <KeyTable {...{ visit, uses, now }} keys={keys.toReversed()} />
        <NewKeyForm {...{ visit, problem, form, formId }} />
      </>
    );
    return visit.page("API keys", page, {
      section,
      problem,
      actions: <a class="button" href="#new">Create a key</a>,
    });
  }

  async function found({ project, incoming }: ProjectVisit): Promise<ApiKey> {
    const id = checkId(incoming.param("keyId"), "API key");
    const key = (await admin.keys(project.id)).find((each) => each.id === id);
    if (!key) throw notFound("API key");
    return key;
  }

  return {
    show: guard.project((visit) => list(visit, null)),
    create: guard.project(async (visit) => {
      const { project, session, here, go, page } = visit;
      const form = await visit.form();
      return await orShowFormAgain(
        async () => {
          const settings = readNewKey(form);
          const made = await submitOnce(
            deps,
            { visit, form },
            (alongside) => admin.createKey(project.id, settings, session.by, alongside),
          );
          if (!made) return go(here(section), "already-sent");
          const { baseUrl } = deps.config;
          const model = Object.keys(project.pricing.models).find((name) => name !== "*");
          const shown = {
            name: settings.name,
            apiKey: made.secret,
            back: here(section),
            model: settings.models?.[0] ?? model ?? "gpt-4o-mini",
            user: settings.user ?? settings.defaultUser ?? "ada",
            // What is no app's key does not call models.
            baseUrl: settings.scopes.includes("chat") ? baseUrl : null,
          };
          return page("A new API key", <NewKey {...shown} />, { section });
        },
        (problem) => list(visit, problem, form),
        newKeyLabels,
      );
    }),
    confirmRevoke: guard.project(async (visit) => {
      const meant = await found(visit);
      return visit.page("Revoke this key?", <ConfirmRevoke visit={visit} meant={meant} />, {
        section,
      });
    }),
    revoke: guard.project(async (visit) => {
      const { project, session, here, go } = visit;
      const { id } = await found(visit);
      const form = await visit.form();
      if (form.has("made")) await services.revokeWithMade(project.id, id, session.by);
      else await admin.revokeKey(project.id, id, session.by);
      return go(here(section), "key-revoked");
    }),
  };
}

function ConfirmRevoke({ visit, meant }: { visit: ProjectVisit; meant: ApiKey }) {
  const { here, session } = visit;
  const { id, name, suffix, scopes } = meant;
  const says = (
    <>
      <p>
        The key {name
          ? (
            <strong>
              <bdi>{name}</bdi>
            </strong>
          )
          : null} that ends in <code>…{suffix}</code> and may {scopes.join(", ")}{" "}
        stops working within a second. Requests that use it get 401 from then on. This cannot be
        undone.
      </p>
      {session.by.actor.id === id
        ? <p>You are signed in with this key, so you will be signed out.</p>
        : null}
    </>
  );
  const action = here(`/keys/${id}/revoke`);
  const more = (
    <FormCheckbox
      name="made"
      label="Also end the keys and subscriptions that were made with it"
      on={false}
    />
  );
  return <Confirm {...{ says, action, more }} button="Revoke the key" back={here(section)} />;
}

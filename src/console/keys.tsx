/** @jsxImportSource @hono/hono/jsx */
import { badRequest, notFound } from "../base/errors.ts";
import { parseWith } from "../base/request.ts";
import { checkUserId } from "../base/user_id.ts";
import { hasExpired } from "../projects/auth.ts";
import { checkId } from "../projects/admin_guard.ts";
import { type ApiKey, type CreateKey, createKeySchema, scopes } from "../projects/schema.ts";
import type { ConsoleGuard, ProjectVisit } from "./guard.tsx";
import { orShowFormAgain, submittedText } from "./fields.ts";
import {
  Confirm,
  FormCheckbox,
  FormError,
  FormField,
  Hidden,
  ShownOnce,
} from "../pages/form_parts.tsx";
import { submitOnce } from "./submit_once.ts";
import { zero } from "../base/money.ts";
import { Badge, Card, CodeBlock, MoneyCell, Table, TimeCell } from "../pages/parts.tsx";
import { type KeyUse, type KeyUses, readKeyUses } from "../requests/key_use.ts";
import type { ConsoleDeps } from "./console_deps.ts";

const section = "/keys";

const labels = {
  name: "Name",
  user: "Only for this user",
  defaultUser: "User when a request names none",
  models: "Only these models",
  budget: "Budget",
  expiresAt: "Last day",
};

/** A project's API keys: listing, creating and revoking them. */
export function keyPages(guard: ConsoleGuard, services: ConsoleDeps) {
  const { admin, deps, askForKey } = services;

  async function list(visit: ProjectVisit, problem: string | null, form = new URLSearchParams()) {
    const keys = await admin.keys(visit.project.id);
    await services.requestLog.flush();
    const uses = await readKeyUses(deps.kv, visit.project.id);
    const now = deps.clock.now();
    const view = { uses, problem, form, formId: deps.id("form"), keys: keys.toReversed(), now };
    return visit.page("API keys", <Keys {...view} visit={visit} />, { section, problem });
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
      const asked = await askForKey(visit, form);
      if (asked) return asked;
      return await orShowFormAgain(
        async () => {
          const settings = readKey(form);
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
        labels,
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
      const asked = await askForKey(visit, form);
      if (asked) return asked;
      if (form.has("made")) await services.revokeWithMade(project.id, id, session.by);
      else await admin.revokeKey(project.id, id, session.by);
      return go(here(section), "key-revoked");
    }),
  };
}

function wordsIn(form: URLSearchParams, name: string): string[] | null {
  const words = (submittedText(form, name) ?? "").split(/\s+/).filter(Boolean);
  return words.length > 0 ? words : null;
}

/** The last moment of a day, in UTC. */
function endOfDay(day: string | null): string | null {
  return day && `${day}T23:59:59.999Z`;
}

/** Throws 400 for invalid settings of a key. */
function readKey(form: URLSearchParams): CreateKey {
  const fields = {
    name: submittedText(form, "name") ?? "",
    scopes: form.getAll("scopes"),
    user: submittedText(form, "user"),
    defaultUser: submittedText(form, "defaultUser"),
    models: wordsIn(form, "models"),
    budget: submittedText(form, "budget"),
    expiresAt: endOfDay(submittedText(form, "expires")),
  };
  if (fields.scopes.length === 0) {
    throw badRequest(
      "scopes",
      "‘It may’ needs at least one scope: a key without any grants no access.",
    );
  }
  for (const name of ["user", "defaultUser"] as const) {
    if (fields[name] !== null) checkUserId(fields[name], name);
  }
  return parseWith(createKeySchema, fields);
}

function KeyState({ state: { revokedAt, expiresAt }, now }: { state: ApiKey; now: number }) {
  if (revokedAt !== null) return <Badge tone="bad">revoked</Badge>;
  if (hasExpired({ expiresAt }, { now: () => now })) return <Badge tone="bad">expired</Badge>;
  return <Badge tone="good">active</Badge>;
}

function KeyPowers({ power, currency }: { power: ApiKey; currency: string }) {
  const { scopes, models, budget, expiresAt } = power;
  const bounds = [
    models && `models ${models.join(" ")}`,
    budget && `up to ${budget} ${currency} in all`,
    expiresAt && `until ${expiresAt.slice(0, 10)}`,
  ].filter(Boolean);
  return <>{[scopes.join(", "), ...bounds].join("; ")}</>;
}

interface KeysView {
  uses: KeyUses;
  keys: ApiKey[];
  now: number;
  problem: string | null;
  form: URLSearchParams;
  formId: string;
  visit: ProjectVisit;
}

function Keys(view: KeysView) {
  return (
    <>
      <KeyTable {...view} />
      <NewKeyForm {...view} />
    </>
  );
}

function KeyTable({ keys, uses, now, visit: { here, project: { currency } } }: KeysView) {
  return (
    <Table
      caption={`Newest first; a key itself is never shown again. ${usesRead(uses)}`}
      columns={[
        { title: "Name", lead: true },
        "State",
        "Last used",
        { title: "Requests", number: true },
        { title: "Spent", number: true },
        "May",
        "User",
        "Created",
        "Action",
      ]}
      rows={keys.map((key) => [
        <>
          {key.name ? <bdi>{key.name}</bdi> : "no name"} <code>…{key.suffix}</code>
        </>,
        <KeyState state={key} now={now} />,
        <KeyLastUsed use={uses.keys.get(key.id)} />,
        String(uses.keys.get(key.id)?.requests ?? 0),
        <MoneyCell amount={uses.keys.get(key.id)?.spent ?? zero} currency={currency} />,
        <KeyPowers power={key} currency={currency} />,
        key.user === null
          ? key.defaultUser === null ? "any" : (
            <>
              any; default <bdi>{key.defaultUser}</bdi>
            </>
          )
          : (
            <>
              only <bdi>{key.user}</bdi>
            </>
          ),
        <TimeCell at={key.createdAt} />,
        key.revokedAt === null
          ? (
            <a href={here(`/keys/${key.id}/revoke`)} aria-label={`Revoke the key …${key.suffix}`}>
              Revoke…
            </a>
          )
          : <TimeCell at={key.revokedAt} />,
      ])}
      empty="No keys yet."
    />
  );
}

/** How far back the use of keys was looked at. */
function usesRead({ since }: KeyUses): string {
  if (since === null) return "Use is of all requests in the log.";
  return `Use is of the requests since ${new Date(since).toISOString().slice(0, 16)} UTC.`;
}

function KeyLastUsed({ use }: { use: KeyUse | undefined }) {
  return use === undefined ? <>–</> : <TimeCell at={use.lastAt} />;
}

function BoundFields({ form, currency }: { form: URLSearchParams; currency: string }) {
  return (
    <>
      <FormField
        name="models"
        label={labels.models}
        value={form.get("models") ?? ""}
        hint="Names, separated by spaces; a name that ends in * allows all that begin like it. Empty for all."
      />
      <FormField
        name="budget"
        label={`${labels.budget}, ${currency}`}
        value={form.get("budget") ?? ""}
        hint="What the key may spend in all. Empty for no bound of its own."
      />
      <FormField
        name="expires"
        label={labels.expiresAt}
        type="date"
        value={form.get("expires") ?? ""}
        hint="The key stops working at its end, in UTC. Empty for never."
      />
    </>
  );
}

function NewKeyForm({ problem, form, formId, visit: { here, project: { currency } } }: KeysView) {
  return (
    <>
      <h2>Create a key</h2>
      <FormError text={problem} />
      <form method="post" action={here(section)}>
        <Hidden fields={{ formId }} />
        <FormField
          name="name"
          label={labels.name}
          value={form.get("name") ?? ""}
          more={{ maxlength: "128" }}
        />
        <fieldset>
          <legend>Scopes</legend>
          {scopes.map((scope) => (
            <FormCheckbox
              name="scopes"
              value={scope}
              label={scope}
              on={problem === null ? scope !== "owner" : form.getAll("scopes").includes(scope)}
            />
          ))}
        </fieldset>
        <FormField
          name="user"
          label={labels.user}
          value={form.get("user") ?? ""}
          hint="For keys used in browsers, with chat as their only scope. Empty for any user."
        />
        <FormField
          name="defaultUser"
          label={labels.defaultUser}
          value={form.get("defaultUser") ?? ""}
          hint="Optional."
        />
        <BoundFields form={form} currency={currency} />
        <button type="submit" class="primary">Create the key</button>
      </form>
    </>
  );
}

interface NewKeyView {
  name: string;
  apiKey: string;
  back: string;
  model: string;
  user: string;
  /** Null for a key that does not call models. */
  baseUrl: string | null;
}

/** The same first request in three languages; the key comes from the environment. */
function FirstRequests({ model, user, baseUrl }: NewKeyView & { baseUrl: string }) {
  const body =
    `{"model":"${model}","user":"${user}","messages":[{"role":"user","content":"Hello"}]}`;
  const examples = [
    [
      "curl",
      `curl ${baseUrl}/v1/chat/completions \\\n  -H "Authorization: Bearer $FAREBOX_KEY" \\\n` +
      `  -H "Content-Type: application/json" \\\n  -d '${body}'`,
    ],
    [
      "JavaScript",
      `import OpenAI from "openai";\n\nconst client = new OpenAI({\n  baseURL: "${baseUrl}/v1",\n` +
      "  apiKey: process.env.FAREBOX_KEY,\n});\n" +
      `const completion = await client.chat.completions.create(${body});`,
    ],
    [
      "Python",
      `import os\nfrom openai import OpenAI\n\nclient = OpenAI(base_url="${baseUrl}/v1", ` +
      `api_key=os.environ["FAREBOX_KEY"])\ncompletion = client.chat.completions.create(**${body})`,
    ],
  ] as const;
  return (
    <>
      {examples.map(([language, text]) => (
        <Card title={language}>
          <CodeBlock id={`example-${language}`} text={text} />
        </Card>
      ))}
    </>
  );
}

function NewKey(view: NewKeyView) {
  const { name, apiKey, back, baseUrl } = view;
  return (
    <>
      <ShownOnce
        label={name
          ? (
            <>
              The key “<bdi>{name}</bdi>”
            </>
          )
          : "The key"}
        secret={apiKey}
      />
      {baseUrl === null ? null : <FirstRequests {...view} baseUrl={baseUrl} />}
      <p>
        <a href={back}>Back to API keys</a>
      </p>
    </>
  );
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

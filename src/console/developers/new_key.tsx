/** @jsxImportSource @hono/hono/jsx */
import { badRequest } from "../../base/errors.ts";
import { parseWith } from "../../base/request.ts";
import { checkUserId } from "../../base/user_id.ts";
import {
  FormCheckbox,
  FormError,
  FormField,
  FormSection,
  Hidden,
  ShownOnce,
} from "../../pages/form_parts.tsx";
import { Card, CodeBlock } from "../../pages/parts.tsx";
import { type CreateKey, createKeySchema, scopes } from "../../projects/schema.ts";
import { submittedText } from "../submitted_fields.ts";
import type { ProjectVisit } from "../guard.tsx";

/** What the fields of a new key are called. */
export const newKeyLabels = {
  name: "Name",
  user: "Only for this user",
  defaultUser: "User when a request names none",
  models: "Only these models",
  budget: "Budget",
  expiresAt: "Last day",
};

function wordsIn(form: URLSearchParams, name: string): string[] | null {
  const words = (submittedText(form, name) ?? "").split(/\s+/).filter(Boolean);
  return words.length > 0 ? words : null;
}

/** The last moment of a day, in UTC. */
function endOfDay(day: string | null): string | null {
  return day && `${day}T23:59:59.999Z`;
}

/** Reads the settings of a new key. Throws 400 for invalid ones. */
export function readNewKey(form: URLSearchParams): CreateKey {
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
      "Choose at least one thing that the key may do.",
    );
  }
  for (const name of ["user", "defaultUser"] as const) {
    if (fields[name] !== null) checkUserId(fields[name], name);
  }
  return parseWith(createKeySchema, fields);
}

const scopeLabels: Readonly<Record<typeof scopes[number], string>> = {
  chat: "Call models",
  money: "Read balances, and deposit, charge and refund",
  webhooks: "Manage webhooks",
  owner: "Open this console",
};

function UserFields({ form }: { form: URLSearchParams }) {
  return (
    <FormSection title="Users" says="Optional. For a key in a browser, or of one person.">
      <FormField
        name="user"
        label={newKeyLabels.user}
        value={form.get("user") ?? ""}
        hint="Every request is this user’s. The key can then only call models."
      />
      <FormField
        name="defaultUser"
        label={newKeyLabels.defaultUser}
        value={form.get("defaultUser") ?? ""}
      />
    </FormSection>
  );
}

function BoundFields({ form, currency }: { form: URLSearchParams; currency: string }) {
  return (
    <FormSection title="Restrictions" says="Optional. Empty: none.">
      <FormField
        name="models"
        label={newKeyLabels.models}
        value={form.get("models") ?? ""}
        hint="Names, separated by spaces. gpt-4* allows all that begin with gpt-4."
      />
      <div class="fields">
        <FormField
          name="budget"
          label={`${newKeyLabels.budget}, ${currency.toUpperCase()}`}
          value={form.get("budget") ?? ""}
          hint="What the key may spend in all."
        />
        <FormField
          name="expires"
          label={newKeyLabels.expiresAt}
          type="date"
          value={form.get("expires") ?? ""}
          hint="The key works until the end of it, in UTC."
        />
      </div>
    </FormSection>
  );
}

/** The form of a new key. */
export function NewKeyForm({ problem, form, formId, visit: { here, project: { currency } } }: {
  problem: string | null;
  form: URLSearchParams;
  formId: string;
  visit: ProjectVisit;
}) {
  return (
    <>
      <h2 id="new">Create a key</h2>
      <FormError text={problem} />
      <form method="post" action={here("/keys")}>
        <Hidden fields={{ formId }} />
        <FormSection title="Key" says="What it is for, and what it may do.">
          <FormField
            name="name"
            label={newKeyLabels.name}
            value={form.get("name") ?? ""}
            more={{ maxlength: "128" }}
          />
          {scopes.map((scope) => (
            <FormCheckbox
              name="scopes"
              value={scope}
              label={
                <>
                  {scopeLabels[scope]} <span class="muted">{scope}</span>
                </>
              }
              on={problem === null ? scope === "chat" : form.getAll("scopes").includes(scope)}
            />
          ))}
        </FormSection>
        <UserFields form={form} />
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

/** A first request with the new key in three languages; the key comes from the environment. */
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

/** A new key, shown once, and first requests with it. */
export function NewKey(view: NewKeyView) {
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

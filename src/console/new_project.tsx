/** @jsxImportSource @hono/hono/jsx */
import { ApiError } from "../base/errors.ts";
import { parseWith } from "../base/request.ts";
import {
  FormCheckbox,
  FormError,
  FormField,
  FormSection,
  FormSelect,
  Hidden,
} from "../pages/form_parts.tsx";
import { Card, CodeBlock } from "../pages/parts.tsx";
import { createProjectSchema, currencies, type Project } from "../projects/schema.ts";
import type { ConsoleDeps } from "./console_deps.ts";
import { decimalText, formIdOf, orShowFormAgain, submittedText } from "./submitted_fields.ts";
import { type ConsoleGuard, type ConsoleVisit, requireOperator } from "./guard.tsx";

const labels = {
  name: "Name",
  ownerUserId: "Owner",
  currency: "Currency",
  "pricing.markupPercent": "Markup, percent",
  "upstream.url": "Upstream URL",
  "upstream.apiKey": "Upstream key",
  "stripe.secretKey": "Stripe secret key",
  "stripe.webhookSecret": "Stripe webhook secret",
};

/** Creating a project, for operators: its prices, upstream and payments on one page. */
export function newProjectPages(guard: ConsoleGuard, services: ConsoleDeps) {
  const { deps, admin, sessions } = services;
  const show = (visit: ConsoleVisit, problem: string | null, form = new URLSearchParams()) => {
    requireOperator(visit);
    const view = { visit, problem, form, formId: deps.id("form") };
    return visit.page("New project", <NewProjectForm {...view} />, { problem });
  };
  return {
    show: guard.signedIn((visit) => show(visit, null, new URLSearchParams({ currency: "usd" }))),
    create: guard.signedIn(async (visit) => {
      requireOperator(visit);
      const form = await visit.form();
      return await orShowFormAgain(
        async () => {
          const settings = parseWith(createProjectSchema, readProject(form));
          if (!await sessions.claim(visit.session, formIdOf(form))) {
            return visit.go(visit.at("/projects"), "already-sent");
          }
          const made = await admin.create(settings, visit.session.by);
          const model = Object.keys(settings.pricing.models)[0] ?? "gpt-4o-mini";
          const { project: { id }, apiKey, ownerKey } = made;
          const unpaid = await connectAlso(services, visit, made.project, form);
          const { baseUrl } = deps.config;
          const shown = { visit, id, apiKey, ownerKey, model, baseUrl, unpaid };
          return visit.page("The project is created", <CreatedProject {...shown} />);
        },
        (problem) => show(visit, problem, form),
        labels,
      );
    }),
  };
}

/**
 * Connects Stripe where only a key was given. Returns why it could not be connected: the project
 * exists already, and its keys are shown only now.
 */
async function connectAlso(
  { connectStripe }: ConsoleDeps,
  { session }: ConsoleVisit,
  project: Project,
  form: URLSearchParams,
): Promise<string | null> {
  const key = submittedText(form, "stripeKey");
  if (key === null || submittedText(form, "stripeWebhook") !== null) return null;
  try {
    await connectStripe(project, key, session.by);
    return null;
  } catch (error) {
    if (error instanceof ApiError) return error.message;
    throw error;
  }
}

/** Returns the fields as the API would receive them; the schema validates them. */
function readProject(form: URLSearchParams): Record<string, unknown> {
  const text = (name: string) => submittedText(form, name);
  const ownerUserId = text("ownerUserId");
  const url = text("upstreamUrl");
  const apiKey = text("upstreamKey");
  const stripe = text("stripeKey");
  const webhook = text("stripeWebhook");
  return {
    name: text("name") ?? "",
    ...(ownerUserId === null ? {} : { ownerUserId }),
    currency: (text("currency") ?? "usd").toLowerCase(),
    mode: text("mode") ?? "default",
    pricing: {
      catalogue: form.has("catalogue"),
      markupPercent: decimalText(form, "markupPercent") ?? "0",
    },
    ...(url === null ? {} : { upstream: { url, ...(apiKey === null ? {} : { apiKey }) } }),
    // With the key alone, Stripe is connected once the project exists.
    ...(webhook === null ? {} : { stripe: { secretKey: stripe ?? "", webhookSecret: webhook } }),
  };
}

function NewProjectForm({ visit: { at }, problem, form, formId }: {
  visit: ConsoleVisit;
  problem: string | null;
  form: URLSearchParams;
  formId: string;
}) {
  const value = (name: string) => form.get(name) ?? "";
  return (
    <>
      <FormError text={problem} />
      <form method="post" action={at("/projects/new")}>
        <Hidden fields={{ formId }} />
        <FormSection title="Project" says="An app whose users pay, with one currency.">
          <FormField name="name" label={labels.name} value={value("name")} required />
          <FormField
            name="ownerUserId"
            label={labels.ownerUserId}
            value={value("ownerUserId")}
            hint="Your own id of the owner, named in events. Optional."
          />
          <div class="fields">
            <FormSelect
              name="currency"
              label={labels.currency}
              value={value("currency")}
              options={[...currencies].map((code) => [code, code.toUpperCase()] as const)}
              hint="It cannot be changed later."
            />
            <FormSelect
              name="mode"
              label="Balances"
              value={value("mode")}
              options={[["default", "In this project"], [
                "shared",
                "In wallets, shared with other projects",
              ]]}
              hint="It cannot be changed later."
            />
          </div>
        </FormSection>
        <PriceFields form={form} isNew={problem === null} />
        <ConnectionFields form={form} />
        <p class="actions">
          <button type="submit" class="primary">Create the project</button>
          <a class="button" href={at("/projects")}>Cancel</a>
        </p>
      </form>
    </>
  );
}

function PriceFields({ form, isNew }: { form: URLSearchParams; isNew: boolean }) {
  return (
    <FormSection title="Prices" says="What users pay. Each model can have its own price later.">
      <FormCheckbox
        name="catalogue"
        label="Serve every model of the catalogue, at its list price"
        on={form.has("catalogue") || isNew}
      />
      <FormField
        name="markupPercent"
        label={labels["pricing.markupPercent"]}
        value={form.get("markupPercent") ?? ""}
        hint="Added to the catalogue’s prices: your margin. 0 for none."
      />
    </FormSection>
  );
}

function ConnectionFields({ form }: { form: URLSearchParams }) {
  return (
    <>
      <FormSection title="Upstream" says="Where requests are sent. Optional.">
        <FormField
          name="upstreamUrl"
          label={labels["upstream.url"]}
          type="url"
          value={form.get("upstreamUrl") ?? ""}
          hint="Such as https://api.openai.com/v1. Empty: the instance’s upstream."
        />
        <FormField
          name="upstreamKey"
          label={labels["upstream.apiKey"]}
          type="password"
          hint="Stored encrypted, and never shown again."
        />
      </FormSection>
      <FormSection title="Payments by Stripe" says="How users top up. Optional.">
        <FormField
          name="stripeKey"
          label={labels["stripe.secretKey"]}
          type="password"
          hint="Begins with sk_ or rk_. Empty: connect payments later."
        />
        <FormField
          name="stripeWebhook"
          label={labels["stripe.webhookSecret"]}
          type="password"
          hint="Empty: Farebox creates the webhook at Stripe. Else begins with whsec_."
        />
      </FormSection>
    </>
  );
}

function CreatedProject({ visit: { at }, id, apiKey, ownerKey, model, baseUrl, unpaid }: {
  visit: ConsoleVisit;
  id: string;
  apiKey: string;
  ownerKey: string;
  model: string;
  baseUrl: string;
  /** Why Stripe is not connected; null where nothing was to be connected, or all went well. */
  unpaid: string | null;
}) {
  const curl = [
    `curl ${baseUrl}/v1/chat/completions \\`,
    `  -H "Authorization: Bearer ${apiKey}" \\`,
    `  -H "Content-Type: application/json" \\`,
    `  -d '{"model":"${model}","user":"ada","messages":[{"role":"user","content":"Hello"}]}'`,
  ].join("\n");
  return (
    <>
      <p class="notice">Both keys are shown only once: copy them now.</p>
      {unpaid === null ? null : (
        <p class="alert">
          Stripe is not connected: {unpaid} <a href={at(`/projects/${id}/payments`)}>Connect it</a>
        </p>
      )}
      <Card title="Key of the app">
        <CodeBlock id="app-key" text={apiKey} />
        <p class="muted">Its server sends requests with it.</p>
      </Card>
      <Card title="Key of the owner">
        <CodeBlock id="owner-key" text={ownerKey} />
        <p class="muted">The owner signs in to this console with it.</p>
      </Card>
      <Card title="The first request">
        <CodeBlock id="first-request" text={curl} />
      </Card>
      <p>
        <a class="button primary" href={at(`/projects/${id}`)}>Open the project</a>
      </p>
    </>
  );
}

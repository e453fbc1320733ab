/** @jsxImportSource @hono/hono/jsx */
import type { Child } from "@hono/hono/jsx";
import { type Alert, alertPath, type AlertState, ruleTitles } from "../../alerts/alert.ts";
import { addressesOf } from "../../alerts/view.ts";
import type { AlertSettings } from "../../projects/alerts_schema.ts";
import type { Project } from "../../projects/schema.ts";
import {
  FormCheckbox,
  FormError,
  FormField,
  FormSection,
  Hidden,
} from "../../pages/form_parts.tsx";
import { Badge, Card, EmptyState, Table, TimeCell } from "../../pages/parts.tsx";
import type { ConsoleDeps } from "../console_deps.ts";
import { decimalText, integerText, orShowFormAgain, submittedText } from "../submitted_fields.ts";
import type { ConsoleGuard, ProjectVisit } from "../guard.tsx";
import { fingerprintAfter, fingerprintOf, saveSettings, type SettingsPart } from "../save.ts";

const section = "/alerts";
const part: SettingsPart = ({ alerts }) => alerts;

const labels = {
  "alerts.emails": "E-mail addresses",
  "alerts.webhookFailing.afterMinutes": "For at least, minutes",
  "alerts.errorRate.percent": "At least, percent",
  "alerts.errorRate.calls": "Minimum calls",
  "alerts.userBalance.below": "A user’s balance is below",
  "alerts.totalBalance.below": "The sum of all balances is below",
};

/** The alerts of a project, what it watches, and who is notified by e-mail. */
export function alertPages(guard: ConsoleGuard, services: ConsoleDeps) {
  const page = async (visit: ProjectVisit, view: Omit<AlertsView, "visit" | "state" | "mails">) => {
    const state = await services.alerts.read(visit.project.id);
    const mails = services.deps.sendMail !== null;
    return visit.page("Alerts", <AlertsPage {...{ visit, state, mails, ...view }} />, {
      section,
      problem: view.problem,
      note: "Conditions are checked once a minute. Each change is an event to your webhooks.",
    });
  };
  return {
    show: guard.project((visit) => {
      const values = valuesOf(visit.project.alerts);
      const seen = fingerprintOf(part, visit.project);
      return page(visit, { values: (name) => values[name] ?? "", seen, problem: null });
    }),
    save: guard.project(async (visit) => {
      const form = await visit.form();
      const values: Values = (name) => form.get(name) ?? "";
      return await orShowFormAgain(
        () =>
          saveSettings(services, visit, { section, part, form, changes: () => readAlerts(form) }),
        (problem, error) => page(visit, { values, seen: fingerprintAfter(form, error), problem }),
        labels,
      );
    }),
    confirm: guard.project(async (visit) => {
      const { project, session, here, go } = visit;
      const email = (await visit.form()).get("email") ?? "";
      const values = valuesOf(project.alerts);
      const seen = fingerprintOf(part, project);
      return await orShowFormAgain(
        async () => {
          await services.confirmations.sendAgain(project, email, session.by);
          return go(here(section), "link-sent");
        },
        (problem) => page(visit, { values: (name) => values[name] ?? "", seen, problem }),
      );
    }),
    test: guard.project(async (visit) => {
      const { project, session, here, go } = visit;
      const values = valuesOf(project.alerts);
      const seen = fingerprintOf(part, project);
      return await orShowFormAgain(
        async () => {
          await services.alerts.sendSample(project, session.by);
          return go(here(section), "mail-sent");
        },
        (problem) => page(visit, { values: (name) => values[name] ?? "", seen, problem }),
      );
    }),
  };
}

/** Returns what a field of the form shows. */
type Values = (name: string) => string;

interface AlertsView {
  visit: ProjectVisit;
  state: AlertState;
  /** Whether this server sends e-mail. */
  mails: boolean;
  values: Values;
  seen: string;
  problem: string | null;
}

function valuesOf(settings: AlertSettings): Record<string, string> {
  const { emails, webhookFailing, errorRate, userBalance, totalBalance } = settings;
  const on = (isOn: unknown) => isOn ? "on" : "";
  return {
    emails: emails.join("\n"),
    webhookFailing: on(webhookFailing),
    afterMinutes: String(webhookFailing?.afterMinutes ?? 60),
    paymentNotBooked: on(settings.paymentNotBooked),
    errorRate: on(errorRate),
    percent: String(errorRate?.percent ?? 10),
    calls: String(errorRate?.calls ?? 20),
    negativeMargin: on(settings.negativeMargin),
    userBalance: userBalance?.below ?? "",
    totalBalance: totalBalance?.below ?? "",
  };
}

/** Returns the fields as `PATCH` would receive them; the schema validates them. */
function readAlerts(form: URLSearchParams): { alerts: Record<string, unknown> } {
  const below = (name: string) => {
    const amount = decimalText(form, name);
    return amount === null ? null : { below: amount };
  };
  const number = (name: string, label: string) => integerText(form, name, label) ?? undefined;
  return {
    alerts: {
      emails: (submittedText(form, "emails") ?? "").split(/[\s,;]+/).filter(Boolean),
      webhookFailing: form.has("webhookFailing")
        ? { afterMinutes: number("afterMinutes", labels["alerts.webhookFailing.afterMinutes"]) }
        : null,
      paymentNotBooked: form.has("paymentNotBooked"),
      errorRate: form.has("errorRate")
        ? {
          percent: number("percent", labels["alerts.errorRate.percent"]),
          calls: number("calls", labels["alerts.errorRate.calls"]),
        }
        : null,
      negativeMargin: form.has("negativeMargin"),
      userBalance: below("userBalance"),
      totalBalance: below("totalBalance"),
    },
  };
}

function AlertsPage(view: AlertsView) {
  const { visit: { project, here }, state, mails, values } = view;
  const firing = state.alerts.filter(({ resolvedAt }) => resolvedAt === null);
  const resolved = state.alerts.filter(({ resolvedAt }) => resolvedAt !== null);
  const hasAddress = project.alerts.emails.length > 0;
  return (
    <>
      {firing.length === 0
        ? (
          <EmptyState icon="check" title="Nothing needs your attention">
            No condition below holds.
          </EmptyState>
        )
        : <AlertTable caption="Firing" alerts={firing} here={here} />}
      {resolved.length === 0
        ? null
        : <AlertTable caption="Resolved in the last 30 days" alerts={resolved} here={here} />}
      <FormError text={view.problem} />
      <form method="post" action={here(section)}>
        <Hidden fields={{ seen: view.seen }} />
        <Conditions values={values} project={project} />
        <FormSection
          title="E-mail"
          says="Who is told, besides your webhooks. At most one e-mail in 15 minutes."
        >
          {mails ? null : (
            <p class="notice">
              This server sends no e-mail yet: set <code>SMTP_URL</code> and <code>SMTP_FROM</code>.
            </p>
          )}
          <div class="field">
            <label for="emails">{labels["alerts.emails"]}</label>
            <textarea id="emails" name="emails" rows={2} aria-describedby="emails-hint">
              {values("emails")}
            </textarea>
            <span class="hint" id="emails-hint">
              At most 10, separated by spaces or lines. A new address gets a link first, and no
              alerts until it is opened.
            </span>
          </div>
        </FormSection>
        <button type="submit" class="primary">Save</button>
      </form>
      {hasAddress
        ? <Addresses {...{ state, project, mails }} action={here(`${section}/confirm`)} />
        : null}
      {mails && hasAddress ? <MailStatus state={state} action={here(`${section}/test`)} /> : null}
    </>
  );
}

function AlertTable({ caption, alerts, here }: {
  caption: string;
  alerts: readonly Alert[];
  here: ProjectVisit["here"];
}) {
  return (
    <Table
      caption={caption}
      columns={[{ title: "Alert", lead: true }, "What", "Since", "Until"]}
      rows={alerts.map((alert) => [
        <>
          <Badge tone={alert.resolvedAt === null ? "bad" : "good"}>{ruleTitles[alert.rule]}</Badge>
        </>,
        <a href={here(alertPath(alert))}>
          {alert.about.user === undefined ? null : (
            <>
              <bdi>{alert.about.user}</bdi>:{" "}
            </>
          )}
          {alert.summary}
        </a>,
        <TimeCell at={alert.firedAt} />,
        alert.resolvedAt === null ? "–" : <TimeCell at={alert.resolvedAt} />,
      ])}
      empty=""
    />
  );
}

function Conditions({ values, project }: { values: Values; project: Project }) {
  const currency = project.currency.toUpperCase();
  const check = (name: string, label: Child) => (
    <FormCheckbox name={name} label={label} on={values(name) !== ""} />
  );
  const number = (name: string, label: string) => (
    <FormField name={name} label={label} value={values(name)} more={{ inputmode: "numeric" }} />
  );
  return (
    <>
      <FormSection title="Money" says="Payments that are missing, and models that cost too much.">
        {check("paymentNotBooked", "A payment was received, but not credited")}
        {check("negativeMargin", "A model cost more in 24 hours than was charged for it")}
      </FormSection>
      <FormSection title="Webhooks" says="An endpoint that does not accept deliveries.">
        {check("webhookFailing", "Every attempt has failed for some time")}
        <div class="fields">
          {number("afterMinutes", labels["alerts.webhookFailing.afterMinutes"])}
        </div>
      </FormSection>
      <FormSection title="Errors" says="Requests to a model that fail, in this hour and the last.">
        {check("errorRate", "Many requests to a model fail")}
        <div class="fields">
          {number("percent", labels["alerts.errorRate.percent"])}
          {number("calls", labels["alerts.errorRate.calls"])}
        </div>
      </FormSection>
      {project.mode === "shared" ? null : (
        <FormSection title="Balances" says="Empty: not watched.">
          {(["userBalance", "totalBalance"] as const).map((name) => (
            <FormField
              name={name}
              label={`${labels[`alerts.${name}.below`]}, ${currency}`}
              value={values(name)}
              {...(name === "userBalance"
                ? { hint: "Of users who were active in the last 30 days." }
                : {})}
              more={{ inputmode: "decimal" }}
            />
          ))}
        </FormSection>
      )}
    </>
  );
}

function Addresses({ state, project, mails, action }: {
  state: AlertState;
  project: Project;
  mails: boolean;
  action: string;
}) {
  return (
    <Table
      caption="E-mail addresses"
      columns={[{ title: "Address", lead: true }, "State", "Link sent"]}
      rows={addressesOf(state, project).map(({ email, confirmed, askedAt }) => [
        <bdi>{email}</bdi>,
        confirmed
          ? <Badge tone="good">confirmed</Badge>
          : <Badge tone="late">waiting for its owner</Badge>,
        <>
          {askedAt === null ? "–" : <TimeCell at={askedAt} />}
          {confirmed || !mails ? null : (
            <form method="post" action={action}>
              <Hidden fields={{ email }} />
              <button type="submit" class="small">Send again</button>
            </form>
          )}
        </>,
      ])}
      empty=""
    />
  );
}

function MailStatus({ state: { mail }, action }: { state: AlertState; action: string }) {
  return (
    <Card title="E-mail">
      <p>
        {mail.sentAt === null ? "None was sent yet." : (
          <>
            The last one was sent <TimeCell at={mail.sentAt} />.
          </>
        )}
      </p>
      {mail.error === null ? null : (
        <p class="notice">
          The last attempt failed, and will be repeated: {mail.error}
        </p>
      )}
      <form method="post" action={action}>
        <button type="submit">Send a test e-mail</button>
      </form>
    </Card>
  );
}

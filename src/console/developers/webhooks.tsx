/** @jsxImportSource @hono/hono/jsx */
import { badRequest } from "../../base/errors.ts";
import { parseWith } from "../../base/request.ts";
import { eventTypes } from "../../events/catalogue.ts";
import { isFailingLong } from "../../webhooks/subscriptions/failing.ts";
import { type CreateSubscription, createSubscriptionSchema } from "../../webhooks/schema.ts";
import type { SubscriptionView } from "../../webhooks/view.ts";
import type { ConsoleGuard, ProjectVisit } from "../guard.tsx";
import { orShowFormAgain, submittedText } from "../submitted_fields.ts";
import {
  FormCheckbox,
  FormError,
  FormField,
  FormSection,
  Hidden,
  ShownOnce,
} from "../../pages/form_parts.tsx";
import { submitOnce } from "../submit_once.ts";
import { Badge, Table, TimeCell } from "../../pages/parts.tsx";
import type { ConsoleDeps } from "../console_deps.ts";

const section = "/webhooks";

const labels = {
  url: "URL",
  events: "Events",
  description: "Description",
  customHeaders: "Custom headers",
};

/** A project's webhooks, and creating one. */
export function webhookPages(guard: ConsoleGuard, services: ConsoleDeps) {
  const { subscriptions, dispatcher, deps } = services;

  async function list(visit: ProjectVisit, problem: string | null, form = new URLSearchParams()) {
    const all = await subscriptions.list(visit.project.id, null);
    const stateOf = ({ id }: SubscriptionView) => dispatcher.stateOf(id).openUntil;
    const page = (
      <>
        <Webhooks visit={visit} all={all.toReversed()} now={deps.clock.now()} stateOf={stateOf} />
        <NewWebhook visit={visit} problem={problem} form={form} formId={deps.id("form")} />
      </>
    );
    const actions = (
      <>
        <a class="button" href={visit.here("/deliveries")}>All deliveries</a>
        <a class="button" href="#new">Create a webhook</a>
      </>
    );
    return visit.page("Webhooks", page, { section, problem, actions });
  }

  return {
    show: guard.project((visit) => list(visit, null)),
    create: guard.project(async (visit) => {
      const { project, session, here, go, page } = visit;
      const form = await visit.form();
      return await orShowFormAgain(
        async () => {
          const settings = readSubscription(form);
          const made = await submitOnce(
            deps,
            { visit, form },
            (alongside) => subscriptions.create(project.id, settings, session.by, alongside),
          );
          if (!made) return go(here(section), "already-sent");
          const shown = (
            <>
              <ShownOnce label="The signing secret" secret={made.secret} signs />
              <p>
                <a href={here(`/webhooks/${made.id}`)}>Back to the webhook</a>
              </p>
            </>
          );
          return page("A new webhook", shown, { section });
        },
        (problem) => list(visit, problem, form),
        labels,
      );
    }),
  };
}

/** Throws 400 for invalid settings of a subscription. */
function readSubscription(form: URLSearchParams): CreateSubscription {
  const headers = (submittedText(form, "customHeaders") ?? "").split(/\r?\n/).filter((line) =>
    line.trim()
  );
  const customHeaders = headers.map((line) => {
    const colon = line.indexOf(":");
    const name = line.slice(0, Math.max(colon, 0)).trim();
    if (name !== "") return [name, line.slice(colon + 1).trim()];
    throw badRequest(
      "customHeaders",
      "Each header must be on a line of its own, as ‘Name: value’.",
    );
  });
  const names = new Set(customHeaders.map(([name = ""]) => name.toLowerCase()));
  if (names.size < customHeaders.length) {
    throw badRequest(
      "customHeaders",
      `‘${labels.customHeaders}’ must not contain the same header twice.`,
    );
  }
  return parseWith(createSubscriptionSchema, {
    url: submittedText(form, "url") ?? "",
    events: form.has("event")
      ? form.getAll("event")
      : (submittedText(form, "events") ?? "").split(/[\s,]+/).filter((name) => name !== ""),
    description: submittedText(form, "description"),
    customHeaders: customHeaders.length === 0 ? null : Object.fromEntries(customHeaders),
  });
}

/** A subscription's health, as a word; how many days it has failed for, where that is long. */
export function HealthBadge({ subscription, openUntil, now }: {
  subscription: SubscriptionView;
  openUntil: number | null;
  now: number;
}) {
  const { isActive, consecutiveFailures, failingSince } = subscription;
  if (!isActive) return <Badge>inactive</Badge>;
  if (failingSince !== undefined && isFailingLong({ failingSince }, now)) {
    const days = Math.floor((now - Date.parse(failingSince)) / dayMs);
    return <Badge tone="bad">failing for {days} {days === 1 ? "day" : "days"}</Badge>;
  }
  if (openUntil !== null) return <Badge tone="bad">paused</Badge>;
  if (consecutiveFailures > 0) return <Badge tone="bad">failing</Badge>;
  return <Badge tone="good">active</Badge>;
}

const dayMs = 24 * 60 * 60 * 1000;

function Webhooks({ visit: { here }, all, now, stateOf }: {
  visit: ProjectVisit;
  all: SubscriptionView[];
  now: number;
  stateOf: (subscription: SubscriptionView) => number | null;
}) {
  return (
    <Table
      caption="Newest first"
      columns={[
        "URL",
        "State",
        "Events",
        { title: "Consecutive failures", number: true },
        "Last delivered",
      ]}
      rows={all.map((subscription) => [
        <>
          <a href={here(`/webhooks/${subscription.id}`)}>{subscription.url}</a>
          {subscription.description === undefined
            ? null
            : <div class="hint">{subscription.description}</div>}
        </>,
        <HealthBadge subscription={subscription} openUntil={stateOf(subscription)} now={now} />,
        subscription.events.slice(0, 5).join(", ") + (subscription.events.length > 5 ? ", …" : ""),
        subscription.consecutiveFailures,
        <TimeCell at={subscription.lastDeliveredAt} />,
      ])}
      empty="No webhooks yet."
    />
  );
}

function NewWebhook({ visit: { here }, problem, form, formId }: {
  visit: ProjectVisit;
  problem: string | null;
  form: URLSearchParams;
  formId: string;
}) {
  const value = (name: string, usual = "") => form.get(name) ?? usual;
  return (
    <>
      <h2 id="new">Create a webhook</h2>
      <FormError text={problem} />
      <form method="post" action={here(section)}>
        <Hidden fields={{ formId }} />
        <FormSection title="Endpoint" says="Where events are sent, as signed POST requests.">
          <FormField
            name="url"
            label={labels.url}
            value={value("url")}
            required
            hint="A public https URL."
            more={{ inputmode: "url", maxlength: "2048", placeholder: "https://" }}
          />
          <FormField
            name="description"
            label={labels.description}
            value={value("description")}
            more={{ maxlength: "512" }}
          />
        </FormSection>
        <Events value={value("events", "*")} picked={form.getAll("event")} />
        <FormSection title="Headers" says="Optional. Sent with each delivery, stored encrypted.">
          <div class="field">
            <label for="customHeaders">{labels.customHeaders}</label>
            <textarea
              id="customHeaders"
              name="customHeaders"
              rows={2}
              aria-describedby="headers-hint"
            >
              {value("customHeaders")}
            </textarea>
            <span class="hint" id="headers-hint">One per line, as ‘Name: value’.</span>
          </div>
        </FormSection>
        <button type="submit" class="primary">Create the webhook</button>
      </form>
    </>
  );
}

/** The families of events, such as `balance.*`, and the events of each. */
const families: ReadonlyMap<string, readonly string[]> = Map.groupBy(
  eventTypes,
  (type) => type.includes(".") ? `${type.split(".")[0]}.*` : "project",
);

function Events({ value, picked }: { value: string; picked: readonly string[] }) {
  return (
    <FormSection title={labels.events} says="What the endpoint is notified of.">
      <FormField
        name="events"
        label="Events by name"
        value={value}
        hint="* for all, families such as balance.*, or single events; separated by spaces."
      />
      <details open={picked.length > 0}>
        <summary>Pick from the list instead</summary>
        <div class="fields">
          {[...families].map(([family, types]) => (
            <div class="family">
              <code>{family}</code>
              {types.map((type) => (
                <FormCheckbox
                  name="event"
                  value={type}
                  label={<code>{type}</code>}
                  on={picked.includes(type)}
                />
              ))}
            </div>
          ))}
        </div>
      </details>
    </FormSection>
  );
}

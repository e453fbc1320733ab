/** @jsxImportSource @hono/hono/jsx */
import { ApiError } from "../base/errors.ts";
import { parseJson } from "../base/json.ts";
import { checkId } from "../projects/admin_guard.ts";
import { findDelivery } from "../webhooks/logs.ts";
import type { Delivery } from "../webhooks/schema.ts";
import { Status } from "./deliveries.tsx";
import type { ConsoleGuard, ProjectVisit } from "./guard.tsx";
import { formIdOf } from "./fields.ts";
import { Hidden } from "../pages/form_parts.tsx";
import { CodeBlock, Stats, Table, TimeCell } from "../pages/parts.tsx";
import type { ConsoleDeps } from "./console_deps.ts";

const section = "/webhooks";

/** One delivery: all its attempts, and the event as it was sent. */
export function deliveryPages(guard: ConsoleGuard, services: ConsoleDeps) {
  const { deps, redelivery, sessions } = services;
  return {
    show: guard.project(async (visit) => {
      const { here, page } = visit;
      const { delivery, eventText, isActive, url } = await open(services, visit);
      return page(
        "Delivery",
        <>
          <p>
            <code>{delivery.id}</code> to{" "}
            <a href={here(`/webhooks/${delivery.subscriptionId}`)}>this webhook</a>
          </p>
          <Figures delivery={delivery} />
          {isActive
            ? <Redeliver delivery={delivery} here={here} formId={deps.id("form")} />
            : <ActivateFirst delivery={delivery} here={here} />}
          <h2>Attempts</h2>
          <Attempts delivery={delivery} />
          {delivery.responseHead ? <LastResponse head={delivery.responseHead} /> : null}
          <h2>Event</h2>
          {eventText === null ? <p class="muted">The event is no longer stored.</p> : (
            <>
              <Text label="The event as JSON" text={indented(eventText)} />
              <details>
                <summary>Send it yourself</summary>
                <p class="muted">Without a signature, which needs the secret.</p>
                <CodeBlock id="as-curl" text={asCurl(url, delivery, eventText)} />
              </details>
            </>
          )}
        </>,
        { section },
      );
    }),
    redeliver: guard.project(async (visit) => {
      const { project, session, here, go } = visit;
      const { delivery: { id }, isActive } = await open(services, visit);
      if (!isActive) return go(here(`/deliveries/${id}`), "webhook-inactive");
      if (!await sessions.claim(session, formIdOf(await visit.form()))) {
        return go(here(`/deliveries/${id}`), "already-sent");
      }
      await redelivery.one(project.id, id, session.by).catch((error) => {
        // A second tab: the first one has already made it pending.
        if (!(error instanceof ApiError && error.code === "delivery_pending")) throw error;
      });
      return go(here(`/deliveries/${id}`), "redelivering");
    }),
  };
}

/** Returns the delivery in the URL, and whether its webhook is active. Throws 404. */
async function open({ deps, subscriptions }: ConsoleDeps, { project, incoming }: ProjectVisit) {
  const id = checkId(incoming.param("deliveryId"), "delivery");
  const found = await findDelivery(deps, project.id, id);
  const { isActive, url } = await subscriptions.read(
    project.id,
    found.delivery.subscriptionId,
  );
  return { ...found, isActive, url };
}

type Here = ProjectVisit["here"];

function Redeliver(
  { delivery: { id, status }, here, formId }: { delivery: Delivery; here: Here; formId: string },
) {
  if (status === "pending") return null;
  return (
    <form method="post" action={here(`/deliveries/${id}`)}>
      <Hidden fields={{ formId }} />
      <button type="submit">Redeliver</button>
    </form>
  );
}

function ActivateFirst({ delivery, here }: { delivery: Delivery; here: Here }) {
  return (
    <form method="post" action={here(`/webhooks/${delivery.subscriptionId}/enable`)}>
      <p>This webhook is inactive. Nothing is sent.</p>
      <button type="submit">Activate the webhook again</button>
    </form>
  );
}

function Figures({ delivery }: { delivery: Delivery }) {
  const { status, eventType, eventVersion, attempts, createdAt, nextRetryAt, error } = delivery;
  return (
    <Stats
      figures={[
        { label: "Status", value: <Status status={status} />, ...(error ? { note: error } : {}) },
        { label: "Event", value: <code>{eventType}</code>, note: `version ${eventVersion}` },
        { label: "Attempts", value: String(attempts) },
        { label: "Created", value: <TimeCell at={createdAt} /> },
        ...(nextRetryAt === null
          ? []
          : [{ label: "Next attempt", value: <TimeCell at={nextRetryAt} /> }]),
      ]}
    />
  );
}

function Attempts({ delivery: { history, attempts } }: { delivery: Delivery }) {
  const before = attempts - history.length;
  return (
    <Table
      caption={`Newest first; times in UTC${
        before > 0 ? `; ${before} older attempts are not stored` : ""
      }`}
      columns={[
        "When",
        { title: "Response", number: true },
        { title: "Duration, ms", number: true },
        "Error",
      ]}
      rows={history.toReversed().map(({ at, responseCode, latencyMs, error }) => [
        <TimeCell at={at} />,
        responseCode ?? "none",
        latencyMs,
        error ?? "none",
      ])}
      empty="No attempts yet."
    />
  );
}

function LastResponse({ head }: { head: string }) {
  return (
    <>
      <h2>Start of the last response</h2>
      <Text label="Start of the last response" text={head} />
    </>
  );
}

function Text({ label, text }: { label: string; text: string }) {
  return <pre tabindex={0} role="region" aria-label={label}>{text}</pre>;
}

/** The same request as a command, with the headers that are not secret. */
function asCurl(url: string, { id, eventType }: Delivery, eventText: string): string {
  const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;
  return [
    `curl ${quoted(url)}`,
    `-H 'Content-Type: application/json'`,
    `-H ${quoted(`X-Service-Event: ${eventType}`)}`,
    `-H ${quoted(`webhook-id: ${id}`)}`,
    `-d ${quoted(eventText)}`,
  ].join(" \\\n  ");
}

/** Keeps every number as it was sent. */
function indented(json: string): string {
  return JSON.stringify(parseJson(json), null, 2);
}

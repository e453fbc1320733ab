/** @jsxImportSource @hono/hono/jsx */
import { ApiError } from "../../base/errors.ts";
import { parseJson } from "../../base/json.ts";
import { checkId } from "../../projects/admin_guard.ts";
import { findDelivery } from "../../webhooks/delivery/logs.ts";
import { requestOfAttempt } from "../../webhooks/delivery/send.ts";
import type { Delivery } from "../../webhooks/schema.ts";
import { Status } from "./deliveries.tsx";
import type { ConsoleGuard, ProjectVisit } from "../guard.tsx";
import { formIdOf } from "../submitted_fields.ts";
import { Hidden } from "../../pages/form_parts.tsx";
import { CodeBlock, Stats, Table, TimeCell } from "../../pages/parts.tsx";
import type { ConsoleDeps } from "../console_deps.ts";

const section = "/webhooks";

/** One delivery: all its attempts, and the event as it was sent. */
export function deliveryPages(guard: ConsoleGuard, services: ConsoleDeps) {
  const { deps, redelivery, sessions } = services;
  return {
    show: guard.project(async (visit) => {
      const { here, page } = visit;
      const { delivery, eventText, isActive, url } = await open(services, visit);
      const sent = eventText === null ? null : await requestAsSent(services, delivery, eventText);
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
          {sent === null
            ? <p class="muted">The event is no longer stored.</p>
            : <AsSent url={url} sent={sent} isSent={delivery.history.length > 0} />}
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

/** The request of the last attempt, or of the next one where there was none. */
async function requestAsSent(
  { subscriptions, deps }: ConsoleDeps,
  delivery: Delivery,
  eventText: string,
): Promise<SentRequest | null> {
  const subscription = await subscriptions.open(delivery.projectId, delivery.subscriptionId);
  if (!subscription) return null;
  const last = delivery.history.at(-1);
  const attempt = { ...delivery, attempts: Math.max(0, delivery.attempts - (last ? 1 : 0)) };
  // Values of the subscriber's own headers may be secrets.
  const names = Object.keys(subscription.customHeaders);
  const customHeaders = Object.fromEntries(names.map((name) => [name, "…"]));
  return requestOfAttempt(
    { delivery: attempt, eventText, subscription: { ...subscription, customHeaders } },
    last?.at ?? deps.clock.now(),
  );
}

type SentRequest = ReturnType<typeof requestOfAttempt>;

function AsSent({ url, sent, isSent }: { url: string; sent: SentRequest; isSent: boolean }) {
  const { headers, body } = sent;
  const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  const { host, pathname, search } = new URL(url);
  const text = [`POST ${pathname}${search} HTTP/1.1`, `host: ${host}`, ...head, "", indented(body)];
  return (
    <>
      <h2>{isSent ? "The last request" : "The request"}</h2>
      <p class="muted">
        Signed with the secrets of now: after a rotation, the signatures differ from those that were
        sent.
      </p>
      <CodeBlock id="as-sent" text={text.join("\n")} />
      <details>
        <summary>Send it yourself</summary>
        <CodeBlock id="as-curl" text={asCurl(url, sent)} />
      </details>
    </>
  );
}

/** The request of a delivery as a curl command. */
function asCurl(url: string, { headers, body }: SentRequest): string {
  const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;
  return [
    `curl ${quoted(url)}`,
    ...Object.entries(headers).map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`),
    `--data-raw ${quoted(body)}`,
  ].join(" \\\n  ");
}

/** Keeps every number as it was sent. */
function indented(json: string): string {
  return JSON.stringify(parseJson(json), null, 2);
}

/** @jsxImportSource @hono/hono/jsx */
import type { Handler } from "../../base/handler.ts";
import { checkId } from "../../projects/admin_guard.ts";
import type { EndpointStatus } from "../../webhooks/delivery/dispatcher.ts";
import type { RedeliveryJob } from "../../webhooks/schema.ts";
import type { SubscriptionView } from "../../webhooks/view.ts";
import { deliveryList } from "./deliveries.tsx";
import type { ConsoleGuard, ProjectVisit } from "../guard.tsx";
import { FormSelect, Hidden } from "../../pages/form_parts.tsx";
import { eventTypes } from "../../events/catalogue.ts";
import {
  DeliveryChart,
  deliveryFigures,
  type RecentDeliveries,
  recentDeliveries,
} from "./delivery_chart.tsx";
import { Card, DetailList, Stats, TimeCell } from "../../pages/parts.tsx";
import type { ConsoleDeps } from "../console_deps.ts";
import { HealthBadge } from "./webhooks.tsx";

/** One webhook: its health, its actions, and its deliveries. */
export function webhookPage(guard: ConsoleGuard, services: ConsoleDeps): Handler {
  const { subscriptions, dispatcher, redelivery, deps } = services;
  return guard.project(async (visit) => {
    const { project, incoming, here, page } = visit;
    const id = subscriptionOf(visit);
    const subscription = await subscriptions.read(project.id, id);
    const jobId = incoming.query("job");
    const job = jobId === undefined
      ? null
      : await redelivery.job(project.id, checkId(jobId, "redelivery"));
    const address = here(`/webhooks/${id}`);
    const recent = await recentDeliveries(deps, project.id, id);
    const state = dispatcher.stateOf(id);
    const now = deps.clock.now();
    return page(
      "Webhook",
      <>
        {job === null ? null : <Progress job={job} />}
        <Figures {...{ subscription, state, now, recent }} />
        <DeliveryChart deliveries={recent} now={now} />
        <div class="cards">
          <About subscription={subscription} />
          {subscription.isActive
            ? <TestEvent action={here(`/webhooks/${id}/test`)} formId={deps.id("form")} />
            : null}
        </div>
        <h2>Deliveries</h2>
        {await deliveryList(services, visit, { address, subscriptionId: id })}
      </>,
      {
        section: "/webhooks",
        note: <code>{subscription.url}</code>,
        actions: <Actions visit={visit} subscription={subscription} formId={deps.id("form")} />,
      },
    );
  });
}

/** Returns the subscription id in the URL. Throws 404. */
export function subscriptionOf({ incoming }: Pick<ProjectVisit, "incoming">): string {
  return checkId(incoming.param("subscriptionId"), "subscription");
}

function Progress({ job: { status, redelivered } }: { job: RedeliveryJob }) {
  return (
    <p class="flash" role="status">
      {redelivered} deliveries are pending again.{" "}
      {status === "done" ? "That was all." : "The rest follows; reload to see the progress."}
    </p>
  );
}

/** Sends an example of any event, to see that the receiver understands it. */
function TestEvent({ action, formId }: { action: string; formId: string }) {
  return (
    <Card title="Send a test event">
      <form method="post" action={action} class="actions end">
        <Hidden fields={{ formId }} />
        <FormSelect
          name="type"
          label="Event"
          value="updated"
          options={eventTypes.map((type) => [type, type] as const)}
        />
        <button type="submit">Send</button>
      </form>
    </Card>
  );
}

function Figures({ subscription, state: { running, openUntil }, now, recent }: {
  subscription: SubscriptionView;
  state: EndpointStatus;
  now: number;
  recent: RecentDeliveries;
}) {
  const { isActive, consecutiveFailures, lastDeliveredAt } = subscription;
  const failed = consecutiveFailures > 0
    ? recent.logs.find(({ status, error }) => status !== "success" && error !== null)
    : undefined;
  const held = !isActive ? "nothing is sent" : openUntil !== null
    ? (
      <>
        nothing is sent until <TimeCell at={openUntil} />
      </>
    )
    : failed
    ? `last error: ${failed.error}`
    : "deliveries are sent";
  return (
    <Stats
      figures={[
        {
          label: "State",
          value: <HealthBadge subscription={subscription} openUntil={openUntil} now={now} />,
          note: held,
        },
        ...deliveryFigures(recent),
        {
          label: "Consecutive failures",
          value: String(consecutiveFailures),
          note: running === 0 ? "attempts" : `attempts; ${running} in progress`,
        },
        { label: "Last delivered", value: <TimeCell at={lastDeliveredAt} /> },
      ]}
    />
  );
}

function About({ subscription }: { subscription: SubscriptionView }) {
  const { id, events, description, secretSuffix, customHeaders, createdAt, createdBy } =
    subscription;
  const headers = Object.keys(customHeaders ?? {});
  const names = events.flatMap((name) => [<code>{name}</code>, " "]);
  return (
    <Card title="Details">
      <DetailList
        rows={[
          ...(description === undefined ? [] : [["Description", description] as const]),
          ["Events", <>{names}</>],
          ["Id", <code>{id}</code>],
          ["Secret", <code>…{secretSuffix}</code>],
          ...(headers.length === 0 ? [] : [["Headers", headers.join(", ")] as const]),
          [
            "Created",
            <>
              <TimeCell at={createdAt} /> by <code>{createdBy}</code>
            </>,
          ],
        ]}
      />
    </Card>
  );
}

function Actions({ visit: { here }, subscription: { id, isActive }, formId }: {
  visit: ProjectVisit;
  subscription: SubscriptionView;
  formId: string;
}) {
  const at = (verb: string) => here(`/webhooks/${id}/${verb}`);
  const send = (verb: string, title: string) => (
    <form method="post" action={at(verb)}>
      <Hidden fields={{ formId }} />
      <button type="submit">{title}</button>
    </form>
  );
  return (
    <>
      {isActive ? null : send("enable", "Activate again")}
      <a class="button" href={at("rotate")}>Rotate the secret…</a>
      {isActive
        ? (
          <>
            <a class="button" href={at("redeliver")}>Redeliver failed…</a>
            <a class="button" href={at("deactivate")}>Deactivate…</a>
          </>
        )
        : null}
    </>
  );
}

/** @jsxImportSource @hono/hono/jsx */
import { badRequest } from "../../base/errors.ts";
import { parseMoment } from "../../base/moment.ts";
import { parseWith } from "../../base/request.ts";
import { operateSubscriptionSchema } from "../../webhooks/schema.ts";
import { isEventType } from "../../events/example.ts";
import { sendTestEvent } from "../../webhooks/subscriptions/test_event.ts";
import type { ConsoleGuard, ProjectVisit } from "../guard.tsx";
import { formIdOf, integerText, orShowFormAgain, submittedText } from "../submitted_fields.ts";
import { Confirm, FormError, FormField, Hidden, ShownOnce } from "../../pages/form_parts.tsx";
import { submitOnce } from "../submit_once.ts";
import type { ConsoleDeps } from "../console_deps.ts";
import { seeOther } from "../../pages/response.tsx";
import { subscriptionOf } from "./webhook.tsx";

const section = "/webhooks";
const overlapHours = 24;

/** The actions on a webhook. Those that cannot be undone ask for confirmation. */
export function webhookActions(guard: ConsoleGuard, services: ConsoleDeps) {
  const { subscriptions, sessions } = services;

  async function open(visit: ProjectVisit) {
    const subscription = await subscriptions.read(visit.project.id, subscriptionOf(visit));
    return { subscription, address: visit.here(`/webhooks/${subscription.id}`) };
  }

  return {
    ...secretRotation(guard, services, open),
    ...failedRedelivery(guard, services, open),
    confirmDeactivate: guard.project(async (visit) => {
      const { subscription: { url }, address } = await open(visit);
      const says = (
        <p>
          Nothing is sent to <code>{url}</code>{" "}
          any more, and pending deliveries end as errors. Events that happen while it is inactive
          are not stored for it. The webhook and its deliveries remain, and it can be activated
          again.
        </p>
      );
      const confirm = { says, button: "Deactivate", action: `${address}/deactivate` };
      return visit.page("Deactivate this webhook?", <Confirm {...confirm} back={address} />, {
        section,
      });
    }),
    deactivate: guard.project(async (visit) => {
      const { subscription: { id }, address } = await open(visit);
      await subscriptions.deactivate(visit.project.id, id, visit.session.by);
      return visit.go(address, "webhook-deactivated");
    }),
    enable: guard.project(async (visit) => {
      const { subscription: { id }, address } = await open(visit);
      const wish = operateSubscriptionSchema.parse({ isActive: true });
      await subscriptions.operate(visit.project.id, id, wish, visit.session.by);
      return visit.go(address, "webhook-reenabled");
    }),
    test: guard.project(async (visit) => {
      const { subscription, address } = await open(visit);
      const form = await visit.form();
      const formId = formIdOf(form);
      const type = submittedText(form, "type") ?? "updated";
      if (!isEventType(type)) throw badRequest("type", "This event does not exist.");
      if (!await sessions.claim(visit.session, formId)) return visit.go(address, "already-sent");
      const { by } = visit.session;
      await sendTestEvent(services, subscription, { type, by });
      return visit.go(address, "test-sent");
    }),
  };
}

/** The error of the submitted form, if any. */
interface Again {
  problem: string | null;
}

type Open = (visit: ProjectVisit) => Promise<{
  subscription: { id: string; isActive: boolean; secretSuffix: string; url: string };
  address: string;
}>;

function secretRotation(guard: ConsoleGuard, { subscriptions, deps }: ConsoleDeps, open: Open) {
  async function show(
    visit: ProjectVisit,
    { problem, hours = String(overlapHours) }: Again & { hours?: string | undefined },
  ) {
    const { subscription: { secretSuffix }, address } = await open(visit);
    const page = (
      <>
        <FormError text={problem} />
        <p>
          A new secret is created and shown once. The one that ends in <code>…{secretSuffix}</code>
          {" "}
          keeps signing beside it for the hours below, and is the only one to sign{" "}
          <code>X-Service-Signature</code>{" "}
          until then: a receiver that checks that header must accept both. After that, receivers
          that only know the old one reject deliveries.
        </p>
        <form method="post" action={`${address}/rotate`}>
          <Hidden fields={{ formId: deps.id("form") }} />
          <FormField
            name="hours"
            label="Hours during which both secrets sign"
            value={hours}
            hint="0 to 168. 0 if the old secret has leaked."
            more={{ inputmode: "numeric" }}
          />
          <p class="actions">
            <button type="submit" class="danger">Rotate the secret</button>
            <a class="button" href={address}>Cancel</a>
          </p>
        </form>
      </>
    );
    return visit.page("Rotate the secret?", page, { section, problem });
  }

  return {
    confirmRotate: guard.project((visit) => show(visit, { problem: null })),
    rotate: guard.project(async (visit) => {
      const { project, session, go } = visit;
      const form = await visit.form();
      return await orShowFormAgain(async () => {
        const { subscription: { id }, address } = await open(visit);
        const hours = integerText(form, "hours", "Hours") ?? overlapHours;
        if (hours > 168) throw badRequest("hours", "‘Hours’ must be 0 to 168.");
        const wish = parseWith(operateSubscriptionSchema, {
          rotateSecret: true,
          overlapSeconds: hours * 3600,
        });
        const made = await submitOnce(
          deps,
          { visit, form },
          (alongside) => subscriptions.operate(project.id, id, wish, session.by, alongside),
        );
        if (!made) return go(address, "already-sent");
        const shown = (
          <>
            <ShownOnce label="The new signing secret" secret={made.secret} signs />
            <p>
              <a href={address}>Back to the webhook</a>
            </p>
          </>
        );
        return visit.page("The secret is rotated", shown, { section });
      }, (problem) => show(visit, { problem, hours: form.get("hours") ?? undefined }));
    }),
  };
}

function failedRedelivery(
  guard: ConsoleGuard,
  { redelivery, sessions, deps }: ConsoleDeps,
  open: Open,
) {
  async function show(
    visit: ProjectVisit,
    { problem, since }: Again & { since?: string | undefined },
  ) {
    const { subscription: { isActive, url }, address } = await open(visit);
    if (!isActive) return visit.go(address, "webhook-inactive");
    const yesterday = new Date(deps.clock.now() - 24 * 60 * 60 * 1000).toISOString().slice(0, 16);
    const page = (
      <>
        <FormError text={problem} />
        <p>
          Every delivery to <code>{url}</code>{" "}
          that was created since then and ended as an error is sent again, with as many attempts as
          a new one. A receiver that accepted some of them before gets them twice, with the same
          delivery id.
        </p>
        <form method="post" action={`${address}/redeliver`}>
          <Hidden fields={{ formId: deps.id("form") }} />
          <FormField
            name="since"
            label="Since, UTC"
            type="datetime-local"
            value={since ?? yesterday}
            required
          />
          <p class="actions">
            <button type="submit" class="primary">Redeliver</button>
            <a class="button" href={address}>Cancel</a>
          </p>
        </form>
      </>
    );
    return visit.page("Redeliver failed deliveries?", page, {
      section,
      problem,
    });
  }

  return {
    confirmRedeliverAll: guard.project((visit) => show(visit, { problem: null })),
    redeliverAll: guard.project(async (visit) => {
      const { project, session, go, incoming } = visit;
      const form = await visit.form();
      return await orShowFormAgain(async () => {
        const { subscription: { id: subscriptionId, isActive }, address } = await open(visit);
        if (!isActive) return go(address, "webhook-inactive");
        const since = parseMoment(`${submittedText(form, "since")}Z`);
        if (since === null) throw badRequest("since", "‘Since’ is not a valid time.");
        if (!await sessions.claim(session, formIdOf(form))) return go(address, "already-sent");
        const job = await redelivery.all(project.id, { subscriptionId, since }, session.by);
        return seeOther(`${address}?job=${job.id}`, incoming.requestId);
      }, (problem) => show(visit, { problem, since: form.get("since") ?? undefined }));
    }),
  };
}

import { z } from "zod";
import { idOf, time } from "../base/fields.ts";
import type { Project } from "../projects/schema.ts";
import { type Alert, alertRules, type AlertState } from "./alert.ts";

const alertSchema = z.object({
  id: idOf("alr", "The alert's id, the same in its events."),
  rule: z.enum(alertRules).meta({ description: "The field of the setting `alerts`." }),
  summary: z.string().meta({ description: "A sentence in English, as of when it fired." }),
  firedAt: time,
  resolvedAt: time.nullable().meta({ description: "Null while the condition holds." }),
  subscriptionId: z.string().nullable().meta({ description: "The webhook that is failing." }),
  checkoutSessionId: z.string().nullable().meta({ description: "The payment." }),
  model: z.string().nullable(),
  user: z.string().nullable(),
}).meta({ id: "Alert" });

/** A project's alerts, and how its e-mails went. */
export const alertsViewSchema = z.object({
  alerts: z.array(alertSchema).meta({
    description: "Those that fire, the last first; then up to 50 that were resolved in 30 days.",
  }),
  mail: z.object({
    isConfigured: z.boolean().meta({ description: "Whether this server sends e-mail." }),
    sentAt: time.nullable().meta({ description: "When the last e-mail was sent." }),
    error: z.string().nullable().meta({
      description: "Why the last attempt failed; it is repeated.",
    }),
    addresses: z.array(z.object({
      email: z.string(),
      confirmed: z.boolean().meta({
        description: "Whether its owner has opened the link that it was sent. If not, it gets no " +
          "alerts.",
      }),
      askedAt: time.nullable().meta({ description: "When it was last sent the link." }),
    })).meta({ description: "The addresses of the setting `alerts.emails`." }),
  }),
});

/** Returns a project's alerts as the API shows them. */
export function viewAlerts(
  state: AlertState,
  { isConfigured, project }: { isConfigured: boolean; project: Project },
): z.output<typeof alertsViewSchema> {
  const { alerts, mail: { sentAt, error } } = state;
  const addresses = addressesOf(state, project).map(({ askedAt, ...rest }) => ({
    ...rest,
    askedAt: isoOf(askedAt),
  }));
  return {
    alerts: alerts.map(viewAlert),
    mail: { isConfigured, sentAt: isoOf(sentAt), error, addresses },
  };
}

/** A project's addresses for alerts: whether they are confirmed, and when they were asked. */
export function addressesOf(
  { asked = {} }: AlertState,
  { alerts, unconfirmedEmails = [] }: Project,
): { email: string; confirmed: boolean; askedAt: number | null }[] {
  return (alerts?.emails ?? []).map((email) => ({
    email,
    confirmed: !unconfirmedEmails.includes(email),
    askedAt: asked[email] ?? null,
  }));
}

function isoOf(at: number | null): string | null {
  return at === null ? null : new Date(at).toISOString();
}

function viewAlert({ id, rule, summary, firedAt, resolvedAt, about }: Alert) {
  const { subscriptionId = null, sessionId = null, model = null, user = null } = about;
  return {
    id,
    rule,
    summary,
    firedAt: new Date(firedAt).toISOString(),
    resolvedAt: resolvedAt === null ? null : new Date(resolvedAt).toISOString(),
    subscriptionId,
    checkoutSessionId: sessionId,
    model,
    user,
  };
}

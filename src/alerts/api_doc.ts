import { z } from "zod";
import { type EndpointDoc, type EndpointDocs, responseDocs } from "../base/endpoint_doc.ts";
import { idOf } from "../base/fields.ts";
import { alertsViewSchema } from "./view.ts";

const path = z.object({ projectId: idOf("pw", "The project.") });
const noProject = { status: 404, code: "not_found", when: "The project does not exist." } as const;

const example = {
  alerts: [{
    id: "alr_01K9Z0C8Q4R7T2V5X8Z1B3D5F7",
    rule: "errorRate" as const,
    summary: "12 % of 240 calls of gpt-4o-mini failed.",
    firedAt: "2026-01-31T09:30:00.000Z",
    resolvedAt: null,
    subscriptionId: null,
    checkoutSessionId: null,
    model: "gpt-4o-mini",
    user: null,
  }],
  mail: {
    isConfigured: true,
    sentAt: "2026-01-31T09:30:02.000Z",
    error: null,
    addresses: [
      { email: "owner@my.app", confirmed: true, askedAt: "2026-01-02T08:00:00.000Z" },
    ],
  },
};

const listAlerts: EndpointDoc = {
  tag: "Operations",
  access: "operator",
  operationId: "listAlerts",
  summary: "List alerts",
  description: "The conditions of the project's setting `alerts` that hold, and those that held.",
  path,
  answers: { 200: responseDocs("The alerts.", alertsViewSchema, { firing: example }) },
  errors: [
    { status: 400, code: "invalid_value", when: "The project's id is not valid." },
    noProject,
  ],
};

const testAlerts: EndpointDoc = {
  tag: "Operations",
  access: "operator",
  operationId: "sendTestEmail",
  summary: "Send a test e-mail",
  description:
    "Sends an e-mail to the confirmed addresses of the project's setting `alerts.emails`.",
  path,
  answers: {
    200: responseDocs("The mail server accepted it.", z.object({ sent: z.literal(true) }), {
      sent: { sent: true },
    }),
  },
  errors: [
    { status: 400, code: "invalid_value", when: "The project's alerts name no address." },
    { status: 400, code: "address_not_confirmed", when: "None of the addresses is confirmed." },
    { status: 400, code: "mail_not_configured", when: "`SMTP_URL` is not set." },
    { status: 400, code: "mail_too_often", when: "The last one was sent within a minute." },
    { status: 502, code: "mail_failed", when: "The mail server did not accept the e-mail." },
    noProject,
  ],
};

/** The API documentation of alerts. */
export const alertApiDoc: EndpointDocs = {
  "/v1/admin/projects/:projectId/alerts": { GET: listAlerts },
  "/v1/admin/projects/:projectId/alerts/test-email": { POST: testAlerts },
};

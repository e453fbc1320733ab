import { z } from "zod";
import { emailSchema } from "../base/email.ts";
import { withoutPattern } from "../base/fields.ts";
import { moneyDecimal } from "./price_schema.ts";

const below = z.strictObject({
  below: moneyDecimal("The least that is fine.").refine((amount) => amount !== "0", {
    error: "must be more than 0",
  }),
});

/** What a project's owner is notified of, and where. */
export const alertsSchema = z.strictObject({
  emails: z.array(emailSchema).max(10).default([])
    .meta({
      description:
        "Who gets an e-mail when an alert fires or is resolved. Needs `SMTP_URL`. A new " +
        "address is sent a link first, and gets nothing else until its owner has opened it.",
      items: { type: "string", format: "email" },
      override: withoutPattern,
    }),
  webhookFailing: z.strictObject({
    afterMinutes: z.int().min(1).max(10_080).default(60).meta({
      description: "How long all attempts at a subscription have failed.",
    }),
  }).nullable().default(null).meta({ description: "A webhook is failing." }),
  paymentNotBooked: z.boolean().default(false).meta({
    description: "A payment was reported, and no money was added to a balance.",
  }),
  errorRate: z.strictObject({
    percent: z.int().min(1).max(100).default(10),
    calls: z.int().min(1).max(1_000_000).default(20).meta({
      description: "Below so many calls nothing is said.",
    }),
  }).nullable().default(null).meta({
    description: "The share of a model's calls that failed, in this hour and the one before.",
  }),
  userBalance: below.nullable().default(null).meta({
    description: "The balance of a user who was active in the last 30 days. Not in `shared` mode.",
  }),
  totalBalance: below.nullable().default(null).meta({
    description: "The sum of all users' balances. Not in `shared` mode.",
  }),
  negativeMargin: z.boolean().default(false).meta({
    description: "A model cost more than was charged for it, in the last 24 hours.",
  }),
}).meta({
  id: "Alerts",
  description: "What the owner is notified of: by `alert.*` events, and by e-mail. " +
    "Conditions are checked once a minute.",
});

/** The settings of a project's alerts, as stored. */
export type AlertSettings = z.output<typeof alertsSchema>;

/** The setting of a project without alerts. */
export const noAlerts: AlertSettings = alertsSchema.parse({});

import { fromBytes, toBytes } from "../base/json.ts";

/** The conditions that alerts watch, in the order in which pages list them. */
export const alertRules = [
  "paymentNotBooked",
  "webhookFailing",
  "errorRate",
  "negativeMargin",
  "userBalance",
  "totalBalance",
] as const;
/** One condition: a field of the setting `alerts`. */
export type AlertRule = typeof alertRules[number];

/** The subject of a condition. At most one field is set; none for the whole project. */
interface AlertSubject {
  subscriptionId?: string;
  sessionId?: string;
  model?: string;
  user?: string;
}

/** A condition that holds now. */
export interface Finding {
  rule: AlertRule;
  about: AlertSubject;
  /** A sentence for people, without the user's name. */
  summary: string;
}

/** A condition that held at some time. Times in milliseconds since 1970. */
export interface Alert extends Finding {
  id: string;
  firedAt: number;
  /** Null while it holds. */
  resolvedAt: number | null;
  /** The state of the alert that an e-mail last described. */
  mailed: "nothing" | "fired" | "resolved";
}

/** A project's alerts, the last fired first, and how its e-mails went. */
export interface AlertState {
  alerts: readonly Alert[];
  mail: MailState;
  /** When addresses were sent their link, in milliseconds since 1970. */
  asked?: Readonly<Record<string, number>>;
}

/** How the e-mails of a project went. Times in milliseconds since 1970. */
export interface MailState {
  /** The next one is sent no earlier. */
  nextAt: number;
  sentAt: number | null;
  /** Errors in a row. */
  failures: number;
  /** The last error, until one is sent. */
  error: string | null;
}

/** The state of a project that never had an alert. */
const noAlertState: AlertState = {
  alerts: [],
  mail: { nextAt: 0, sentAt: null, failures: 0, error: null },
};

/** Decodes a project's alerts. */
export function decodeAlerts(value: Uint8Array | null | undefined): AlertState {
  return value ? fromBytes<AlertState>(value) : noAlertState;
}

/** Encodes a project's alerts. */
export function encodeAlerts(state: AlertState): Uint8Array {
  return toBytes({ ...state });
}

/** Identifies a condition: it has at most one alert that is firing. */
export function conditionOf({ rule, about }: Finding): string {
  const { subscriptionId, sessionId, model, user } = about;
  return JSON.stringify([rule, subscriptionId ?? sessionId ?? model ?? user ?? null]);
}

/** What each condition is called on pages and in e-mails. */
export const ruleTitles: Readonly<Record<AlertRule, string>> = {
  paymentNotBooked: "Payment not booked",
  webhookFailing: "Webhook failing",
  errorRate: "Error rate",
  negativeMargin: "Negative margin",
  userBalance: "Low balance of a user",
  totalBalance: "Low balance of all users",
};

/** The page of the console that shows more, as a path below the project's. */
export function alertPath({ rule, about: { subscriptionId, model, user } }: Finding): string {
  switch (rule) {
    case "paymentNotBooked":
      return "/activity#unbooked";
    case "webhookFailing":
      return `/webhooks/${subscriptionId}`;
    case "errorRate":
      return `/requests?${new URLSearchParams({ model: model ?? "", outcome: "failed" })}`;
    case "negativeMargin":
      return "/pricing";
    case "userBalance":
      return `/users/one?${new URLSearchParams({ user: user ?? "" })}`;
    case "totalBalance":
      return "/users";
  }
}

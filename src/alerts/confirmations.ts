import { inboxOf } from "../base/email.ts";
import { isGoingOn } from "../base/lasting.ts";
import { ApiError, badRequest, errorFields } from "../base/errors.ts";
import { fromBytes, toBytes } from "../base/json.ts";
import type { Deps } from "../deps.ts";
import type { ProjectAdmin } from "../projects/admin.ts";
import { type AuditActor, auditRow, recordAction } from "../projects/audit.ts";
import type { ProjectCache } from "../projects/project_cache.ts";
import type { Project } from "../projects/schema.ts";
import { attemptsToWrite } from "../store/backoff.ts";
import { alertsKey, sentConfirmationsKey } from "../store/keys.ts";
import { type ExpiringKind, replacingExpiry } from "../store/expiry.ts";
import { emptyWrite } from "../store/kv.ts";
import type { Secrets } from "../store/secrets.ts";
import { createSignedTokens } from "../store/signed_tokens.ts";
import { decodeAlerts, encodeAlerts } from "./alert.ts";
import { confirmationMail } from "./mail.tsx";

/** An address for alerts, and the project that names it. */
export interface NamedAddress {
  project: Project;
  email: string;
  isConfirmed: boolean;
}

/** Asks the owners of addresses for alerts whether they want them: nothing else is sent before. */
export interface Confirmations {
  /** Sends a project's unconfirmed addresses their links, unless they have got them. */
  sendDue(project: Project): Promise<void>;
  /**
   * Sends an address its link again. Throws 400 where it is not waiting for one, or has got too
   * many; 502 with the mail server's reason.
   */
  sendAgain(project: Project, email: string, by: AuditActor): Promise<void>;
  /** Returns what a link is for; null when it is forged, has expired, or is no longer needed. */
  read(token: string): Promise<NamedAddress | null>;
  /** Confirms the address of a link, once or again. */
  confirm(named: NamedAddress, by: AuditActor): Promise<void>;
}

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;
const linkLifetimeMs = 7 * dayMs;
/** Attempts a day: nobody's inbox is filled by a project, nor by many of them. */
const perAddress = 3;
const perProject = 20;
const perInstance = 500;
/** How long after an attempt the next one may be: by hand, and by itself after a failed one. */
const pauseMs = { again: minuteMs, retry: hourMs };

/** The attempts of the last day. */
export const sentConfirmationRows: ExpiringKind = {
  prefix: sentConfirmationsKey,
  endsAt: (value) => Math.max(...fromBytes<Sent>(value).attempts.map(({ at }) => at)) + dayMs,
};

/** An attempt to send a link. */
interface Attempt {
  projectId: string;
  /** A hash of the inbox. */
  inbox: string;
  /** In milliseconds since 1970. */
  at: number;
}

interface Sent {
  attempts: Attempt[];
}

interface ConfirmationServices {
  deps: Pick<
    Deps,
    "kv" | "committer" | "clock" | "id" | "log" | "config" | "sendMail" | "randomBytes"
  >;
  admin: Pick<ProjectAdmin, "change">;
  projectCache: Pick<ProjectCache, "refresh">;
  secrets: Secrets;
}

/** Creates the confirmation of addresses. */
export async function createConfirmations(
  { deps, admin, projectCache, secrets }: ConfirmationServices,
): Promise<Confirmations> {
  const { kv, committer, clock, log } = deps;
  const links = await createSignedTokens(secrets, "alert addresses");

  /** Counts an attempt before it is made. Throws 400 `mail_too_often`. */
  async function count(projectId: string, email: string, pause: number): Promise<void> {
    const inbox = inboxOf(email);
    for await (const _ of attemptsToWrite(deps)) {
      const { value, version } = await kv.get(sentConfirmationsKey);
      const now = clock.now();
      const all = value ? fromBytes<Sent>(value).attempts : [];
      const attempts = all.filter(({ at }) => isGoingOn(at, dayMs, now));
      requireFew(attempts, { projectId, inbox, now, pause });
      const counted = { attempts: [...attempts, { projectId, inbox, at: now }] };
      const write = {
        ...emptyWrite(),
        checks: [{ key: sentConfirmationsKey, version }],
        ...replacingExpiry(
          sentConfirmationRows,
          { key: sentConfirmationsKey, value: toBytes(counted) },
          value,
        ),
      };
      if ((await committer.commit(write)) !== null) return;
    }
    throw new ApiError(503, { message: "The server is busy. Try again.", code: "contended" });
  }

  async function send(project: Project, email: string, pause: number): Promise<void> {
    const { sendMail, config: { baseUrl } } = deps;
    if (!sendMail) throw mailNotConfigured();
    await count(project.id, email, pause);
    const token = await links.make([project.id, email, clock.now() + linkLifetimeMs]);
    const url = `${baseUrl}/alerts/confirm/${token}`;
    await sendMail(confirmationMail({ baseUrl, to: [email], url }, deps.id("alr")))
      .catch((cause) => {
        const message = `The mail server did not accept the e-mail: ${messageOf(cause)}`;
        throw new ApiError(502, { message, code: "mail_failed", cause });
      });
    await recordSent(project, email);
  }

  async function recordSent({ id, alerts }: Project, email: string): Promise<void> {
    const key = alertsKey(id);
    const named = new Set(alerts?.emails);
    for await (const _ of attemptsToWrite(deps)) {
      const { value, version } = await kv.get(key);
      const state = decodeAlerts(value);
      const before = Object.entries(state.asked ?? {}).filter(([other]) => named.has(other));
      const asked = { ...Object.fromEntries(before), [email]: clock.now() };
      const sets = [{ key, value: encodeAlerts({ ...state, asked }) }];
      const write = { ...emptyWrite(), checks: [{ key, version }], sets };
      if ((await committer.commit(write)) !== null) return;
    }
  }

  return {
    async sendDue(project) {
      const { id, unconfirmedEmails = [] } = project;
      if (!deps.sendMail || unconfirmedEmails.length === 0) return;
      const { asked = {} } = decodeAlerts((await kv.get(alertsKey(id))).value);
      for (const email of new Set(unconfirmedEmails)) {
        if (email in asked) continue;
        await send(project, email, pauseMs.retry).catch((error) => {
          // It is tried again, but not at once.
          if (error instanceof ApiError && error.code === "mail_too_often") return;
          log("warn", "alert_confirmation_failed", { project: id, ...errorFields(error) });
        });
      }
    },
    async sendAgain(project, email, by) {
      const { id, unconfirmedEmails = [] } = project;
      if (!unconfirmedEmails.includes(email)) {
        throw badRequest("email", "This address is not waiting for a confirmation.");
      }
      await send(project, email, pauseMs.again);
      const auditAction = { by, action: "alerts.confirmation_sent", target: id } as const;
      await recordAction(deps, id, { ...auditAction, detail: { email } });
    },
    async read(token) {
      const value = await links.read(token);
      if (!Array.isArray(value)) return null;
      const [projectId, email, expiresAt] = value;
      if (expiresAt <= clock.now()) return null;
      const { project } = await projectCache.refresh(projectId);
      const { alerts, unconfirmedEmails = [] } = project;
      if (!alerts?.emails.includes(email)) return null;
      return { project, email, isConfirmed: !unconfirmedEmails.includes(email) };
    },
    async confirm({ project: { id }, email, isConfirmed }, by) {
      if (isConfirmed) return;
      await admin.change(id, ({ project }, write) => {
        const waiting = project.unconfirmedEmails ?? [];
        const unconfirmedEmails = waiting.filter((other) => other !== email);
        if (unconfirmedEmails.length < waiting.length) {
          const auditAction = { by, action: "alerts.address_confirmed", target: id } as const;
          write.sets.push(auditRow(deps, id, { ...auditAction, detail: { email } }));
        }
        return { project: { ...project, unconfirmedEmails }, events: [] };
      });
    },
  };
}

function requireFew(
  attempts: readonly Attempt[],
  { projectId, inbox, now, pause }: Omit<Attempt, "at"> & { now: number; pause: number },
): void {
  const own = attempts.filter((attempt) => attempt.inbox === inbox);
  if (own.some(({ at }) => isGoingOn(at, pause, now))) {
    throw tooOften("The last e-mail to this address was sent less than a minute ago.");
  }
  if (own.length >= perAddress) {
    throw tooOften(`This address got ${perAddress} of these e-mails within a day. Wait a day.`);
  }
  const ofProject = attempts.filter((attempt) => attempt.projectId === projectId);
  if (ofProject.length < perProject && attempts.length < perInstance) return;
  throw tooOften("Too many of these e-mails were sent within a day. Wait a day.");
}

function tooOften(message: string): ApiError {
  return badRequest(null, message, "mail_too_often");
}

/** The error where a server sends no e-mail. */
export function mailNotConfigured(): ApiError {
  const message = "This server sends no e-mail: SMTP_URL and SMTP_FROM are not set.";
  return badRequest(null, message, "mail_not_configured");
}

const errorCharsMax = 200;

/** Returns an error's message, shortened. */
export function messageOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).slice(0, errorCharsMax);
}

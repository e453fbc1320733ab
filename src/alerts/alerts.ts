import { BoundedMap } from "../base/bounded_map.ts";
import { ApiError, badRequest, errorFields } from "../base/errors.ts";
import { timeOfId } from "../base/ids.ts";
import type { Deps } from "../deps.ts";
import { readForgetJob } from "../ledger/forget_account.ts";
import { type AuditActor, recordAction } from "../projects/audit.ts";
import { confirmedEmails } from "../projects/alert_emails.ts";
import type { CommitWithEvents } from "../projects/commit_with_events.ts";
import type { Project } from "../projects/schema.ts";
import { decodeProject } from "../projects/project_row.ts";
import { attemptsToWrite } from "../store/backoff.ts";
import { alertsKey, movedKey, projectsPrefix } from "../store/keys.ts";
import { emptyWrite } from "../store/kv.ts";
import { createRounds } from "../store/scan.ts";
import {
  type Alert,
  alertRules,
  type AlertState,
  decodeAlerts,
  encodeAlerts,
  type MailState,
} from "./alert.ts";
import { alertEvents, evaluate } from "./evaluate.ts";
import { type Confirmations, mailNotConfigured, messageOf } from "./confirmations.ts";
import { findConditions, type FindServices, isWatched } from "./find.ts";
import { alertMail, sampleMail } from "./mail.tsx";

/** Notifies owners of conditions that their projects watch. */
export interface Alerts {
  /**
   * Checks the conditions of all projects once a minute, a bounded part at each call, and begins to
   * send e-mails. Events and the state of alerts are one write.
   */
  sweep(): Promise<void>;
  /** A project's alerts. */
  read(projectId: string): Promise<AlertState>;
  /** Sends an e-mail to the addresses of a project. Throws 400, or 502 with the server's reason. */
  sendSample(project: Project, by: AuditActor): Promise<void>;
}

const minuteMs = 60_000;
const roundMs = minuteMs;
const projectsPerSweep = 50;
/** An e-mail of a project is followed by the next one no sooner. */
const mailEveryMs = 15 * minuteMs;
const mailRetryMs = { first: minuteMs, most: 60 * minuteMs };
/** An alert that fired and was resolved before an e-mail went out is told for so long. */
const oldNewsMs = 2 * 60 * minuteMs;
const samplesMax = 1_000;

interface AlertServices extends Omit<FindServices, "deps"> {
  deps: Pick<
    Deps,
    "kv" | "committer" | "clock" | "id" | "log" | "config" | "sendMail" | "randomBytes"
  >;
  commit: CommitWithEvents;
  confirmations: Pick<Confirmations, "sendDue">;
}

/** Creates the alerts of all projects. */
export function createAlerts(services: AlertServices): Alerts {
  const { deps, commit, confirmations } = services;
  const { kv, clock, id: makeId, log } = deps;
  const rounds = createRounds(kv, projectsPrefix, projectsPerSweep);
  let roundAt = -Infinity;
  let mailing: Promise<void> | null = null;
  /** When a project last sent a test e-mail. */
  const samples = new BoundedMap<string, number>(samplesMax);

  async function nextProjects(): Promise<Project[]> {
    if (rounds.isAtStart) {
      if (clock.elapsed() - roundAt < roundMs) return [];
      roundAt = clock.elapsed();
    }
    const rows = await rounds.next();
    return rows.flatMap(({ value }) => value ? [decodeProject(value)] : []);
  }

  /** Checks a project's conditions. Returns its alerts. */
  async function check(projectId: string): Promise<AlertState> {
    let latest: AlertState | null = null;
    await commit(projectId, async (project) => {
      const keys = [alertsKey(projectId), movedKey(projectId)] as const;
      const [row, moved] = await kv.getMany(keys);
      const state = await withoutErased(kv, projectId, decodeAlerts(row?.value));
      latest = state;
      const findings = await findConditions(services, project);
      const evaluation = evaluate(state, findings, { now: clock.now(), id: makeId });
      if (!evaluation) return null;
      latest = evaluation.state;
      return {
        write: {
          ...emptyWrite(),
          // A user who was erased since is named by none of them.
          checks: [
            { key: keys[0], version: row?.version ?? null },
            { key: keys[1], version: moved?.version ?? null },
          ],
          sets: [{ key: keys[0], value: encodeAlerts(evaluation.state) }],
        },
        events: alertEvents(evaluation),
      };
    });
    return latest ?? decodeAlerts(null);
  }

  /** Changes how a project's e-mails went, and which alerts they told of. */
  async function recordMail(
    projectId: string,
    change: (state: AlertState) => AlertState,
  ): Promise<void> {
    const key = alertsKey(projectId);
    for await (const _ of attemptsToWrite(deps)) {
      const { value, version } = await kv.get(key);
      if (!value) return;
      const sets = [{ key, value: encodeAlerts(change(decodeAlerts(value))) }];
      const write = { ...emptyWrite(), checks: [{ key, version }], sets };
      if ((await deps.committer.commit(write)) !== null) return;
    }
  }

  async function mail(project: Project, state: AlertState): Promise<void> {
    const { sendMail, config: { baseUrl } } = deps;
    const to = confirmedEmails(project);
    const news = alertsToMail(state, clock.now());
    if (!sendMail || to.length === 0 || news.length === 0) return;
    const waitMs = state.mail.nextAt - clock.now();
    // A longer time than possible means that a clock was set.
    if (waitMs > 0 && waitMs <= Math.max(mailEveryMs, mailRetryMs.most)) return;
    let error: string | null = null;
    try {
      await sendMail(alertMail({ project, baseUrl, to }, news));
    } catch (cause) {
      error = messageOf(cause);
      log("warn", "alert_mail_failed", { project: project.id, ...errorFields(cause) });
    }
    const told = new Map(news.map(({ id, resolvedAt }) => [id, resolvedAt]));
    await recordMail(project.id, ({ alerts, mail, ...rest }) => ({
      ...rest,
      alerts: error === null ? alerts.map((alert) => marked(alert, told)) : alerts,
      mail: afterMail(mail, error, clock.now()),
    }));
  }

  return {
    async sweep() {
      const due: [Project, AlertState][] = [];
      const asking: Project[] = [];
      const projects = await nextProjects();
      const rows = await kv.getMany(projects.map(({ id }) => alertsKey(id)));
      for (const [at, project] of projects.entries()) {
        const settings = project.alerts;
        if (project.status === "active") asking.push(project);
        const isIdle = !rows[at]?.value && !alertRules.some((rule) => isWatched(settings, rule));
        if (isIdle || project.status === "archived") continue;
        await check(project.id).then((state) => due.push([project, state])).catch((error) =>
          log("warn", "alerts_not_checked", { project: project.id, ...errorFields(error) })
        );
      }
      // A mail server that is slow must not delay the other sweeps.
      mailing ??= (async () => {
        for (const project of asking) await confirmations.sendDue(project);
        for (const [project, state] of due) await mail(project, state);
      })().catch((error) => log("warn", "alert_mail_not_recorded", errorFields(error)))
        .finally(() => mailing = null);
    },
    async read(projectId) {
      return decodeAlerts((await kv.get(alertsKey(projectId))).value);
    },
    async sendSample(project, by) {
      const { sendMail, config: { baseUrl } } = deps;
      const to = confirmedEmails(project);
      if (project.alerts.emails.length === 0) {
        throw badRequest("alerts.emails", "The project's alerts name no e-mail address.");
      }
      if (!sendMail) throw mailNotConfigured();
      if (to.length === 0) {
        const message = "No e-mail address of the project's alerts is confirmed yet.";
        throw badRequest("alerts.emails", message, "address_not_confirmed");
      }
      const sampledAt = samples.get(project.id) ?? -Infinity;
      if (clock.elapsed() - sampledAt < minuteMs) {
        const message = "The last test e-mail was sent less than a minute ago.";
        throw badRequest(null, message, "mail_too_often");
      }
      samples.set(project.id, clock.elapsed());
      try {
        await sendMail(sampleMail({ project, baseUrl, to }, makeId("alr")));
      } catch (cause) {
        const message = `The mail server did not accept the e-mail: ${messageOf(cause)}`;
        throw new ApiError(502, { message, code: "mail_failed", cause });
      }
      await recordAction(deps, project.id, { by, action: "alerts.tested", target: project.id });
    },
  };
}

/**
 * Leaves out alerts of users who are being erased: their condition ends with the account, and no
 * event may name them.
 */
async function withoutErased(
  kv: Deps["kv"],
  projectId: string,
  state: AlertState,
): Promise<AlertState> {
  const users = [...new Set(state.alerts.flatMap(({ about: { user } }) => user ?? []))];
  const jobs = await Promise.all(users.map((user) => readForgetJob(kv, projectId, user)));
  const until = new Map(
    jobs.flatMap((found) => found ? [[found.job.user, timeOfId(found.job.until)] as const] : []),
  );
  if (until.size === 0) return state;
  // Later ones are about someone new of the same name.
  const isKept = ({ about: { user = "" }, firedAt }: Alert) => firedAt > (until.get(user) ?? 0);
  return { ...state, alerts: state.alerts.filter(isKept) };
}

/** The alerts that the next e-mail lists: those whose present state was not mailed yet. */
function alertsToMail({ alerts }: AlertState, now: number): Alert[] {
  return alerts.filter(({ mailed, resolvedAt }) => {
    if (resolvedAt === null) return mailed === "nothing";
    return mailed === "fired" || mailed === "nothing" && now - resolvedAt < oldNewsMs;
  });
}

/** The alert, marked as mailed in the state that the e-mail described. */
function marked(alert: Alert, told: ReadonlyMap<string, number | null>): Alert {
  const resolvedAt = told.get(alert.id);
  if (resolvedAt === undefined) return alert;
  return { ...alert, mailed: resolvedAt === null ? "fired" : "resolved" };
}

function afterMail(mail: MailState, error: string | null, now: number): MailState {
  if (error === null) {
    return { nextAt: now + mailEveryMs, sentAt: now, failures: 0, error: null };
  }
  const waitMs = Math.min(mailRetryMs.most, mailRetryMs.first * 2 ** Math.min(mail.failures, 10));
  return { ...mail, nextAt: now + waitMs, failures: mail.failures + 1, error };
}

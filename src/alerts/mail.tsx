/** @jsxImportSource @hono/hono/jsx */
import type { Mail } from "../deps.ts";
import { type Alert, alertPath, ruleTitles } from "./alert.ts";
import { mailStyle } from "../pages/mail_style.ts";

/** The alerts that one e-mail names in full. */
const namedMax = 20;

/** What an e-mail of a project is made of. */
interface MailFacts {
  project: { id: string; name: string };
  /** Where links begin. */
  baseUrl: string;
  to: readonly string[];
}

/** Returns the e-mail about alerts that have fired or were resolved. */
export function alertMail(facts: MailFacts, alerts: readonly Alert[]): Mail {
  const { project, baseUrl, to } = facts;
  const firing = alerts.filter(({ resolvedAt }) => resolvedAt === null);
  const console = `${baseUrl}/console/projects/${project.id}`;
  const lines = [...firing, ...alerts.filter(({ resolvedAt }) => resolvedAt !== null)]
    .slice(0, namedMax).map((alert): Line => ({
      title: ruleTitles[alert.rule],
      text: sentenceOf(alert),
      href: console + alertPath(alert),
      isFiring: alert.resolvedAt === null,
      at: new Date(alert.resolvedAt ?? alert.firedAt),
    }));
  const more = alerts.length - lines.length;
  const subject = `${project.name}: ${subjectOf(firing, alerts)}`;
  const settings = `${console}/alerts`;
  const text = [
    ...lines.map(({ title, text, href, isFiring, at }) =>
      `${isFiring ? "" : "Resolved: "}${title}\n${text}\n${shownTime(at)}\n${href}`
    ),
    ...(more > 0 ? [`And ${more} more: ${settings}`] : []),
    `You get this because the project's alerts name your address. Change it: ${settings}`,
  ].join("\n\n");
  const html = String(<MailBody name={project.name} lines={lines} more={more} href={settings} />);
  // The same alerts make the same id, so an e-mail that is sent twice is shown once.
  const last = alerts[0];
  return { id: `${last?.id}.${last?.resolvedAt ?? 0}.${alerts.length}`, to, subject, text, html };
}

/** Returns an e-mail that shows that e-mails arrive. */
export function sampleMail({ project, baseUrl, to }: MailFacts, id: string): Mail {
  const text = `E-mails about the alerts of ${project.name} arrive at this address.`;
  const href = `${baseUrl}/console/projects/${project.id}/alerts`;
  const html = String(<MailBody name={project.name} lines={[]} more={0} href={href} note={text} />);
  return { id, to, subject: `${project.name}: test of alerts`, text: `${text}\n\n${href}`, html };
}

/**
 * Returns the e-mail with the link that confirms an address. It contains nothing that a project's
 * owner has written: it may be sent to strangers.
 */
export function confirmationMail(
  { baseUrl, to, url }: Pick<MailFacts, "baseUrl" | "to"> & { url: string },
  id: string,
): Mail {
  const { host } = new URL(baseUrl);
  const title = "Confirm your e-mail address";
  const says = `Somebody asks ${host} to send alerts of a project to this address.`;
  const otherwise = "If that was not you, do nothing: you get no alerts then.";
  const html = String(
    <html lang="en">
      <body style={style.body}>
        <div style={style.card}>
          <h1 style={style.title}>{title}</h1>
          <p>{says}</p>
          <p>
            <a style={style.link} href={url}>Confirm the address</a>, within seven days.
          </p>
          <p style={style.quiet}>{otherwise}</p>
        </div>
      </body>
    </html>,
  );
  const text =
    `${says}\n\nTo confirm the address, open this within seven days:\n${url}\n\n${otherwise}`;
  return { id, to, subject: `${host}: confirm your e-mail address`, text, html };
}

interface Line {
  title: string;
  text: string;
  href: string;
  isFiring: boolean;
  at: Date;
}

function sentenceOf({ summary, about: { user } }: Alert): string {
  return user === undefined ? summary : summary.replace("A user’s", `${user}’s`);
}

function subjectOf(firing: readonly Alert[], alerts: readonly Alert[]): string {
  const [first] = firing.length > 0 ? firing : alerts;
  const kind = firing.length > 0 ? "" : "resolved: ";
  const many = firing.length > 0 ? firing.length : alerts.length;
  if (many === 1 && first) return `${kind}${ruleTitles[first.rule].toLowerCase()}`;
  return `${many} alerts${firing.length > 0 ? "" : " resolved"}`;
}

function shownTime(at: Date): string {
  return `${at.toISOString().slice(0, 16).replace("T", " ")} UTC`;
}

const style = {
  ...mailStyle,
  alert: "margin:0 0 16px;padding:0 0 0 12px;border-left:4px solid ",
};

function MailBody({ name, lines, more, href, note }: {
  name: string;
  lines: readonly Line[];
  more: number;
  href: string;
  note?: string;
}) {
  return (
    <html lang="en">
      <body style={style.body}>
        <div style={style.card}>
          <h1 style={style.title}>{name}</h1>
          {note === undefined ? null : <p>{note}</p>}
          {lines.map(({ title, text, href, isFiring, at }) => (
            <p style={style.alert + (isFiring ? "#d92d20" : "#16a34a")}>
              <strong>{isFiring ? title : `Resolved: ${title}`}</strong>
              <br />
              {text}
              <br />
              <a style={style.link} href={href}>Open in the console</a> · {shownTime(at)}
            </p>
          ))}
          {more > 0 ? <p>And {more} more.</p> : null}
          <p style={style.quiet}>
            You get this because the project’s alerts name your address.{" "}
            <a style={style.link} href={href}>Change them</a>
          </p>
        </div>
      </body>
    </html>
  );
}

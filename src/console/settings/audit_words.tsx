/** @jsxImportSource @hono/hono/jsx */
import type { Child } from "@hono/hono/jsx";
import { isObject, type Json } from "../../base/json.ts";
import { type AuditActionName, auditActions, type AuditRow } from "../../projects/audit.ts";

/** Returns the address of a page of the project that a row belongs to. */
type PageAddress = (path: string) => string;

type Words = (row: AuditRow, here: PageAddress) => Child;

const named = (name: Json | undefined) =>
  typeof name === "string" && name !== "" ? <bdi>“{name}”</bdi> : null;

const text = (value: Json | undefined) => typeof value === "string" ? value : "";

const user = ({ target }: AuditRow, here: PageAddress) => (
  <a href={here(`/users/one?user=${encodeURIComponent(target)}`)}>
    <bdi>{target}</bdi>
  </a>
);

const webhook = ({ target, detail: { url } }: AuditRow, here: PageAddress) => (
  <a href={here(`/webhooks/${target}`)}>
    {typeof url === "string" && URL.canParse(url)
      ? <>the webhook to {new URL(url).host}</>
      : "a webhook"}
  </a>
);

/** How often an attempt was repeated. */
const often = ({ count }: AuditRow["detail"]) =>
  typeof count === "number" && count > 1 ? `, ${count.toLocaleString("en-US")} times` : "";

/** What a download contains, as a sentence has it. */
const downloads: Readonly<Record<string, string>> = {
  activity: "the activity",
  archivable: "the charges to archive",
  audit: "the audit trail",
  deliveries: "the deliveries",
  entries: "the entries",
  events: "the events",
  requests: "the list of requests",
  users: "the list of users",
};

/** What was done, as the end of a sentence that begins with who did it. */
const words: Readonly<Record<AuditActionName, Words>> = {
  "project.created": ({ detail: { name } }) => <>created the project {named(name)}</>,
  "project.updated": ({ detail: { fields } }, here) => (
    <>
      changed <a href={here("/settings")}>the settings</a>
      {Array.isArray(fields) ? <>: {fields.map(String).join(", ")}</> : null}
    </>
  ),
  "project.archived": () => "archived the project",
  "key.created": ({ detail: { name, suffix } }, here) => (
    <>
      created <a href={here("/keys")}>the key {named(name)}</a> that ends in {text(suffix)}
    </>
  ),
  "key.revoked": ({ detail: { name, suffix } }, here) => (
    <>
      revoked <a href={here("/keys")}>the key {named(name)}</a>
      {text(suffix) === "" ? "" : ` that ends in ${text(suffix)}`}
    </>
  ),
  "webhook.created": (row, here) => <>added {webhook(row, here)}</>,
  "webhook.deactivated": (row, here) => <>deactivated {webhook(row, here)}</>,
  "webhook.reenabled": (row, here) => <>activated {webhook(row, here)} again</>,
  "webhook.rotated": (row, here) => <>replaced the secret of {webhook(row, here)}</>,
  "webhook.tested": (row, here) => <>sent a test event to {webhook(row, here)}</>,
  "webhook.redelivered": (row, here) => <>sent again what had failed at {webhook(row, here)}</>,
  "delivery.redelivered": ({ target, detail: { eventType } }, here) => (
    <>
      sent{" "}
      <a href={here(`/deliveries/${target}`)}>
        {text(eventType) === "" ? "an event" : `an event ${text(eventType)}`}
      </a>{" "}
      again
    </>
  ),
  "deposit": (row, here) => (
    <>
      deposited {text(row.detail.amount)} to {user(row, here)}
    </>
  ),
  "charge": (row, here) => (
    <>
      charged {user(row, here)} {text(row.detail.amount)}
    </>
  ),
  "refund": (row, here) => (
    <>
      refunded {text(row.detail.amount)} to {user(row, here)}
    </>
  ),
  "user.forgotten": () => "erased a user",
  "stripe.reconciled": ({ detail: { booked, changes } }) => (
    <>
      reconciled payments with Stripe: {typeof booked === "number" ? booked : 0} booked
      {typeof changes === "number" && changes > 0 ? <>, {changes} refunds and disputes</> : null}
    </>
  ),
  "secrets.resealed": () => "encrypted stored secrets with the current key",
  "catalogue.refreshed": ({ detail: { date, changed } }) => (
    <>
      refreshed the list prices to those of {text(date)}:{" "}
      {changed === 1 ? "1 price" : `${String(changed)} prices`} changed
    </>
  ),
  "upstream.tested": ({ target, detail: { model } }, here) => (
    <>
      sent a test request for <bdi>{text(model)}</bdi> to{" "}
      <a href={here("/upstreams")}>the upstream {target}</a>
    </>
  ),
  "alerts.tested": () => "sent a test e-mail to the addresses of alerts",
  "alerts.confirmation_sent": ({ detail: { email } }) => (
    <>
      sent <bdi>{text(email)}</bdi> the link for alerts again
    </>
  ),
  "alerts.address_confirmed": ({ detail: { email } }) => (
    <>
      confirmed the address <bdi>{text(email)}</bdi> for alerts
    </>
  ),
  "backup.created": () => "downloaded a backup of the whole database",
  "backup.restored": ({ detail: { file } }) => <>restored the backup {named(file)}</>,
  "wallet.join_asked": (row) => <>proposed to join {walletsOf(row)}</>,
  "wallet.join_withdrawn": ({ target }) => <>no longer proposes to join wallet {target}</>,
  "wallet.join_declined": ({ target }) => <>declined, as an owner, to join wallet {target}</>,
  "wallet.joined": (row) => <>joined {walletsOf(row)}, as both sides have agreed</>,
  "console.signed_in": () => "signed in to the console",
  "console.sign_in_refused": ({ detail }) => <>tried to sign in with a wrong key{often(detail)}</>,
  "console.key_refused": ({ detail }) => <>entered a wrong key in the console{often(detail)}</>,
  "admin.key_refused": ({ detail }) => <>called the admin API with a wrong key{often(detail)}</>,
  "data.archived": ({ detail: { before } }) => <>archived charges before {named(before)}</>,
  "data.copied": ({ detail: { rows } }) => <>copied {Number(rows)} rows from another database</>,
  "data.exported": ({ target }) => <>downloaded {downloads[target] ?? target}</>,
};

function walletsOf({ target, detail: { into } }: AuditRow): string {
  return `wallet ${target} into ${text(into)}`;
}

/** What actions are called where one is chosen. */
export const auditLabels: Readonly<Record<AuditActionName, string>> = {
  "project.created": "Project created",
  "project.updated": "Settings changed",
  "project.archived": "Project archived",
  "key.created": "Key created",
  "key.revoked": "Key revoked",
  "webhook.created": "Webhook added",
  "webhook.deactivated": "Webhook deactivated",
  "webhook.reenabled": "Webhook activated again",
  "webhook.rotated": "Webhook secret replaced",
  "webhook.tested": "Test event sent",
  "webhook.redelivered": "Failed deliveries sent again",
  "delivery.redelivered": "Delivery sent again",
  "deposit": "Deposit",
  "charge": "Charge",
  "refund": "Refund",
  "user.forgotten": "User erased",
  "stripe.reconciled": "Payments reconciled",
  "secrets.resealed": "Secrets encrypted again",
  "catalogue.refreshed": "List prices refreshed",
  "upstream.tested": "Upstream tested",
  "alerts.tested": "Test e-mail sent",
  "alerts.confirmation_sent": "Confirmation sent again",
  "alerts.address_confirmed": "E-mail address confirmed",
  "backup.created": "Backup downloaded",
  "backup.restored": "Backup restored",
  "wallet.join_asked": "Wallets to be joined",
  "wallet.join_withdrawn": "Join withdrawn",
  "wallet.join_declined": "Join declined",
  "wallet.joined": "Wallets joined",
  "console.signed_in": "Sign-in",
  "console.sign_in_refused": "Sign-in refused",
  "console.key_refused": "Key refused in the console",
  "admin.key_refused": "Key refused by the admin API",
  "data.exported": "Data downloaded",
  "data.archived": "Charges archived",
  "data.copied": "Database copied",
};

/** Returns an action as the end of a sentence; one of another version by its name. */
export function auditWords(row: AuditRow, here: PageAddress): Child {
  const action = auditActions.find((name) => name === row.action);
  return action === undefined ? <code>{row.action}</code> : words[action](row, here);
}

/** Returns who did it, as the start of a sentence. */
export function auditActor({ actor: { type, suffix } }: AuditRow): string {
  if (type === "unknown") return "Somebody";
  return type === "operator" ? "The operator" : `The key …${suffix ?? ""}`;
}

/** The details of a row, on demand; nothing where it has none. */
export function AuditDetail({ detail }: Pick<AuditRow, "detail">) {
  const entries = Object.entries(detail).filter(([name]) => name !== "fields");
  if (entries.length === 0) return null;
  const changes = entries.filter(([, value]) => isChange(value));
  return (
    <>
      <ul class="exact changes">
        {changes.map(([name, value]) => (
          <li>
            <bdi>{name}: {inWords(value)}</bdi>
          </li>
        ))}
      </ul>
      {changes.length === entries.length ? null : (
        <details>
          <summary>Details</summary>
          <ul class="exact changes">
            {entries.filter(([, value]) => !isChange(value)).map(([name, value]) => (
              <li>
                <bdi>{name}: {inWords(value)}</bdi>
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  );
}

function isChange(value: Json): boolean {
  return isObject(value) && "from" in value && "to" in value;
}

/** A change as "2.50 → 3.00", and any other value as it is. */
function inWords(value: Json): string {
  if (isObject(value) && isChange(value)) {
    return `${asText(value.from ?? null)} → ${asText(value.to ?? null)}`;
  }
  return asText(value);
}

function asText(value: Json): string {
  if (value === null) return "none";
  if (Array.isArray(value)) return value.map(asText).join(", ");
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** @jsxImportSource @hono/hono/jsx */
import { zero } from "../../base/money.ts";
import { Badge, MoneyCell, Table, TimeCell } from "../../pages/parts.tsx";
import { hasExpired } from "../../projects/auth.ts";
import type { ApiKey } from "../../projects/schema.ts";
import type { KeyUse, KeyUses } from "../../requests/key_use.ts";
import type { ProjectVisit } from "../guard.tsx";

/** A project's keys, what they may do, and what was done with them. */
export function KeyTable({ keys, uses, now, visit: { here, project: { currency } } }: {
  keys: readonly ApiKey[];
  uses: KeyUses;
  now: number;
  visit: ProjectVisit;
}) {
  return (
    <Table
      caption={`Newest first; a key itself is never shown again. ${usesRead(uses)}`}
      columns={[
        { title: "Name", lead: true },
        "State",
        "Last used",
        { title: "Requests", number: true },
        { title: "Spent", number: true },
        "Scopes",
        "User",
        "Created",
        "Action",
      ]}
      rows={keys.map((key) => [
        <>
          {key.name ? <bdi>{key.name}</bdi> : "no name"} <code>…{key.suffix}</code>
        </>,
        <KeyState state={key} now={now} />,
        <KeyLastUsed use={uses.keys.get(key.id)} />,
        String(uses.keys.get(key.id)?.requests ?? 0),
        <MoneyCell amount={uses.keys.get(key.id)?.spent ?? zero} currency={currency} />,
        <KeyPowers power={key} currency={currency} />,
        key.user === null
          ? key.defaultUser === null ? "any" : (
            <>
              any; default <bdi>{key.defaultUser}</bdi>
            </>
          )
          : (
            <>
              only <bdi>{key.user}</bdi>
            </>
          ),
        <TimeCell at={key.createdAt} />,
        key.revokedAt === null
          ? (
            <a
              class="quiet"
              href={here(`/keys/${key.id}/revoke`)}
              aria-label={`Revoke the key …${key.suffix}`}
            >
              Revoke…
            </a>
          )
          : <TimeCell at={key.revokedAt} />,
      ])}
      empty="No keys yet."
    />
  );
}

/** How far back the use of keys was looked at. */
function usesRead({ since }: KeyUses): string {
  if (since === null) return "Usage covers the log of requests.";
  return `Usage covers the requests since ${new Date(since).toISOString().slice(0, 16)} UTC.`;
}

function KeyLastUsed({ use }: { use: KeyUse | undefined }) {
  return use === undefined ? <>–</> : <TimeCell at={use.lastAt} />;
}

function KeyState({ state: { revokedAt, expiresAt }, now }: { state: ApiKey; now: number }) {
  if (revokedAt !== null) return <Badge tone="bad">revoked</Badge>;
  if (hasExpired({ expiresAt }, { now: () => now })) return <Badge tone="bad">expired</Badge>;
  return <Badge tone="good">active</Badge>;
}

function KeyPowers({ power, currency }: { power: ApiKey; currency: string }) {
  const { scopes, models, budget, expiresAt } = power;
  const bounds = [
    models && `models ${models.join(" ")}`,
    budget && `up to ${budget} ${currency.toUpperCase()} in all`,
    expiresAt && `until ${expiresAt.slice(0, 10)}`,
  ].filter(Boolean);
  return (
    <>
      {scopes.join(", ")}
      {bounds.length === 0 ? null : <div class="muted">{bounds.join("; ")}</div>}
    </>
  );
}

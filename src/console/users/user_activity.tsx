/** @jsxImportSource @hono/hono/jsx */
import { badRequest } from "../../base/errors.ts";
import { type ActivityKind, activityKindNames, readActivityKind } from "../../base/entry_kinds.ts";
import { type Amount, fromDecimal, toAmount } from "../../base/money.ts";
import { inputTokensOf, outputTokensOf, readTokens } from "../../base/token_classes.ts";
import { absoluteAmount, type Entry, type EntryUsage } from "../../ledger/entry.ts";
import { isReinstatement } from "../../ledger/record.ts";
import { FormSelect, Hidden } from "../../pages/form_parts.tsx";
import { Card, MoneyCell, Pager, Table, TimeCell } from "../../pages/parts.tsx";
import type { ProjectVisit } from "../guard.tsx";
import type { Period } from "../shown_period.ts";
import { kindLabels } from "../kind_labels.ts";
import { addressOf } from "./user_link.tsx";

/** An entry of a user. */
export interface ActivityLine {
  entry: Entry;
  /** How much can still be refunded; null for what cannot be refunded. */
  left: Amount | null;
}

/** Reads the kind that a query asks for; null is all. Throws 400. */
export function readKind(kind: string | undefined): ActivityKind | null {
  if (kind === undefined || kind === "") return null;
  const known = readActivityKind(kind);
  if (known) return known;
  throw badRequest("kind", "This kind of activity does not exist.");
}

/** A page of a user's entries, newest first. */
export function UserActivity({ visit, user, period, lines, kind, cursor, nextCursor }: {
  visit: ProjectVisit;
  user: string;
  /** Of the rest of the page, which the links keep. */
  period: Period;
  lines: readonly ActivityLine[];
  kind: ActivityKind | null;
  cursor: string | undefined;
  nextCursor: string | null;
}) {
  const times = Object.fromEntries(new URLSearchParams(period.query));
  const path = `${addressOf(visit, user)}&${period.query}${kind === null ? "" : `&kind=${kind}`}`;
  return (
    <Card title="Activity" note="Newest first">
      <form method="get" action={visit.here("/users/one")} class="filters">
        <Hidden fields={{ user, ...times }} />
        <FormSelect
          name="kind"
          label="Kind"
          value={kind ?? ""}
          options={[
            ["", "All"],
            ...activityKindNames.map((name) => [name, kindLabels[name]] as const),
          ]}
        />
        <button type="submit">Filter</button>
      </form>
      <Activities visit={visit} lines={lines} />
      <Pager
        older={nextCursor === null ? null : `${path}&cursor=${nextCursor}`}
        newest={cursor === undefined ? null : path}
      />
    </Card>
  );
}

function Activities({ visit, lines }: { visit: ProjectVisit; lines: readonly ActivityLine[] }) {
  const { project: { currency } } = visit;
  return (
    <Table
      caption="Every entry of this user"
      columns={[
        "Time",
        { title: "What", phone: "left" },
        { title: "Details", phone: "line" },
        { title: "Amount", number: true, lead: true },
        { title: "Balance after", number: true },
        { title: "Action", phone: "right" },
      ]}
      rows={lines.map(({ entry, left }) => [
        <TimeCell at={entry.createdAt} as="stamp" />,
        kindLabels[entry.kind],
        <About entry={entry} />,
        <MoneyCell amount={fromDecimal(entry.delta)} currency={currency} />,
        <MoneyCell
          amount={toAmount(fromDecimal(entry.balanceAfter))}
          currency={currency}
          balance
        />,
        left === null ? "" : <RefundLink visit={visit} entry={entry} left={left} />,
      ])}
      empty="No activity."
    />
  );
}

function RefundLink(
  { visit: { here }, entry: { id, kind, user }, left }: ActivityLine & { visit: ProjectVisit },
) {
  if (left === 0n) return <span class="muted">Refunded</span>;
  return (
    <a
      class="quiet"
      href={here(`/refund?user=${encodeURIComponent(user)}&activityId=${id}`)}
      aria-label={`Refund the ${kind} ${id}`}
    >
      Refund…
    </a>
  );
}

const count = (value: number) => value.toLocaleString("en-US");

function About(
  { entry: { id, usage, metadata, shortfall, refundedActivityId, carried } }: { entry: Entry },
) {
  const counts = readTokens(usage ?? {});
  return (
    <>
      {usage === null ? null : (
        <div>
          {usage.model}: {count(inputTokensOf(counts))} tokens in, {count(outputTokensOf(counts))}
          {" "}
          out{unitsOf(usage)}
          {usage.source === "estimated" ? ", estimated" : ""}
        </div>
      )}
      {carried === undefined ? null : (
        <div>
          {count(carried.entries)} archived charges of responses since{" "}
          {new Date(carried.since).toISOString().slice(0, 10)}
        </div>
      )}
      <Shortfall amount={shortfall} />
      {refundedActivityId === null ? null : (
        <div>
          of <code>{refundedActivityId}</code>
        </div>
      )}
      {metadata === null ? null : (
        <div class="exact">
          <bdi>{JSON.stringify(metadata).slice(0, 300)}</bdi>
        </div>
      )}
      <code class="id" id={id}>{id}</code>
    </>
  );
}

/** What a response has besides tokens, for people. */
function unitsOf({ images = {}, characters, audioSeconds }: EntryUsage): string {
  return [
    ...Object.entries(images).map(([name, count]) => `${count} × image ${name}`),
    ...(characters === undefined ? [] : [`${characters} characters`]),
    ...(audioSeconds === undefined ? [] : [`${audioSeconds} s of sound`]),
  ].map((text) => `, ${text}`).join("");
}

function Shortfall({ amount }: { amount: string }) {
  if (amount === "0") return null;
  if (amount.startsWith("-")) return <div>{amount.slice(1)} is no longer due</div>;
  return <div class="bad">{amount} could not be collected</div>;
}

/** Whether an entry can be refunded here: payments into a wallet are refunded at Stripe. */
export function isRefundable(entry: Entry): boolean {
  const isWalletDeposit = entry.kind === "deposit" && entry.projectId !== undefined;
  return entry.kind !== "refund" && entry.kind !== "carried" && !isReinstatement(entry) &&
    absoluteAmount(entry) !== "0" &&
    !isWalletDeposit;
}

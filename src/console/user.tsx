/** @jsxImportSource @hono/hono/jsx */
import { inputTokensOf, outputTokensOf, readTokens } from "../base/token_classes.ts";
import { ApiError } from "../base/errors.ts";
import type { Handler } from "../base/handler.ts";
import { type Amount, fromDecimal, parseAmount, toAmount, zero } from "../base/money.ts";
import { checkUserId } from "../base/user_id.ts";
import { listActivities } from "../ledger/activities.ts";
import { findLastAccount } from "../ledger/authorization.ts";
import { absoluteAmount, type Entry, type EntryUsage } from "../ledger/entry.ts";
import { isReinstatement } from "../ledger/record.ts";
import { readUser, type UserDetail } from "../ledger/users.ts";
import { viewBalance } from "../ledger/view.ts";
import type { Project } from "../projects/schema.ts";
import { listRequests } from "../requests/list.ts";
import type { RequestRecord } from "../requests/record.ts";
import { kindLabels } from "./kind_labels.ts";
import type { ConsoleGuard, ProjectVisit } from "./guard.tsx";
import { Card, CopyButton, MoneyCell, Pager, Stats, Table, TimeCell } from "../pages/parts.tsx";
import { addressOf } from "./user_link.tsx";
import { UserLimitsCard } from "./user_limits.tsx";
import type { ConsoleDeps } from "./console_deps.ts";

const entriesPerPage = 25;
const requestsShown = 5;
/** The page of requests looks further back. */
const requestRowsMax = 80;

/** A user's balance, holds and activities. */
export function userPage(
  guard: ConsoleGuard,
  { deps: { kv, clock }, recorder, requestLog, links }: ConsoleDeps,
): Handler {
  return guard.project(async (visit) => {
    const { project, incoming, page } = visit;
    const user = checkUserId(incoming.query("user"), "user");
    const cursor = incoming.query("cursor");
    const detail = await readUser(kv, project, { user, now: clock.now() })
      .catch((error) => orNew(error, project, user));
    const ref = await findLastAccount(kv, project, user);
    const { entries, nextCursor } = ref
      ? await listActivities(kv, ref, { limit: entriesPerPage, cursor })
      : { entries: [], nextCursor: null };
    const lines = await Promise.all(entries.map(async (entry): Promise<Line> => ({
      entry,
      left: ref && isRefundable(entry) ? await recorder.refundableAmount(ref, entry) : null,
    })));
    const path = addressOf(visit, user);
    await requestLog.flush();
    const { requests } = await listRequests(kv, project.id, {
      limit: requestsShown,
      filter: { user },
      rows: requestRowsMax,
    });
    const topUpUrl = project.status === "active" && detail.entries !== null
      ? await links.topUpUrl(project, user)
      : null;
    return page(
      `User ${user}`,
      <>
        <Balance detail={detail} />
        <Holds detail={detail} />
        <RecentRequests visit={visit} requests={requests} user={user} />
        <UserLimitsCard visit={visit} user={user} />
        <Card title="Activity" note="Newest first">
          <Activities visit={visit} lines={lines} />
          <Pager
            older={nextCursor === null ? null : `${path}&cursor=${nextCursor}`}
            newest={cursor === undefined ? null : path}
          />
        </Card>
      </>,
      {
        section: "/users",
        note: topUpUrl === null ? undefined : <TopUpLink url={topUpUrl} />,
        actions: project.mode === "default" ? <Deposit visit={visit} user={user} /> : undefined,
        heading: (
          <>
            User <bdi>{user}</bdi>
          </>
        ),
      },
    );
  });
}

interface Line {
  entry: Entry;
  /** How much can still be refunded; null for what cannot be refunded. */
  left: Amount | null;
}

/** An unknown user has no balance yet, and can receive a first deposit. */
function orNew(error: unknown, { currency }: Project, user: string): UserDetail {
  if (!(error instanceof ApiError && error.status === 404)) throw error;
  const none = { entries: null, lastActivityId: null, authorization: null, holds: [] };
  return { user, currency, ...viewBalance(zero, zero, currency), ...none };
}

function Balance({ detail }: { detail: UserDetail }) {
  const { currency, balance, held, available, entries, authorization } = detail;
  const money = (text: string) => (
    <MoneyCell amount={fromDecimal(text)} currency={currency} balance />
  );
  const permission = authorization && {
    label: "Permission",
    value: authorization.status,
    note: `up to ${authorization.dailyCap} per day`,
  };
  return (
    <Stats
      figures={[
        { label: "Balance", value: money(balance) },
        { label: "Held", value: money(held), note: `${detail.holds.length} running requests` },
        { label: "Available", value: money(available) },
        ...(entries === null ? [] : [{ label: "Activities", value: String(entries) }]),
        ...(permission ? [permission] : []),
      ]}
    />
  );
}

function Deposit({ visit: { here, project }, user }: { visit: ProjectVisit; user: string }) {
  if (project.status !== "active") {
    return <p>This project is archived and takes no deposits.</p>;
  }
  return (
    <a class="button" href={here(`/deposit?user=${encodeURIComponent(user)}`)}>
      Deposit {project.currency.toUpperCase()}…
    </a>
  );
}

/** The link where the user tops up, to be sent to them. */
function TopUpLink({ url }: { url: string }) {
  return (
    <span class="inline-copy">
      Top-up link: <code id="top-up-link">{url}</code>
      <CopyButton of="top-up-link" />
    </span>
  );
}

function RecentRequests({ visit, requests, user }: {
  visit: ProjectVisit;
  requests: readonly RequestRecord[];
  user: string;
}) {
  if (requests.length === 0) return null;
  const { project: { currency }, here } = visit;
  const all = here(`/requests?${new URLSearchParams({ user })}`);
  return (
    <Card title="Last requests" note={<a href={all}>All requests</a>}>
      <Table
        caption="Also failed and refused ones"
        columns={["Time", "Outcome", "Model", { title: "Cost", number: true, lead: true }]}
        rows={requests.map(({ at, outcome, reason, model, cost }) => [
          <TimeCell at={at} />,
          reason === null ? outcome : (
            <>
              {outcome}: <code>{reason}</code>
            </>
          ),
          model ?? "",
          <MoneyCell amount={fromDecimal(cost)} currency={currency} />,
        ])}
        empty=""
      />
    </Card>
  );
}

function Holds({ detail: { holds, currency } }: { detail: UserDetail }) {
  if (holds.length === 0) return null;
  return (
    <Card title="Held" note="For running requests">
      <Table
        caption="A hold that is not renewed expires."
        columns={["Request", { title: "Amount", number: true }, "Ends"]}
        rows={holds.map(({ id, amount, expiresAt }) => [
          <code>{id}</code>,
          <MoneyCell amount={parseAmount(amount) ?? zero} currency={currency} />,
          <TimeCell at={expiresAt} />,
        ])}
        empty="Nothing is held."
      />
    </Card>
  );
}

function Activities({ visit, lines }: { visit: ProjectVisit; lines: Line[] }) {
  const { project: { currency } } = visit;
  return (
    <Table
      caption="Every entry of this user"
      columns={[
        "When",
        "What",
        { title: "Change", number: true, lead: true },
        { title: "Balance after", number: true },
        "About",
        "Action",
      ]}
      rows={lines.map(({ entry, left }) => [
        <TimeCell at={entry.createdAt} />,
        kindLabels[entry.kind],
        <MoneyCell amount={fromDecimal(entry.delta)} currency={currency} />,
        <MoneyCell
          amount={toAmount(fromDecimal(entry.balanceAfter))}
          currency={currency}
          balance
        />,
        <About entry={entry} />,
        left === null ? "" : <RefundLink visit={visit} entry={entry} left={left} />,
      ])}
      empty="No activities yet."
    />
  );
}

function RefundLink(
  { visit: { here }, entry: { id, kind, user }, left }: Line & { visit: ProjectVisit },
) {
  if (left === 0n) return <span class="muted">refunded</span>;
  return (
    <a
      href={here(`/refund?user=${encodeURIComponent(user)}&activityId=${id}`)}
      aria-label={`Refund the ${kind} ${id}`}
    >
      Refund…
    </a>
  );
}

function About(
  { entry: { id, usage, metadata, shortfall, refundedActivityId } }: { entry: Entry },
) {
  const counts = readTokens(usage ?? {});
  return (
    <>
      <code id={id}>{id}</code>
      {usage === null ? null : (
        <div>
          {usage.model}: {inputTokensOf(counts)} input tokens, {outputTokensOf(counts)}{" "}
          output tokens{unitsOf(usage)}, {usage.source}
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

/** Payments into a wallet are refunded at Stripe. */
function isRefundable(entry: Entry): boolean {
  const isWalletDeposit = entry.kind === "deposit" && entry.projectId !== undefined;
  return entry.kind !== "refund" && !isReinstatement(entry) && absoluteAmount(entry) !== "0" &&
    !isWalletDeposit;
}

/** @jsxImportSource @hono/hono/jsx */
import { ApiError } from "../../base/errors.ts";
import type { Handler } from "../../base/handler.ts";
import { formatAmount, fromDecimal, parseAmount, zero } from "../../base/money.ts";
import { checkUserId } from "../../base/user_id.ts";
import { listActivities } from "../../ledger/activities.ts";
import { findLastAccount } from "../../ledger/authorization.ts";
import { isPseudonym } from "../../ledger/pseudonym.ts";
import { readUserSpending, type UserSpending } from "../../ledger/user_spending.ts";
import { readUser, type UserDetail } from "../../ledger/users.ts";
import { viewBalance } from "../../ledger/api/view.ts";
import { Card, CopyButton, MoneyCell, Stats, Table, Tabs, TimeCell } from "../../pages/parts.tsx";
import type { Project } from "../../projects/schema.ts";
import { listRequests, type RequestPage } from "../../requests/list.ts";
import type { ConsoleDeps } from "../console_deps.ts";
import type { ConsoleGuard, ProjectVisit } from "../guard.tsx";
import { MoneyChart } from "../money/money_chart.tsx";
import { OutcomeBadge } from "../developers/request_parts.tsx";
import { type Period, readPeriod, usualPeriods } from "../shown_period.ts";
import { type ActivityLine, isRefundable, readKind, UserActivity } from "./user_activity.tsx";
import { UserLimitsCard } from "./user_limits.tsx";
import { addressOf, eraseAddressOf } from "./user_link.tsx";
import { holdsEndedBy } from "../../ledger/hold_end.ts";

const entriesPerPage = 25;
const requestsShown = 5;
/** The page of requests looks further back. */
const requestRowsMax = 80;

/** A user's balance, holds and activities. */
export function userPage(
  guard: ConsoleGuard,
  { deps, deps: { kv, clock }, recorder, requestLog, links }: ConsoleDeps,
): Handler {
  return guard.project(async (visit) => {
    const { project, incoming, page } = visit;
    const user = checkUserId(incoming.query("user"), "user");
    const cursor = incoming.query("cursor");
    const kind = readKind(incoming.query("kind"));
    const detail = await readUser(kv, project, { user, hasEnded: holdsEndedBy(deps) })
      .catch((error) => orNew(error, project, user));
    const ref = await findLastAccount(kv, project, user);
    const { entries, nextCursor } = ref
      ? await listActivities(kv, ref, { limit: entriesPerPage, cursor, kind })
      : { entries: [], nextCursor: null };
    const lines = await Promise.all(entries.map(async (entry): Promise<ActivityLine> => ({
      entry,
      left: ref && isRefundable(entry) ? await recorder.refundableAmount(ref, entry) : null,
    })));
    const period = readPeriod(incoming.query, clock.now(), 30);
    const spending = ref && (await readUserSpending(kv, ref, period));
    await requestLog.flush();
    const found = await listRequests(kv, project.id, {
      limit: requestsShown,
      filter: { user },
      rows: requestRowsMax,
    });
    const isErased = isPseudonym(user);
    const topUpUrl = !isErased && project.status === "active" && detail.entries !== null
      ? await links.topUpUrl(project, user)
      : null;
    return page(
      `User ${user}`,
      <>
        <Figures detail={detail} period={period} spending={spending} />
        <Holds detail={detail} />
        {spending && <Spending {...{ visit, user, period, spending }} />}
        <div class="cards">
          <RecentRequests visit={visit} found={found} user={user} />
          <UserLimitsCard visit={visit} user={user} />
        </div>
        <UserActivity {...{ visit, user, period, lines, kind, cursor, nextCursor }} />
      </>,
      {
        section: "/users",
        note: topUpUrl === null ? undefined : <TopUpLink url={topUpUrl} />,
        actions: (
          <>
            <Periods visit={visit} user={user} period={period} />
            {isErased ? null : <Actions visit={visit} user={user} />}
          </>
        ),
        heading: <UserHeading user={user} />,
      },
    );
  });
}

function UserHeading({ user }: { user: string }) {
  return (
    <>
      User <bdi>{user}</bdi>
    </>
  );
}

/** An unknown user has no balance yet, and can receive a first deposit. */
function orNew(error: unknown, { currency }: Project, user: string): UserDetail {
  if (!(error instanceof ApiError && error.status === 404)) throw error;
  const none = { entries: null, lastActivityId: null, authorization: null, holds: [] };
  return { user, currency, ...viewBalance(zero, zero, currency), ...none };
}

/** What the user has, and what they spent and paid in the period. */
function Figures({ detail, period, spending }: {
  detail: UserDetail;
  period: Period;
  spending: UserSpending | null;
}) {
  const { currency, balance, held, available, holds, authorization } = detail;
  const has = (text: string) => (
    <MoneyCell
      amount={fromDecimal(text)}
      currency={currency}
      balance
    />
  );
  const running = holds.length === 1 ? "1 running request" : `${holds.length} running requests`;
  const permission = authorization && {
    label: "Permission",
    value: authorization.status,
    note: `up to ${authorization.dailyCap} per day`,
  };
  const used = spending && [
    { label: "Spent", value: <MoneyCell amount={spending.spent} currency={currency} /> },
    { label: "Responses", value: spending.responses.toLocaleString("en-US") },
    { label: "Deposited", value: <MoneyCell amount={spending.deposited} currency={currency} /> },
  ];
  return (
    <Stats
      figures={[
        { label: "Balance", value: has(balance) },
        {
          label: "Available",
          value: has(available),
          note: holds.length === 0 ? "nothing is held" : <>{has(held)} held by {running}</>,
        },
        ...(permission ? [permission] : []),
        ...(used ?? []).map((figure) => ({ ...figure, note: period.title })),
      ]}
    />
  );
}

/** What can be done with a user. */
function Actions({ visit, user }: { visit: ProjectVisit; user: string }) {
  return (
    <>
      {visit.project.mode === "default" ? <Deposit visit={visit} user={user} /> : null}
      <a class="button" href={eraseAddressOf(visit, user)}>Erase…</a>
    </>
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

function Periods({ visit, user, period }: { visit: ProjectVisit; user: string; period: Period }) {
  const tabs = usualPeriods.map(({ days, title }) => ({
    title,
    href: `${addressOf(visit, user)}&days=${days}`,
    shown: period.days === days,
  }));
  return <Tabs label="Time" tabs={tabs} />;
}

/** What the user spent over time. */
function Spending({ visit, user, period, spending }: {
  visit: ProjectVisit;
  user: string;
  period: Period;
  spending: UserSpending;
}) {
  const { project: { currency } } = visit;
  const address = addressOf(visit, user);
  const { spent, amounts, since } = spending;
  const charged = `${formatAmount(spent)} ${currency}`;
  return (
    <>
      {since === null ? null : (
        <p class="muted">
          This user has many entries: these figures begin at <TimeCell at={since} />.
        </p>
      )}
      <MoneyChart
        {...{ visit, period, amounts }}
        title="Spending"
        says={`The user spent ${charged} in the ${period.title}.`}
        zoom={(times) => `${address}&${times}`}
      />
    </>
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

function RecentRequests({ visit, found: { requests, places }, user }: {
  visit: ProjectVisit;
  found: RequestPage;
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
        rows={requests.map(({ at, outcome, reason, model, cost, count }, index) => [
          <a href={here(`/requests/one?place=${places[index]}`)}>
            <TimeCell at={at} />
          </a>,
          <>
            <OutcomeBadge outcome={outcome} /> {reason === null ? null : <code>{reason}</code>}
            {count === 1 ? null : ` ${count} times`}
          </>,
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

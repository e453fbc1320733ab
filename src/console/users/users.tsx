/** @jsxImportSource @hono/hono/jsx */
import { csvLine } from "../../base/csv.ts";
import type { Handler } from "../../base/handler.ts";
import { formatAmount, fromDecimal, toAmount, zero } from "../../base/money.ts";
import { checkUserId } from "../../base/user_id.ts";
import {
  readUserStats,
  type UserOrder,
  userOrders,
  type UserRow,
} from "../../ledger/user_stats.ts";
import { listUsers, type UserView } from "../../ledger/users.ts";
import { FormField } from "../../pages/form_parts.tsx";
import { EmptyState, MoneyCell, Pager, Table, Tabs, TimeCell } from "../../pages/parts.tsx";
import type { ConsoleDeps } from "../console_deps.ts";
import { csvDownload } from "../csv_response.ts";
import type { ConsoleGuard, ProjectVisit } from "../guard.tsx";
import { UserLink } from "./user_link.tsx";
import { holdsEndedBy } from "../../ledger/hold_end.ts";

const section = "/users";
const usersPerPage = 50;
const csvRowsPerRead = 500;

const orderTitles: Readonly<Record<UserOrder, string>> = {
  recent: "Last active",
  balance: "Highest balance",
  low: "Lowest balance",
  spent: "Spent this month",
};

/** A project's users, in one of several orders, or those whose ids start with a prefix. */
export function userPages(guard: ConsoleGuard, { deps }: ConsoleDeps): {
  list: Handler;
  csv: Handler;
} {
  const { kv } = deps;

  async function listById(visit: ProjectVisit, prefix: string): Promise<Response> {
    const { project, incoming, here } = visit;
    if (prefix !== "") checkUserId(prefix, "prefix");
    const cursor = incoming.query("cursor");
    const userQuery = { limit: usersPerPage, cursor, prefix, hasEnded: holdsEndedBy(deps) };
    const { users, nextCursor } = await listUsers(kv, project, userQuery);
    const query = new URLSearchParams({ order: "id", ...(prefix === "" ? {} : { prefix }) });
    return page(visit, {
      prefix,
      order: "id",
      note: prefix === "" ? "In order of their ids." : `Ids that start with “${prefix}”.`,
      table: (
        <>
          <UsersById visit={visit} users={users} prefix={prefix} />
          <Pager
            older={nextCursor === null ? null : here(`${section}?${query}&cursor=${nextCursor}`)}
            newest={cursor === undefined ? null : here(`${section}?${query}`)}
            words={{ older: "More", newest: "From the start" }}
          />
        </>
      ),
    });
  }

  return {
    list: guard.project(async (visit) => {
      const { project, incoming } = visit;
      const prefix = incoming.query("prefix")?.trim() ?? "";
      const asked = incoming.query("order") ?? "recent";
      const order = userOrders.find((each) => each === asked);
      const stats = order && prefix === "" ? await readUserStats(deps, project) : null;
      if (!stats || !order) return await listById(visit, prefix);
      const rows = stats.first[order];
      const many = stats.users.toLocaleString("en-US");
      const note = rows.length < stats.users && order !== "spent"
        ? `The first ${rows.length} of ${many}.`
        : `${many} in all.`;
      return page(visit, { prefix, order, note, table: <UsersRanked visit={visit} rows={rows} /> });
    }),
    csv: guard.project(async ({ project, incoming }) => {
      let owed = zero;
      const source = {
        columns: csvColumns,
        cursor: undefined,
        async read(cursor: string | undefined) {
          const query = { limit: csvRowsPerRead, cursor, prefix: "" };
          const page = await listUsers(kv, project, { ...query, hasEnded: holdsEndedBy(deps) });
          const { users, nextCursor } = page;
          owed = users.reduce((sum, { balance }) => toAmount(sum + fromDecimal(balance)), owed);
          return { text: userLines(users), count: users.length, nextCursor };
        },
        total: (count: number) => csvLine([`total: ${count} rows`, formatAmount(owed)]),
      };
      return await csvDownload(source, "users", incoming.requestId);
    }),
  };
}

function page(visit: ProjectVisit, { prefix, order, note, table }: {
  prefix: string;
  order: UserOrder | "id";
  note: string;
  table: unknown;
}): Response {
  const { here } = visit;
  const tabs = [...userOrders, "id" as const].map((each) => ({
    title: each === "id" ? "By id" : orderTitles[each],
    href: here(`${section}?order=${each}`),
    shown: each === order,
  }));
  return visit.page(
    "Users",
    <>
      <form method="get" action={here(section)} role="search" class="actions end">
        <FormField
          name="prefix"
          label="Find by id"
          type="search"
          value={prefix}
          more={{ placeholder: "Start of a user’s id" }}
        />
        <button type="submit">Search</button>
      </form>
      {visit.project.mode === "default" ? <Tabs label="Order" tabs={tabs} /> : null}
      {table}
    </>,
    {
      section,
      note,
      actions: <a class="button small" href={here("/users.csv")}>Download CSV</a>,
    },
  );
}

function NoUsers({ visit: { here }, prefix }: { visit: ProjectVisit; prefix: string }) {
  if (prefix === "") {
    return (
      <div class="card">
        <EmptyState icon="users" title="No users yet">
          <p>A user appears with the first request, deposit or charge that names them.</p>
        </EmptyState>
      </div>
    );
  }
  return (
    <div class="card">
      <EmptyState icon="users" title="No such user.">
        <p>A new user’s id works too: open it to make the first deposit.</p>
        <a class="button" href={here(`/users/one?user=${encodeURIComponent(prefix)}`)}>
          Open “{prefix}”
        </a>
      </EmptyState>
    </div>
  );
}

function UsersRanked({ visit, rows }: { visit: ProjectVisit; rows: readonly UserRow[] }) {
  const { project: { currency } } = visit;
  return (
    <Table
      caption="Users"
      columns={[
        "User",
        "Last active",
        { title: "Entries", number: true, phone: "none" },
        { title: "Spent this month", number: true },
        { title: "Held", number: true },
        { title: "Balance", number: true, lead: true },
      ]}
      rows={rows.map(({ user, balance, held, spent, entries, lastAt }) => [
        <UserLink visit={visit} user={user} />,
        <TimeCell at={lastAt} />,
        entries.toLocaleString("en-US"),
        <MoneyCell amount={spent} currency={currency} />,
        <MoneyCell amount={held} currency={currency} />,
        <MoneyCell amount={balance} currency={currency} balance />,
      ])}
      empty={<NoUsers visit={visit} prefix="" />}
    />
  );
}

function UsersById({ visit, users, prefix }: {
  visit: ProjectVisit;
  users: readonly UserView[];
  prefix: string;
}) {
  const { project: { currency, mode } } = visit;
  return (
    <Table
      caption="Users in order of their ids"
      columns={[
        "User",
        mode === "shared" ? "Permission" : { title: "Entries", number: true },
        { title: "Held", number: true },
        { title: "Balance", number: true, lead: true },
      ]}
      rows={users.map(({ user, balance, held, entries, authorization }) => [
        <UserLink visit={visit} user={user} />,
        mode === "shared" ? authorization?.status ?? "" : entries,
        <MoneyCell amount={fromDecimal(held)} currency={currency} />,
        <MoneyCell amount={fromDecimal(balance)} currency={currency} balance />,
      ])}
      empty={<NoUsers visit={visit} prefix={prefix} />}
    />
  );
}

const csvColumns = ["user", "balance", "held", "available", "currency", "entries"];

function userLines(users: readonly UserView[]): string {
  return users.map(({ user, balance, held, available, currency, entries }) =>
    csvLine([user, balance, held, available, currency, entries === null ? null : `${entries}`])
  ).join("");
}

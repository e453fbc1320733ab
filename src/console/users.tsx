/** @jsxImportSource @hono/hono/jsx */
import type { Handler } from "../base/handler.ts";
import { checkUserId } from "../base/user_id.ts";
import { listUsers, type UserView } from "../ledger/users.ts";
import type { ConsoleGuard } from "./guard.tsx";
import { FormField } from "../pages/form_parts.tsx";
import { Pager, Table } from "../pages/parts.tsx";
import type { ConsoleDeps } from "./console_deps.ts";

const usersPerPage = 50;

/** A project's users in order of their ids, or those whose ids start with a prefix. */
export function usersPage(guard: ConsoleGuard, { deps: { kv, clock } }: ConsoleDeps): Handler {
  return guard.project(async ({ project, incoming, here, page }) => {
    const prefix = incoming.query("prefix")?.trim() ?? "";
    if (prefix !== "") checkUserId(prefix, "prefix");
    const cursor = incoming.query("cursor");
    const userQuery = { limit: usersPerPage, cursor, prefix, now: clock.now() };
    const { users, nextCursor } = await listUsers(kv, project, userQuery);
    const query = prefix === "" ? "" : `&prefix=${encodeURIComponent(prefix)}`;
    return page(
      "Users",
      <>
        <form method="get" action={here("/users")} role="search" class="actions">
          <FormField name="prefix" label="Ids that start with" type="search" value={prefix} />
          <button type="submit">Search</button>
        </form>
        <Users
          users={users}
          address={here("/users/one")}
          isShared={project.mode === "shared"}
          empty={prefix === "" && cursor === undefined ? "No users yet." : "No such user."}
        />
        <Pager
          older={nextCursor === null ? null : here(`/users?cursor=${nextCursor}${query}`)}
          newest={cursor === undefined ? null : here(`/users?${query.slice(1)}`)}
          words={{ older: "More", newest: "From the start" }}
        />
        <Find address={here("/users/one")} />
      </>,
      { section: "/users" },
    );
  });
}

function Users({ users, address, isShared, empty }: {
  users: UserView[];
  address: string;
  isShared: boolean;
  empty: string;
}) {
  const money = [
    { title: "Balance", number: true },
    { title: "Exact balance", number: true },
    { title: "Held", number: true },
  ] as const;
  return (
    <Table
      caption="In order of their ids"
      columns={["User", ...money, isShared ? "Permission" : { title: "Activities", number: true }]}
      rows={users.map(({ user, balance, balanceFormatted, held, entries, authorization }) => [
        <a href={`${address}?user=${encodeURIComponent(user)}`}>
          <bdi>{user}</bdi>
        </a>,
        balanceFormatted,
        <span class="exact">{balance}</span>,
        held,
        isShared ? authorization?.status ?? "" : entries,
      ])}
      empty={empty}
    />
  );
}

/** Opens a user by the complete id, including one who has done nothing yet. */
function Find({ address }: { address: string }) {
  return (
    <>
      <h2>Open a user</h2>
      <form method="get" action={address} class="actions">
        <FormField
          name="user"
          label="Complete id"
          required
          hint="A new user’s id works too, to make the first deposit."
        />
        <button type="submit">Open</button>
      </form>
    </>
  );
}

import type { Command } from "commander";
import type { Context } from "./context.ts";
import { listing, type ListOptions, printList } from "./list.ts";
import { projectPath, userAddress } from "./paths.ts";
import { formatFields, formatTable } from "./table.ts";

/** `farebox users …` */
export function addUsers(program: Command, open: () => Context): void {
  const users = program.command("users").description("the users of a project, and their money");
  listing(users.command("list <project>").description("all users, in order of their ids"))
    .option("--prefix <text>", "only those whose ids begin so")
    .action((project: string, options: ListOptions & { prefix?: string }) =>
      list(open(), project, options)
    );
  users.command("get <project> <user>").description("one user, with the holds of running answers")
    .action((project: string, user: string) => get(open(), project, user));
  listing(users.command("activities <project> <user>").description("what moved, newest first"))
    .action((project: string, user: string, options: ListOptions) =>
      activities(open(), { project, user, options })
    );
}

function list(
  context: Context,
  project: string,
  { prefix, ...options }: ListOptions & { prefix?: string },
): Promise<void> {
  return printList(context, options, {
    path: `${projectPath(project)}/users`,
    name: "users",
    query: { prefix },
    columns: {
      USER: ({ user }) => user,
      BALANCE: ({ balance }) => balance,
      HELD: ({ held }) => held,
      AVAILABLE: ({ available }) => available,
      CURRENCY: ({ currency }) => currency,
      ENTRIES: ({ entries }) => entries,
      "LAST ACTIVITY": ({ lastActivityId }) => lastActivityId,
    },
  });
}

async function get({ api, print }: Context, project: string, user: string): Promise<void> {
  const { path, query } = userAddress(project, user);
  const { user: found } = await api.json(path, { query });
  print(found, () => {
    const { holds, ...fields } = found;
    if (holds.length === 0) return formatFields({ ...fields, holds: "none" });
    const rows = holds.map((hold: Record<string, string>) => [
      hold.id,
      hold.amount,
      hold.expiresAt,
    ]);
    return `${formatFields(fields)}\n\n${formatTable(["HOLD", "AMOUNT", "EXPIRES"], rows)}`;
  });
}

function activities(
  context: Context,
  { project, user, options }: { project: string; user: string; options: ListOptions },
): Promise<void> {
  const { path, query } = userAddress(project, user);
  return printList(context, options, {
    path: `${path}/activities`,
    name: "activities",
    query,
    columns: {
      ID: ({ id }) => id,
      CREATED: ({ createdAt }) => createdAt,
      KIND: ({ kind }) => kind,
      DELTA: ({ delta }) => delta,
      "BALANCE AFTER": ({ balanceAfter }) => balanceAfter,
      CURRENCY: ({ currency }) => currency,
      MODEL: ({ usage }) => usage?.model,
      METADATA: ({ metadata }) => metadata,
    },
  });
}

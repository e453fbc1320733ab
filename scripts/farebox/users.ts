import type { Command } from "commander";
import type { Context } from "./context.ts";
import { Refusal, refused } from "./failure.ts";
import { listing, type ListOptions, printList } from "./list.ts";
import { projectPath, userAddress } from "./paths.ts";
import { formatFields, formatTable, printable } from "./table.ts";

/** `farebox users …` */
export function addUsers(program: Command, open: () => Context): void {
  const users = program.command("users").description("manage the users of a project");
  listing(users.command("list <project>").description("list all users, in order of their ids"))
    .option("--prefix <text>", "only users whose ids start with this")
    .action((project: string, options: ListOptions & { prefix?: string }) =>
      list(open(), project, options)
    );
  users.command("get <project> <user>").alias("show").description(
    "show a user, with the holds of running calls",
  )
    .action((project: string, user: string) => get(open(), project, user));
  listing(
    users.command("activities <project> <user>").description(
      "list a user's activities, newest first",
    ),
  )
    .action((project: string, user: string, options: ListOptions) =>
      activities(open(), { project, user, options })
    );
  users.command("forget <project> <user>")
    .description(
      "erase a user from all stored data; ledger entries stay under a random name; cannot be undone",
    )
    .option("--forfeit", "take what is left of the balance")
    .option("--no-wait", "start it, and let the service continue alone")
    .action((project: string, user: string, options: ForgetOptions) =>
      forget(open(), { project, user, options })
    );
}

interface ForgetOptions {
  forfeit?: boolean;
  wait: boolean;
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

const pauseMs = 500;

async function forget(
  { api, print, progress, confirm }: Context,
  { project, user, options }: { project: string; user: string; options: ForgetOptions },
): Promise<void> {
  const { path, query } = userAddress(project, user);
  const more = options.forfeit ? " What is left of the balance is taken." : "";
  await confirm(`Erase '${printable(user)}' from ${project}? This cannot be undone.${more}`);
  const body = { forfeit: options.forfeit ?? false };
  for (;;) {
    const answer = await api.json(`${path}/forget`, { body, query }).catch(inOurWords);
    if (answer.status === "done" || !options.wait) {
      return print(answer, () => formatFields({ ...answer, erased: amountsOf(answer.erased) }));
    }
    progress(() => `${answer.status}: ${amountsOf(answer.erased)} so far`);
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}

/** The service's message names the body field that corresponds to `--forfeit`. */
function inOurWords(error: unknown): never {
  if (!(error instanceof Refusal) || error.code !== "balance_not_zero") throw error;
  throw refused(error.message.replace('send {"forfeit": true}', "use --forfeit"));
}

/** `{ entries: 2, events: 5 }` -> `2 entries, 5 events` */
function amountsOf(erased: Record<string, number>): string {
  const words = (name: string) => name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  const amounts = Object.entries(erased).map(([name, count]) => `${count} ${words(name)}`);
  return amounts.join(", ") || "nothing";
}

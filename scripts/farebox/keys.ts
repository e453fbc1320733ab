import type { Command } from "commander";
import type { Context } from "./context.ts";
import { alsoNamed } from "./input.ts";
import { projectPath } from "./paths.ts";
import { formatFields } from "./table.ts";

interface CreateOptions {
  name?: string;
  scope?: string[];
  user?: string;
  defaultUser?: string;
  model?: string[];
  budget?: string;
  expires?: string;
}

/** `farebox keys …` */
export function addKeys(program: Command, open: () => Context): void {
  const keys = program.command("keys").description("the API keys of a project");
  keys.command("list <project>").description("list all keys, including revoked ones")
    .action(async (project: string) => {
      const { api, printRows } = open();
      const found = await api.json(`${projectPath(project)}/keys`);
      printRows(found.keys, {
        ID: ({ id }) => id,
        NAME: ({ name }) => name,
        "ENDS WITH": ({ suffix }) => suffix,
        SCOPES: ({ scopes }) => scopes.join(","),
        USER: ({ user, defaultUser }) => user ?? defaultUser,
        CREATED: ({ createdAt }) => createdAt,
        EXPIRES: ({ expiresAt }) => expiresAt,
        REVOKED: ({ revokedAt }) => revokedAt,
      });
    });
  keys.command("create <project>").description("create a key, which is shown only once")
    .option("--name <name>", "a name to recognize it by")
    .option(
      "--scope <scope>",
      "chat, money, webhooks or owner; repeat for several. Default: the first three",
      alsoNamed,
    )
    .option("--user <user>", "bind a chat key to one user")
    .option("--default-user <user>", "the user of calls that name none")
    .option("--model <name>", "a model that it may call, or a beginning with *; repeat", alsoNamed)
    .option("--budget <amount>", "what it may spend in all")
    .option("--expires <time>", "when it stops working, such as 2027-01-01T00:00:00Z")
    .action(async (project: string, options: CreateOptions) => {
      const { api, print, note } = open();
      const { name, scope: scopes, user, defaultUser, model: models, budget, expires } = options;
      const body = { name, scopes, user, defaultUser, models, budget, expiresAt: expires };
      const made = await api.json(`${projectPath(project)}/keys`, { body });
      print(made, () => formatFields({ ...made.key, apiKey: made.apiKey }));
      note("The API key is shown only once: store it now.");
    });
  keys.command("revoke <project> <key>").description(
    "revoke a key; calls with it get 401 from then on",
  )
    .option("--made", "also end the keys and subscriptions that were made with it")
    .action(async (project: string, key: string, { made = false }: { made?: boolean }) => {
      const { api, print, confirm } = open();
      await confirm(`Revoke ${key} of ${project}? Programs that use it are locked out.`);
      const path = `${projectPath(project)}/keys/${encodeURIComponent(key)}`;
      const { key: revoked, made: ended } = await api.json(made ? `${path}?made=true` : path, {
        method: "DELETE",
      });
      const more = made ? ` With it ended: ${ended.join(", ") || "nothing"}.` : "";
      print(revoked, () => `${revoked.id} was revoked at ${revoked.revokedAt}.${more}`);
    });
}

import type { Command } from "commander";
import type { Context } from "./context.ts";
import { projectPath } from "./paths.ts";
import { formatFields } from "./table.ts";

interface CreateOptions {
  name?: string;
  scope?: string[];
  user?: string;
  defaultUser?: string;
}

/** `farebox keys …` */
export function addKeys(program: Command, open: () => Context): void {
  const keys = program.command("keys").description("the API keys of a project");
  keys.command("list <project>").description("all keys, also revoked ones")
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
        REVOKED: ({ revokedAt }) => revokedAt,
      });
    });
  keys.command("create <project>").description("one more key, which is shown this once")
    .option("--name <name>", "to tell it apart")
    .option("--scope <scope>", "chat, money or webhooks, once for each; else all", alsoNamed)
    .option("--user <user>", "binds a chat key to one user")
    .option("--default-user <user>", "whose a call is that names nobody")
    .action(async (project: string, { name, scope, user, defaultUser }: CreateOptions) => {
      const { api, print, note } = open();
      const body = { name, scopes: scope, user, defaultUser };
      const made = await api.json(`${projectPath(project)}/keys`, { body });
      print(made, () => formatFields({ ...made.key, apiKey: made.apiKey }));
      note("The API key is shown this once: keep it.");
    });
  keys.command("revoke <project> <key>").description(
    "end a key; calls with it are 401 from then on",
  )
    .action(async (project: string, key: string) => {
      const { api, print, confirm } = open();
      await confirm(`Revoke ${key} of ${project}? Whoever uses it is locked out.`);
      const path = `${projectPath(project)}/keys/${encodeURIComponent(key)}`;
      const { key: revoked } = await api.json(path, { method: "DELETE" });
      print(revoked, () => `${revoked.id} is revoked since ${revoked.revokedAt}.`);
    });
}

/** One more value of an option that may be given several times. */
function alsoNamed(value: string, before: string[] = []): string[] {
  return [...before, value];
}

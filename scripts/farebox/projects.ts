import type { Command } from "commander";
import type { Body } from "./api.ts";
import type { Context } from "./context.ts";
import { usage } from "./failure.ts";
import { readSettingsOption } from "./input.ts";
import { listing, type ListOptions, printList } from "./list.ts";
import { projectPath } from "./paths.ts";
import { formatFields } from "./table.ts";

interface Settings {
  name?: string;
  owner?: string;
  currency?: string;
  mode?: string;
  settings?: string;
}

const all = "/v1/admin/projects";

/** `farebox projects …` */
export function addProjects(program: Command, open: () => Context): void {
  const projects = program.command("projects").description("manage projects");
  listing(projects.command("list").description("list all projects, oldest first"))
    .action((options: ListOptions) => list(open(), options));
  projects.command("get <project>").alias("show").description(
    "show a project with all its settings",
  )
    .action(async (id: string) => {
      const { api, print } = open();
      const { project } = await api.json(projectPath(id));
      print(project, () => formatFields(project));
    });
  settable(
    projects.command("create").description("create a project; its keys are shown only once"),
  )
    .option("--currency <code>", "an ISO 4217 code such as eur; cannot be changed. Default: usd")
    .option("--mode <mode>", "default, or shared for wallets; cannot be changed")
    .action((options: Settings) => create(open(), options));
  settable(
    projects.command("update <project>").description(
      "merge settings into the given ones; null removes one",
    ),
  )
    .action((id: string, options: Settings) => update(open(), id, options));
  projects.command("archive <project>")
    .description("refuse new calls, charges and deposits; cannot be undone")
    .action((id: string) => archive(open(), id));
}

function settable(command: Command): Command {
  return command
    .option("--name <name>", "the project's name, as people see it")
    .option("--owner <user>", "the owner's user id, as events contain it")
    .option("--settings <json>", "any settings; - reads them from standard input");
}

async function bodyOf({ name, owner, currency, mode, settings }: Settings): Promise<Body> {
  const given = Object.entries({ name, ownerUserId: owner, currency, mode })
    .filter(([, value]) => value !== undefined);
  return { ...await readSettingsOption(settings), ...Object.fromEntries(given) };
}

/** Prints what tells a project from others, and the settings that were just `given`. */
function printChanged(
  { print, note, isJson }: Context,
  project: Body,
  { given, keys = {} }: { given: Body; keys?: Body },
): void {
  const names = new Set(["id", "name", "currency", "mode", ...Object.keys(given)]);
  const shown = [...names].map((name) => [name, project[name]]);
  print({ ...project, ...keys }, () => formatFields({ ...keys, ...Object.fromEntries(shown) }));
  if (!isJson) note(`All settings: deno task farebox projects get ${project.id}`);
}

function list(context: Context, options: ListOptions): Promise<void> {
  return printList(context, options, {
    path: all,
    name: "projects",
    columns: {
      ID: ({ id }) => id,
      NAME: ({ name }) => name,
      CURRENCY: ({ currency }) => currency,
      MODE: ({ mode }) => mode,
      STATUS: ({ status }) => status,
      CREATED: ({ createdAt }) => createdAt,
    },
  });
}

async function create(context: Context, options: Settings): Promise<void> {
  const body = await bodyOf(options);
  if (body.name === undefined) throw usage("A project needs a --name.");
  const { project, apiKey, ownerKey } = await context.api.json(all, { body });
  printChanged(context, project, { given: body, keys: { apiKey, ownerKey } });
  context.note("The keys are shown only once: store them now. The owner key opens the console.");
  const [model = "gpt-4o-mini"] = Object.keys(project.pricing.models);
  if (!(model in project.pricing.models) && !project.pricing.catalogue) {
    const price = "--input 0.15 --output 0.60";
    context.note(`\nSet a price:\ndeno task farebox prices set ${project.id} ${model} ${price}`);
  }
  context.note(`\nTry it:\n${firstRequest(context.settings.url, apiKey, model)}`);
}

async function update(context: Context, id: string, options: Settings): Promise<void> {
  const body = await bodyOf(options);
  if (Object.keys(body).length === 0) {
    throw usage("Nothing to change. Use --name, --owner or --settings.");
  }
  const { project } = await context.api.json(projectPath(id), { method: "PATCH", body });
  printChanged(context, project, { given: body });
}

async function archive(context: Context, id: string): Promise<void> {
  const { project } = await context.api.json(projectPath(id));
  await context.confirm(
    `Archive ${id} (${project.name})? It will refuse deposits, charges and calls.`,
  );
  const answer = await context.api.json(`${projectPath(id)}/archive`, { method: "POST" });
  context.print(answer.project, () => `${id} is archived.`);
}

/** A request to paste into a shell. */
function firstRequest(url: string, apiKey: string, model: string): string {
  return [
    `curl ${url}/v1/chat/completions \\`,
    `  -H "Authorization: Bearer ${apiKey}" -H "Content-Type: application/json" \\`,
    `  -d '{"model":"${model}","user":"ada","messages":[{"role":"user","content":"Hello"}]}'`,
  ].join("\n");
}

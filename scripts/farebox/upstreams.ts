import type { Command } from "commander";
import { providers } from "../../src/projects/providers.ts";
import type { Body } from "./api.ts";
import type { Context } from "./context.ts";
import { refused, usage } from "./failure.ts";
import { readSecret, readSettingsOption } from "./input.ts";
import { projectPath } from "./paths.ts";

interface Given {
  provider?: string;
  url?: string;
  key?: boolean;
  settings?: string;
  strategy?: string;
}

/** `farebox upstreams …` and `farebox routes …` */
export function addUpstreams(program: Command, open: () => Context): void {
  const upstreams = program.command("upstreams").description("manage a project's upstreams");
  upstreams.command("list <project>").description("list them by name")
    .action((id: string) => listUpstreams(open(), id));
  upstreams.command("set <project> <name>").description("add an upstream, or change one")
    .option("--provider <name>", `a prepared provider: ${Object.keys(providers).join(", ")}`)
    .option("--url <url>", "its base URL, where the provider has none")
    .option("--key", "read its API key from standard input, such as a file: --key < FILE")
    .option("--settings <json>", "any other settings of it")
    .action((id: string, name: string, given: Given) => setUpstream(open(), { id, name, given }));
  upstreams.command("remove <project> <name>").description("remove an upstream without routes")
    .action((id: string, name: string) => remove(open(), id, { of: "upstreams", name }));

  const routes = program.command("routes").description("manage where a project's models go");
  routes.command("list <project>").description("list them by model")
    .action((id: string) => listRoutes(open(), id));
  routes.command("set <project> <model> <targets...>")
    .description(
      "lead a model to targets such as main=gpt-4o or main=gpt-4o*3; main alone is the " +
        "name that was asked for",
    )
    .option("--strategy <name>", "order, weight, cheapest or fastest. Default: order")
    .action((id: string, model: string, targets: string[], given: Given) =>
      setRoute(open(), { id, model, targets, given })
    );
  routes.command("remove <project> <model>").description("remove a route")
    .action((id: string, model: string) => remove(open(), id, { of: "routes", name: model }));
}

async function projectOf({ api }: Context, id: string): Promise<Body> {
  return (await api.json(projectPath(id))).project;
}

async function change(context: Context, id: string, body: Body): Promise<Body> {
  return (await context.api.json(projectPath(id), { method: "PATCH", body })).project;
}

async function listUpstreams(context: Context, id: string): Promise<void> {
  const { upstreams } = await projectOf(context, id);
  const rows = Object.entries<Body>(upstreams).map(([name, settings]) => ({ name, ...settings }));
  context.printRows(rows, {
    NAME: ({ name }) => name,
    PROVIDER: ({ provider }) => provider,
    URL: ({ url }) => url,
    KEY: ({ apiKey }) => apiKey && "set",
    MODELS: ({ models }) => models,
  });
}

async function setUpstream(
  context: Context,
  { id, name, given }: { id: string; name: string; given: Given },
): Promise<void> {
  const { provider, url, key } = given;
  const apiKey = key ? await readSecret("--key") : undefined;
  const named = Object.entries({ provider, url, apiKey }).filter(([, value]) =>
    value !== undefined
  );
  const settings = { ...await readSettingsOption(given.settings) };
  const upstream = { ...settings, ...Object.fromEntries(named) };
  if (Object.keys(upstream).length === 0) {
    throw usage("Nothing to set. Use --provider, --url, --key or --settings.");
  }
  const { upstreams } = await change(context, id, { upstreams: { [name]: upstream } });
  context.print({ name, ...upstreams[name] }, () => `${name} is set.`);
}

async function listRoutes(context: Context, id: string): Promise<void> {
  const { routes } = await projectOf(context, id);
  const rows = Object.entries<Body>(routes).map(([model, route]) => ({ model, ...route }));
  context.printRows(rows, {
    MODEL: ({ model }) => model,
    STRATEGY: ({ strategy }) => strategy,
    TARGETS: ({ targets }) => targets.map(targetText).join(" "),
  });
}

function targetText({ upstream, model, weight = 1 }: Body): string {
  return `${upstream}${model === undefined ? "" : `=${model}`}${weight === 1 ? "" : `*${weight}`}`;
}

async function setRoute(
  context: Context,
  { id, model, targets, given }: { id: string; model: string; targets: string[]; given: Given },
): Promise<void> {
  const { strategy = "order" } = given;
  const route = { strategy, targets: targets.map(targetIn) };
  const { routes } = await change(context, id, { routes: { [model]: route } });
  context.print({ model, ...routes[model] }, () => `${model} is set.`);
}

/** Reads `upstream`, `upstream=model` or one of these with `*weight`. Throws for anything else. */
function targetIn(text: string) {
  const found = /^([^=*\s]+)(?:=([^\s]+?))?(?:\*(\d+(?:\.\d+)?))?$/.exec(text);
  if (!found) throw usage(`'${text}' is not a target such as main=gpt-4o or main=gpt-4o*3.`);
  const [, upstream, model, weight] = found;
  return {
    upstream,
    ...(model === undefined ? {} : { model }),
    ...(weight === undefined ? {} : { weight: Number(weight) }),
  };
}

async function remove(
  context: Context,
  id: string,
  { of, name }: { of: "upstreams" | "routes"; name: string },
): Promise<void> {
  const before = await projectOf(context, id);
  if (!Object.hasOwn(before[of], name)) throw refused(`There is no '${name}' in its ${of}.`);
  const { upstreams, routes } = await change(context, id, { [of]: { [name]: null } });
  context.print({ upstreams, routes }, () => `${name} is removed.`);
}

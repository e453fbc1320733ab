import type { Command } from "commander";
import { isObject } from "../../src/base/json.ts";
import type { Body } from "./api.ts";
import type { Context } from "./context.ts";
import { usage } from "./failure.ts";
import { projectPath } from "./paths.ts";
import { formatTable } from "./table.ts";

const path = "/v1/admin/catalogue";
const fetchMs = 30_000;

/** `farebox prices …` */
export function addPrices(program: Command, open: () => Context): void {
  const prices = program.command("prices").description(
    "manage list prices, and those of a project",
  );
  prices.command("show").description("show the dates of the catalogue")
    .action(() => show(open()));
  prices.command("diff <source>")
    .description("compare a price file or URL with the prices in force")
    .action((source: string) => diff(open(), source));
  prices.command("refresh <source>")
    .description("put the prices of a file or URL in force, after showing what changes")
    .action((source: string) => refresh(open(), source));
  prices.command("list <project>").description("list the prices that a project has set")
    .action((project: string) => listPrices(open(), project));
  prices.command("markup <project> <percent>")
    .description("serve every model of the catalogue, at its list price plus a percentage")
    .action((project: string, percent: string) => setMarkup(open(), project, percent));
  prices.command("set <project> <model>")
    .description("set a model's price in a project, per million tokens; others stay")
    .requiredOption("--input <price>", "the price of input tokens")
    .requiredOption("--output <price>", "the price of output tokens")
    .option("--cached-input <price>", "the price of cached input tokens")
    .action((project: string, model: string, price: ModelPrice) =>
      setPrice(open(), { project, model, price })
    );
  prices.command("import <project> <file>")
    .description("set the prices of a JSON file, by model; others stay")
    .action((project: string, file: string) => importPrices(open(), project, file));
}

interface ModelPrice {
  input: string;
  output: string;
  cachedInput?: string;
}

async function setPrice(
  { api, print }: Context,
  { project, model, price }: { project: string; model: string; price: ModelPrice },
): Promise<void> {
  const body = { pricing: { models: { [model]: { ...price } } } };
  const changed = await api.json(projectPath(project), { method: "PATCH", body });
  const now = changed.project.pricing.models[model];
  print(now, () => `${model}: ${now.input} input, ${now.output} output, per million tokens.`);
}

async function listPrices({ api, print, note }: Context, project: string): Promise<void> {
  const { project: { pricing, currency } } = await api.json(projectPath(project));
  const models: [string, Body][] = Object.entries(pricing.models);
  print(pricing, () =>
    models.length === 0 ? "The project has no prices of its own." : formatTable(
      ["MODEL", "INPUT", "OUTPUT", "CACHED INPUT", "OTHERS"],
      models.map(([model, { input, output, cachedInput, ...others }]) => [
        model,
        input ?? "-",
        output ?? "-",
        cachedInput ?? "-",
        Object.keys(others).join(", ") || "-",
      ]),
    ));
  note(`\nIn ${currency} per million tokens. ${describeOthers(pricing)}`);
}

/** What users pay for the models without a price of their own. */
function describeOthers({ catalogue, markupPercent, requestFee, models }: Body): string {
  const fee = Number(requestFee ?? 0) === 0 ? "" : ` Each response also costs ${requestFee}.`;
  if ("*" in models) return `Other models cost as "*".${fee}`;
  if (!catalogue) return `Other models are not served.${fee}`;
  const markup = Number(markupPercent ?? 0) === 0 ? "" : ` plus ${markupPercent} %`;
  return `Other models cost the catalogue's list price${markup}.${fee}`;
}

async function setMarkup({ api, print }: Context, project: string, percent: string): Promise<void> {
  const body = { pricing: { catalogue: true, markupPercent: percent } };
  const changed = await api.json(projectPath(project), { method: "PATCH", body });
  const { pricing } = changed.project;
  print(pricing, () => describeOthers(pricing));
}

async function importPrices(context: Context, project: string, file: string): Promise<void> {
  const { api, print, note, confirm } = context;
  const text = await Deno.readTextFile(file).catch(() => {
    throw usage(`${file} cannot be read.`);
  });
  const models = readModels(text, file);
  const before = (await api.json(projectPath(project))).project.pricing.models;
  const changes = Object.entries(models)
    .map(([model, after]) => ({ provider: "", model, before: before[model] ?? null, after }))
    .filter(({ before, after }) => JSON.stringify(before) !== JSON.stringify(after));
  note(describeChanges(changes));
  await confirm(`Set ${changes.length} prices of ${project}?`);
  const body = { pricing: { models } };
  const { project: { pricing } } = await api.json(projectPath(project), { method: "PATCH", body });
  print(pricing.models, () => `${changes.length} prices are set.`);
}

/** Reads an object of prices by model. Throws for anything else. */
function readModels(text: string, file: string): Body {
  try {
    const models: unknown = JSON.parse(text);
    if (isObject(models) && Object.values(models).every(isObject)) return models;
  } catch {
    // Said below.
  }
  throw usage(`${file} must contain a JSON object of prices by model.`);
}

async function show({ api, print }: Context): Promise<void> {
  const dates = await api.json(path);
  print(
    dates,
    () => `Prices of ${dates.date}; those that came with this version are of ${dates.packageDate}.`,
  );
}

async function diff({ api, print }: Context, source: string): Promise<void> {
  const body = await readSource(source);
  const found = await api.json(`${path}/diff`, { method: "POST", body });
  print(found, () => describeChanges(found.changes));
}

async function refresh({ api, print, note, confirm }: Context, source: string): Promise<void> {
  const body = await readSource(source);
  const { changes } = await api.json(`${path}/diff`, { method: "POST", body });
  note(describeChanges(changes));
  await confirm(`Put ${changes.length} changed prices in force?`);
  const done = await api.json(path, { method: "POST", body });
  print(done, () => `The catalogue has the prices of ${done.date}.`);
}

function describeChanges(changes: Body[]): string {
  if (changes.length === 0) return "No price changes.";
  const short = (price: Body | null) =>
    price === null ? "-" : JSON.stringify(price).replaceAll('"', "").slice(1, -1);
  return formatTable(
    ["PROVIDER", "MODEL", "BEFORE", "AFTER"],
    changes.map(({ provider, model, before, after }) => [
      provider,
      model,
      short(before),
      short(after),
    ]),
  );
}

/** Reads a price file from a path or an http or https URL, as the body of a request. */
async function readSource(source: string): Promise<unknown> {
  const value = /^https?:/i.test(source) ? await readUrl(source) : await readFile(source);
  return Array.isArray(value) ? { providers: value.map(withoutPatterns) } : value;
}

async function readFile(path: string): Promise<unknown> {
  try {
    return JSON.parse(await Deno.readTextFile(path));
  } catch (error) {
    throw usage(`${path} could not be read: ${error instanceof Error ? error.message : error}`);
  }
}

/** A query may be a token, so that an error repeats no part of the URL but its host. */
async function readUrl(source: string): Promise<unknown> {
  const url = URL.parse(source);
  if (!url || source.includes("@")) {
    throw usage("The source is not an http or https URL without credentials.");
  }
  const fail = (why: string) => usage(`The prices could not be read from ${url.host}: ${why}.`);
  const response = await fetch(url, { signal: AbortSignal.timeout(fetchMs) }).catch(() => {
    throw fail("it does not respond");
  });
  if (!response.ok) throw fail(`it sent ${response.status}`);
  return await response.json().catch(() => {
    throw fail("it sent no JSON");
  });
}

/** A provider with the prices of its models alone: descriptions make most of the file. */
function withoutPatterns(provider: unknown): unknown {
  if (!isObject(provider) || !Array.isArray(provider.models)) return provider;
  const models = provider.models.map((model) =>
    isObject(model) ? { id: model.id ?? null, prices: model.prices ?? null } : model
  );
  return { id: provider.id ?? null, models };
}

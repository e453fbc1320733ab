import type { Command } from "commander";
import { isObject } from "../../src/base/json.ts";
import type { Body } from "./api.ts";
import type { Context } from "./context.ts";
import { usage } from "./failure.ts";
import { formatTable } from "./table.ts";

const path = "/v1/admin/catalogue";
const fetchMs = 30_000;

/** `farebox prices …` */
export function addPrices(program: Command, open: () => Context): void {
  const prices = program.command("prices").description("manage the catalogue of list prices");
  prices.command("show").description("show the dates of the catalogue")
    .action(() => show(open()));
  prices.command("diff <source>")
    .description("compare a price file or URL with the prices in force")
    .action((source: string) => diff(open(), source));
  prices.command("refresh <source>")
    .description("put the prices of a file or URL in force, after showing what changes")
    .action((source: string) => refresh(open(), source));
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
  try {
    const value = await readJson(source);
    return Array.isArray(value) ? { providers: value.map(withoutPatterns) } : value;
  } catch (error) {
    throw usage(`${source} could not be read: ${error instanceof Error ? error.message : error}`);
  }
}

async function readJson(source: string): Promise<unknown> {
  if (!/^https?:\/\//i.test(source)) return JSON.parse(await Deno.readTextFile(source));
  const response = await fetch(source, { signal: AbortSignal.timeout(fetchMs) });
  if (!response.ok) throw new Error(`status ${response.status}`);
  return await response.json();
}

/** A provider with the prices of its models alone: descriptions make most of the file. */
function withoutPatterns(provider: unknown): unknown {
  if (!isObject(provider) || !Array.isArray(provider.models)) return provider;
  const models = provider.models.map((model) =>
    isObject(model) ? { id: model.id ?? null, prices: model.prices ?? null } : model
  );
  return { id: provider.id ?? null, models };
}

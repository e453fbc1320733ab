// `deno task clients [--only codex] [--upstream chat] [--direct] [--cache FOLDER]`: installs the
// programs that people use, runs each against a real service in front of a scripted provider, as
// its guide says, and prints what works. Exits 1 when anything does not. `--upstream` names the
// formats that the provider speaks, all by default. `--direct` leaves the service out.
import { parseArgs } from "node:util";
import { type ClientCase, clientCases, type Trial } from "./clients/cases.ts";
import { providerFormats } from "./clients/provider.ts";
import { programs } from "./clients/programs.ts";
import { startClientsService } from "./clients/service.ts";

const { values } = parseArgs({
  args: Deno.args,
  options: {
    only: { type: "string", multiple: true, default: [] },
    upstream: { type: "string", multiple: true, default: [...providerFormats] },
    direct: { type: "boolean", default: false },
    cache: { type: "string" },
  },
});
const formats = providerFormats.filter((name) => values.upstream.includes(name));
const chosen = programs.filter(({ name, needsService }) =>
  (values.only.length === 0 || values.only.some((word) => name.startsWith(word))) &&
  !(needsService && values.direct)
);
if (chosen.length === 0 || formats.length === 0) {
  console.error(`--only: ${programs.map(({ name }) => name).join(", ")}`);
  console.error(`--upstream: ${providerFormats.join(", ")}`);
  Deno.exit(1);
}
const cache = values.cache ?? `${Deno.env.get("HOME") ?? "."}/.cache/farebox-clients`;
const cases = clientCases.filter(({ needsService }) => !needsService || !values.direct);
const caseMs = 180_000;
const failures: string[] = [];
{
  await using service = await startClientsService(formats);
  const table = [["", ...cases.map(({ name }) => name)]];
  for (const program of chosen) {
    const installed = await program.install?.(cache).catch((error) => {
      failures.push(`${program.name} is not installed: ${error.message}`);
      return null;
    });
    if (installed === null) continue;
    const trial = { service, program, installed: installed ?? "", direct: values.direct };
    const row = [program.name];
    for (const tried of cases) row.push(await outcome(tried, trial));
    table.push(row);
    console.log(row.join("  "));
  }
  console.log(`\n${tableText(table)}`);
}
for (const failure of failures) console.log(`\n${failure}`);
console.log(`\nclients | ${chosen.length * cases.length} cases | ${failures.length} failed`);
Deno.exit(failures.length > 0 ? 1 : 0);

async function outcome(tried: ClientCase, trial: Trial): Promise<string> {
  const before = trial.service.provider.calls.length;
  try {
    await within(caseMs, tried.run(trial));
    return "ok";
  } catch (error) {
    const refused = trial.service.provider.calls.slice(before).flatMap(({ path, error }) =>
      error === null ? [] : [`the provider refused ${path}: ${error}`]
    );
    const words = error instanceof Error ? error.message : String(error);
    const all = [`${trial.program.name}, ${tried.name}: ${words}`, ...refused].join("\n");
    failures.push(all.slice(0, 3_000));
    return "FAILED";
  }
}

async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`not done after ${ms / 1000} s`)), ms);
  return await Promise.race([work, promise]).finally(() => clearTimeout(timer));
}

function tableText(rows: readonly string[][]): string {
  const widths = rows[0]?.map((_, at) => Math.max(...rows.map((row) => row[at]?.length ?? 0))) ??
    [];
  return rows.map((row) => row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join("  "))
    .join("\n");
}

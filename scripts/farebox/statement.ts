import { type Command, Option } from "commander";
import { statementGroups } from "../../src/statements/statement.ts";
import type { Context } from "./context.ts";
import { projectPath } from "./paths.ts";

interface PeriodOptions {
  to?: string;
  tz?: string;
  group: string;
  csv?: boolean;
}

/** A statement reads all entries: a million take some seconds. */
const timeoutMs = 10 * 60 * 1000;

/** `farebox statement` and `farebox balances` */
export function addStatement(program: Command, open: () => Context): void {
  program.command("statement <project> <from>")
    .description("what moved balances in a month, a day, or from a time on, by reason")
    .option("--to <time>", "the end, exclusive, if it is not that of the month or day")
    .option("--tz <zone>", "the time zone of months and days, such as Europe/Berlin. Default: UTC")
    .addOption(
      new Option("--group <what>", "by what the rows are").choices(statementGroups).default("day"),
    )
    .option("--csv", "print CSV")
    .action(async (project: string, from: string, { csv, ...options }: PeriodOptions) => {
      const context = open();
      const path = `${projectPath(project)}/statement`;
      await print(context, path, { query: { from, ...options }, isCsv: csv ?? false });
    });
  program.command("balances <project> [at]")
    .description("what a project owed each user at a time; now by default")
    .option("--tz <zone>", "the time zone of a month or day. Default: UTC")
    .option("--csv", "print CSV")
    .action(async (project: string, at: string | undefined, options: PeriodOptions) => {
      const query = { at, tz: options.tz };
      const path = `${projectPath(project)}/balances`;
      await print(open(), path, { query, isCsv: options.csv ?? false });
    });
}

async function print(
  { api, isJson, print }: Context,
  path: string,
  { query, isCsv }: { query: Record<string, string | undefined>; isCsv: boolean },
): Promise<void> {
  if (isJson && !isCsv) return print(await api.json(path, { query, timeoutMs }), "");
  const response = await api.raw(path, { query: { ...query, format: "csv" }, timeoutMs });
  const text = await response.text();
  print(text, text.trimEnd());
}

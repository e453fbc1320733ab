import { type Command, InvalidArgumentError } from "commander";
import type { CallOptions } from "./api.ts";
import type { Columns, Context } from "./context.ts";

/** The options of a command that lists. */
export interface ListOptions {
  limit: number;
  all?: boolean;
  cursor?: string;
}

interface List {
  path: string;
  /** The field of the response that contains the items. */
  name: string;
  columns: Columns;
  query?: CallOptions["query"];
}

/** Adds the options of all lists to a command. */
export function listing(command: Command): Command {
  return command
    .option("--limit <n>", "the most items to print", readCount, 100)
    .option("--all", "print all items")
    .option("--cursor <cursor>", "continue where an earlier list ended");
}

/** Prints a list page by page, and reports on standard error when there is more. */
export async function printList(
  { api, note, printRows }: Context,
  { limit, all, cursor }: ListOptions,
  { path, name, columns, query }: List,
): Promise<void> {
  const pages = api.pages(path, {
    name,
    limit: all ? Infinity : limit,
    query: { ...query, cursor },
  });
  for (;;) {
    const { done, value } = await pages.next();
    if (!done) {
      printRows(value, columns);
      continue;
    }
    if (value !== null) note(`There is more. Continue with --cursor ${value}, or use --all.`);
    return;
  }
}

function readCount(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("It must be a whole number of at least 1.");
}

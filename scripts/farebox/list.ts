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
  /** The field of the answer that holds the items. */
  name: string;
  columns: Columns;
  query?: CallOptions["query"];
}

/** Adds to a command what all lists take. */
export function listing(command: Command): Command {
  return command
    .option("--limit <n>", "at most so many", readCount, 100)
    .option("--all", "however many there are")
    .option("--cursor <cursor>", "go on where an earlier list ended");
}

/** Prints a list page by page, and says on standard error when there is more. */
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
    if (value !== null) note(`There is more: go on with --cursor ${value}, or ask for --all.`);
    return;
  }
}

function readCount(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("It must be a whole number from 1 on.");
}

import process from "node:process";
import { createInterface } from "node:readline/promises";
import { type Api, type Body, createApi } from "./api.ts";
import { refused, usage } from "./failure.ts";
import { type Lookup, readSettings, type Settings } from "./settings.ts";
import { formatTable, formatValue } from "./table.ts";

/** The options that all commands have. */
export interface Given {
  url?: string;
  json?: boolean;
  yes?: boolean;
}

/** The person or program that runs a command. */
export interface Terminal {
  /** Whether a program reads the output. */
  isJson: boolean;
  /** The command's one result on standard output: `value` as JSON, or `text` for people. */
  print(value: unknown, text: string | (() => string)): void;
  /** Items of a list as they come: a line of JSON each, or a table of `columns`. */
  printRows(items: readonly Body[], columns: Columns): void;
  /** A line on standard error. */
  note(text: string): void;
  /** The same, at most once a second: that a long run is seen to go on. */
  progress(text: () => string): void;
  /** Goes on after a yes, or with `--yes`. Throws when it is no, or nobody can be asked. */
  confirm(question: string): Promise<void>;
}

/** What a command works with: the service, and who runs it. */
export interface Context extends Terminal {
  /** Where the service is. */
  settings: Settings;
  api: Api;
}

/** What stands above a column, and what in it. */
export type Columns = Record<string, (item: Body) => unknown>;

const progressMs = 1_000;

/** The context of one command. Throws where settings are missing. */
export function openContext(lookup: Lookup, given: Given): Context {
  const settings = readSettings(lookup, given);
  return { settings, api: createApi(settings), ...openTerminal(given) };
}

/** Who runs a command that needs no service. */
export function openTerminal(given: Given): Terminal {
  const isJson = given.json ?? false;
  let progressAt = performance.now();
  let headed = false;
  const note = (text: string) => console.error(text);
  return {
    isJson,
    note,
    print(value, text) {
      if (isJson) console.log(JSON.stringify(value));
      else console.log(typeof text === "string" ? text : text());
    },
    printRows(items, columns) {
      if (isJson) return items.forEach((item) => console.log(JSON.stringify(item)));
      const cells = items.map((item) => Object.values(columns).map((of) => formatValue(of(item))));
      const table = formatTable(Object.keys(columns), cells);
      // The head is said once, however many pages there are.
      if (!headed || items.length > 0) {
        console.log(headed ? table.slice(table.indexOf("\n") + 1) : table);
      }
      headed = true;
    },
    progress(text) {
      if (performance.now() - progressAt < progressMs) return;
      progressAt = performance.now();
      note(text());
    },
    async confirm(question) {
      if (given.yes) return;
      if (!Deno.stdin.isTerminal()) {
        throw usage(`${question}\nNobody can be asked here: say --yes to do it.`);
      }
      const terminal = createInterface({ input: process.stdin, output: process.stderr });
      // Whoever ends the input instead of answering says no.
      const closed = new Promise<string>((resolve) => terminal.once("close", () => resolve("")));
      const answer = await Promise.race([terminal.question(`${question} [y/N] `), closed]);
      terminal.close();
      if (!/^y(es)?$/i.test(answer.trim())) throw refused("Nothing was done.");
    },
  };
}

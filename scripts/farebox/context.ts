import process from "node:process";
import { createInterface } from "node:readline/promises";
import { type Api, type Body, createApi } from "./api.ts";
import { refused, usage } from "./failure.ts";
import { type Lookup, readSettings, type Settings } from "./settings.ts";
import { formatTable, formatValue } from "./table.ts";

/** The options that all commands have. */
export interface Given {
  /** The URL of the service. */
  service?: string;
  json?: boolean;
  yes?: boolean;
}

/** The terminal or program that runs a command. */
export interface Terminal {
  /** Whether a program reads the output. */
  isJson: boolean;
  /** Prints the command's result to standard output: `value` as JSON, or `text` for people. */
  print(value: unknown, text: string | (() => string)): void;
  /** Prints items of a list as they arrive: one line of JSON each, or a table of `columns`. */
  printRows(items: readonly Body[], columns: Columns): void;
  /** Prints a line to standard error. */
  note(text: string): void;
  /** Prints a line about the progress of a long run to standard error, at most once a second. */
  progress(text: () => string): void;
  /** Continues after a yes, or with `--yes`. Throws for a no, or without a terminal. */
  confirm(question: string): Promise<void>;
}

/** What a command works with: the service, and the terminal. */
export interface Context extends Terminal {
  /** The service's URL and key. */
  settings: Settings;
  api: Api;
}

/** The titles of columns, and what they show. */
export type Columns = Record<string, (item: Body) => unknown>;

const progressMs = 1_000;

/** Opens the context of one command. Throws where settings are missing. */
export function openContext(lookup: Lookup, given: Given): Context {
  const settings = readSettings(lookup, given);
  return { settings, api: createApi(settings), ...openTerminal(given) };
}

/** Opens the terminal for a command that needs no service. */
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
      // The head is printed once, however many pages there are.
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
        throw usage(`${question}\nThere is no terminal to confirm this. Use --yes.`);
      }
      const terminal = createInterface({ input: process.stdin, output: process.stderr });
      // Ending the input instead of answering means no.
      const closed = new Promise<string>((resolve) => terminal.once("close", () => resolve("")));
      const answer = await Promise.race([terminal.question(`${question} [y/N] `), closed]);
      terminal.close();
      if (!/^y(es)?$/i.test(answer.trim())) throw refused("Canceled. Nothing was done.");
    },
  };
}

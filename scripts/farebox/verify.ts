import { type Command, InvalidArgumentError } from "commander";
import { describeVerdict, verifyLedger } from "../verify_ledger.ts";
import type { Context } from "./context.ts";
import { refused } from "./failure.ts";

interface GivenOptions {
  since?: boolean;
  parallel: number;
}

const partsMax = 64;

const notes = `
Each account that is verified without a fault gets a mark in the database: up to which entry it was
sound. --since begins at the marks. It takes little time, finds what is wrong with everything since,
and continues a verification that was cut off. Without it everything is read, and compared with the
marks too: an older entry that has changed since is found by that alone.`;

/** `farebox verify` */
export function addVerify(program: Command, open: () => Context): void {
  program.command("verify")
    .description("verify the whole database, while the service runs; exits with 1 at any fault")
    .option("--since", "only what came since each account was last verified")
    .option("--parallel <n>", "in so many parts at once, for several processes", readParts, 1)
    .addHelpText("after", notes)
    .action(async (options: GivenOptions) => {
      const { settings, print, progress } = open();
      const verdict = await verifyLedger({
        ...settings,
        ...options,
        onPage: ({ checked, faults }, scan) =>
          progress(() => {
            const records = Object.values(checked).reduce((sum, count) => sum + count, 0);
            return `${scan}: ${records} records so far, ${faults.length} faults`;
          }),
      });
      print(verdict, () => describeVerdict(verdict));
      const { length } = verdict.faults;
      if (length > 0) throw refused(`${length} faults were found; they are listed above.`);
    });
}

function readParts(text: string): number {
  const parts = /^\d{1,2}$/.test(text) ? Number(text) : 0;
  if (parts >= 1 && parts <= partsMax) return parts;
  throw new InvalidArgumentError(`It must be a number from 1 to ${partsMax}.`);
}

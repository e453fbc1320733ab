import type { Command } from "commander";
import { describeVerdict, verifyLedger } from "../verify_ledger.ts";
import type { Context } from "./context.ts";
import { refused } from "./failure.ts";

/** `farebox verify` */
export function addVerify(program: Command, open: () => Context): void {
  program.command("verify")
    .description("verify the whole database, while the service runs; exits with 1 at any fault")
    .action(async () => {
      const { settings, print, progress } = open();
      const verdict = await verifyLedger({
        ...settings,
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

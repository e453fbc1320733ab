import type { Command } from "commander";
import { sealBytes } from "../../src/backup/seal.ts";
import { checkDatabase, SealReader } from "./backup_file.ts";
import type { Context } from "./context.ts";
import { Unreachable } from "./failure.ts";
import { openOutput } from "./output_file.ts";

/** The service responds once it has its copy, which takes as long as its disk needs. */
const copyMs = 30 * 60_000;

const notes = `
The backup is the whole database at one moment, with all projects; the service keeps running.
It contains balances and secrets: keep it as safe as the database itself, and keep SECRETS_KEY,
which decrypts the secrets, elsewhere. FILE is created only once it is complete and verified.`;

/** `farebox backup` */
export function addBackup(program: Command, open: () => Context): void {
  program.command("backup")
    .description("take a consistent copy of the whole database, while the service runs")
    .requiredOption("--out <file>", "the file to write; - for standard output")
    .addHelpText("after", notes)
    .action(async ({ out }: { out: string }) => {
      const context = open();
      const startedAt = performance.now();
      const output = await openOutput(out);
      const { sha256 } = await output.fill(async () => {
        const response = await context.api.raw("/v1/admin/backup", { timeoutMs: copyMs });
        const { sum } = await receive(response, context, (piece) => output.write(piece));
        if (!output.isStdout) checkDatabase(output.partPath, "The response");
        return sum;
      });
      const ms = Math.round(performance.now() - startedAt);
      const told = `${megabytes(output.bytes)} in ${(ms / 1000).toFixed(1)} s`;
      if (output.isStdout) context.note(told);
      else {
        const result = { file: out, bytes: output.bytes, sha256, ms };
        context.print(result, `${told}, in ${out}. It is complete: 'restore' will accept it.`);
      }
    });
}

/** Passes all bytes on, and verifies their seal. */
async function receive(
  { body, headers, url }: Response,
  { progress }: Context,
  write: (piece: Uint8Array) => Promise<void>,
) {
  const seal = new SealReader();
  const total = Number(headers.get("content-length"));
  let received = 0;
  const reader = (body ?? new Blob().stream()).getReader();
  for (;;) {
    const { done, value } = await reader.read().catch((error) => {
      throw new Unreachable(
        `The connection to ${new URL(url).origin} closed after ${megabytes(received)}: ` +
          `${error.message}. Nothing was kept; try again.`,
      );
    });
    if (done) return seal.end("The response");
    seal.add(value);
    await write(value);
    received += value.length;
    progress(() => `${megabytes(received)} of ${megabytes(Math.max(total, sealBytes))}`);
  }
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}

import type { Command } from "commander";
import { sealBytes } from "../../src/backup/seal.ts";
import { checkDatabase, SealReader } from "./backup_file.ts";
import type { Context } from "./context.ts";
import { Unreachable } from "./failure.ts";
import { openOutput } from "./output_file.ts";

/** The service answers once it has its copy, which takes as long as its disk does. */
const copyMs = 30 * 60_000;

const notes = `
The backup is the whole database as it stood at one moment, of all projects; the service goes on
meanwhile. Balances and secrets are in it: keep it as safe as the database itself, and SECRETS_KEY,
which opens the secrets, elsewhere. FILE is there only once it is whole and was checked.`;

/** `farebox backup` */
export function addBackup(program: Command, open: () => Context): void {
  program.command("backup")
    .description("a consistent copy of the whole database, while the service runs")
    .requiredOption("--out <file>", "where to; - is standard output")
    .addHelpText("after", notes)
    .action(async ({ out }: { out: string }) => {
      const context = open();
      const startedAt = performance.now();
      const output = await openOutput(out);
      const { sha256 } = await output.fill(async () => {
        const response = await context.api.raw("/v1/admin/backup", { timeoutMs: copyMs });
        const seal = await receive(response, context, (piece) => output.write(piece));
        if (!output.isStdout) checkDatabase(output.partPath, "What came");
        return seal;
      });
      const ms = Math.round(performance.now() - startedAt);
      const told = `${megabytes(output.bytes)} in ${(ms / 1000).toFixed(1)} s`;
      if (output.isStdout) context.note(told);
      else {
        const result = { file: out, bytes: output.bytes, sha256, ms };
        context.print(result, `${told}, in ${out}. It is whole: 'restore' would take it.`);
      }
    });
}

/** Passes all bytes on, and checks their seal. */
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
        `The connection to ${new URL(url).origin} broke after ${megabytes(received)}: ` +
          `${error.message}. Nothing was kept; ask again.`,
      );
    });
    if (done) return seal.end("What came");
    seal.add(value);
    await write(value);
    received += value.length;
    progress(() => `${megabytes(received)} of ${megabytes(Math.max(total, sealBytes))}`);
  }
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}

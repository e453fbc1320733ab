import type { Command } from "commander";
import type { Body } from "./api.ts";
import type { Context } from "./context.ts";
import { refused, Unreachable } from "./failure.ts";
import { readJsonOption } from "./input.ts";
import { userAddress } from "./paths.ts";
import { formatFields } from "./table.ts";

interface MoneyOptions {
  amount?: string;
  metadata?: string;
  idempotencyKey?: string;
}

/** `farebox deposit`, `charge` and `refund`. */
export function addMoney(program: Command, open: () => Context): void {
  keyed(program.command("deposit <project> <user> <amount>").description("credit a user's balance"))
    .action((project: string, user: string, amount: string, options: MoneyOptions) =>
      book(open(), "deposit", { project, user, options, fields: { amount } })
    );
  keyed(program.command("charge <project> <user> <amount>").description("debit a user's balance"))
    .action((project: string, user: string, amount: string, options: MoneyOptions) =>
      book(open(), "charge", { project, user, options, fields: { amount } })
    );
  keyed(
    program.command("refund <project> <user> <activity>")
      .description("refund an activity, in part or in full")
      .option("--amount <amount>", "a part of it; default: the remaining amount"),
  ).action((project: string, user: string, activityId: string, options: MoneyOptions) =>
    book(open(), "refund", {
      project,
      user,
      options,
      fields: { activityId, amount: options.amount },
    })
  );
}

function keyed(command: Command): Command {
  return command
    .option("--metadata <json>", "stored with the activity; - reads it from standard input")
    .option("--idempotency-key <key>", "makes repeated runs count once; default: a new one");
}

interface Booking {
  project: string;
  user: string;
  options: MoneyOptions;
  fields: Body;
}

async function book(
  { api, print }: Context,
  verb: "deposit" | "charge" | "refund",
  { project, user, options, fields }: Booking,
): Promise<void> {
  const { path, query } = userAddress(project, user);
  const metadata = options.metadata === undefined
    ? undefined
    : await readJsonOption(options.metadata, "--metadata");
  const key = options.idempotencyKey ?? `farebox-${crypto.randomUUID()}`;
  const answer = await api.json(`${path}/${verb}`, {
    body: { ...fields, metadata },
    query,
    headers: { "idempotency-key": key },
  }).catch((error) => {
    if (!(error instanceof Unreachable && error.wasSent)) throw error;
    throw new Unreachable(
      `${error.message}\nIt is unknown whether it was recorded. To record it exactly once, ` +
        `repeat the command with --idempotency-key ${key}`,
    );
  });
  print(answer, () => formatFields(answer));
  if (!answer.success) throw refused(`Nothing was charged: ${answer.reason}.`);
}

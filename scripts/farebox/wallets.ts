import type { Command } from "commander";
import type { Body } from "./api.ts";
import type { Context } from "./context.ts";
import { formatFields, formatTable } from "./table.ts";

interface JoinOptions {
  fromReason?: string;
  intoReason?: string;
}

/** `farebox wallets …` */
export function addWallets(program: Command, open: () => Context): void {
  const wallets = program.command("wallets").description("manage the wallets of the shared mode");
  wallets.command("find <project> <user>")
    .description("list the wallets that pay or paid for a user, most recent first")
    .action(async (projectId: string, user: string) => {
      const { api, printRows } = open();
      const found = await api.json("/v1/admin/wallets", { query: { projectId, user } });
      printRows(found.wallets, {
        WALLET: ({ id }) => id,
        BALANCES: balancesOf,
        OPENED: waysOf,
        JOIN: ({ join }) => join && `${join.status}: ${join.into}`,
      });
    });
  wallets.command("get <wallet>").alias("show").description("show a wallet")
    .action(async (id: string) => {
      const { api, print } = open();
      const { wallet } = await api.json(path(id));
      print(wallet, () => shown(wallet));
    });
  wallets.command("join <from> <into>")
    .description("join two wallets of one person; owners who can open theirs confirm at /wallet")
    .option("--from-reason <text>", "why <from>, which nobody can open, is this person's")
    .option("--into-reason <text>", "why <into>, which nobody can open, is this person's")
    .action((from: string, into: string, options: JoinOptions) =>
      join(open(), { from, into, ...options })
    );
  wallets.command("cancel-join <from>")
    .description("withdraw a join that not all sides have agreed to")
    .action(async (from: string) => {
      const { api, print } = open();
      const result = await api.json(`${path(from)}/join`, { method: "DELETE" });
      print(result, "The wallets stay as they are.");
    });
}

const path = (id: string) => `/v1/admin/wallets/${encodeURIComponent(id)}`;

async function join(
  { api, print, confirm }: Context,
  { from, into, fromReason, intoReason }: JoinOptions & { from: string; into: string },
): Promise<void> {
  await confirm(`Join ${from} into ${into}? It cannot be undone once both sides have agreed.`);
  const reasons = {
    ...(fromReason === undefined ? {} : { from: fromReason }),
    ...(intoReason === undefined ? {} : { into: intoReason }),
  };
  const result = await api.json(`${path(from)}/join`, { method: "POST", body: { into, reasons } });
  const { status, consents } = result.join;
  const missing = [
    ...(consents.from === null ? [from] : []),
    ...(consents.into === null ? [into] : []),
  ];
  print(
    result,
    status === "joined"
      ? `${from} is part of ${into}.`
      : `The owner of ${missing.join(" and that of ")} has to confirm, at /wallet.`,
  );
}

function balancesOf({ balances }: Body): string {
  return balances.map(({ balance, currency }: Body) => `${balance} ${currency}`).join(", ");
}

function waysOf({ devices, passkeys, emails }: Body): string {
  return `${devices} devices, ${passkeys} passkeys, ${emails} addresses`;
}

function shown(wallet: Body): string {
  const fields = formatFields({
    wallet: wallet.id,
    balances: balancesOf(wallet),
    opened: waysOf(wallet),
    join: wallet.join && `${wallet.join.status}: ${wallet.join.into}`,
    parts: wallet.parts.map((each: Body) => `${each.from} (${each.status})`).join(", "),
  });
  const users = wallet.users.map(({ projectId, user, status }: Body) => [projectId, user, status]);
  return `${fields}\n\n${formatTable(["PROJECT", "USER", "STATUS"], users)}`;
}

import { parseMoment } from "../../src/base/moment.ts";
import type { Command } from "commander";
import type { Body } from "./api.ts";
import type { Context } from "./context.ts";
import { Refusal, refused, usage } from "./failure.ts";
import { readSecret } from "./input.ts";
import { projectPath } from "./paths.ts";

const notes = `
Asks Stripe for the paid checkout sessions that were created since that time, and books those that
are not booked: after the webhook was set up late or with a wrong secret, while the service was away
for longer than Stripe repeats its events, or after a backup was restored. Then it records the
refunds and disputes of that time, of which Stripe keeps 30 days. Nothing is booked twice. A bank
payment may arrive two weeks after its session was created: choose an earlier time where they are
accepted. Without PROJECT: all projects with Stripe keys, and this server's own account.`;

const connectNotes = `
Creates the webhook at Stripe, and stores its signing secret with the key, both encrypted. Repeat it
to replace the key: the project's former webhook at that account is removed.`;

/** A page is up to a hundred payments, and a call of Stripe. */
const timeoutMs = 120_000;

/** What a reconciliation has done, over all its pages. */
interface Totals {
  payments: number;
  booked: number;
  bookedBefore: number;
  changes: number;
  unbooked: { session: string; reason: string }[];
}

/** `farebox stripe …` */
export function addStripe(program: Command, open: () => Context): void {
  const stripe = program.command("stripe").description("payments at Stripe");
  stripe.command("connect <project>")
    .description("take a project's payments at its owner's Stripe account, by the secret key alone")
    .requiredOption("--key", "read the key from standard input, such as a file: --key < FILE")
    .addHelpText("after", connectNotes)
    .action((project: string) => connect(open(), project));
  stripe.command("reconcile [project]")
    .description("book paid sessions that the webhook missed")
    .requiredOption("--since <time>", "a date or an ISO 8601 time, such as 2026-01-31")
    .addHelpText("after", notes)
    .action((project: string | undefined, { since }: { since: string }) =>
      reconcile(open(), project, readTime(since))
    );
}

async function connect({ api, print }: Context, project: string): Promise<void> {
  const secretKey = await readSecret("--key");
  const path = `${projectPath(project)}/stripe/connect`;
  const made = await api.json(path, { body: { secretKey }, timeoutMs });
  print(made, () => `Stripe is connected, and reports payments to ${made.webhookUrl}`);
}

async function reconcile(
  context: Context,
  project: string | undefined,
  since: string,
): Promise<void> {
  const totals: Totals = { payments: 0, booked: 0, bookedBefore: 0, changes: 0, unbooked: [] };
  const paths = project === undefined ? await allAccounts(context) : [projectPath(project)];
  for (const path of paths) await reconcileAccount(context, { path, since, totals });
  const { payments, booked, bookedBefore, changes, unbooked } = totals;
  context.print(totals, () =>
    [
      `${payments} paid sessions: ${booked} booked now, ${bookedBefore} booked before, ` +
      `${unbooked.length} cannot be booked. ${changes} refunds and disputes are recorded.`,
      ...unbooked.map(({ session, reason }) => `${session}: ${reason}`),
    ].join("\n"));
  if (unbooked.length > 0) throw refused(`${unbooked.length} paid sessions cannot be booked.`);
}

/** Returns the paths of everyone who takes payments: the server, and projects with Stripe keys. */
async function allAccounts({ api }: Context): Promise<string[]> {
  const paths = ["/v1/admin"];
  const pages = api.pages("/v1/admin/projects", { name: "projects", limit: Infinity });
  for await (const projects of pages) {
    const paid = projects.filter(({ stripe, mode }: Body) => stripe && mode !== "shared");
    paths.push(...paid.map(({ id }: Body) => projectPath(id)));
  }
  return paths;
}

async function reconcileAccount(
  { api, progress }: Context,
  { path, since, totals }: { path: string; since: string; totals: Totals },
): Promise<void> {
  for (let cursor: string | undefined, more = true; more;) {
    const body = { since, ...(cursor === undefined ? {} : { cursor }) };
    const page = await api.json(`${path}/stripe/reconcile`, { method: "POST", body, timeoutMs })
      .catch((error) => {
        // The server need not have an account of its own.
        const isAbsent = path === "/v1/admin" && error instanceof Refusal && error.status === 404;
        if (isAbsent) return null;
        throw error;
      });
    if (page === null) return;
    totals.payments += page.payments;
    totals.booked += page.booked;
    totals.bookedBefore += page.bookedBefore;
    totals.changes += page.changes;
    totals.unbooked.push(...page.unbooked);
    cursor = page.nextCursor ?? undefined;
    more = cursor !== undefined;
    progress(() => `${totals.payments} paid sessions so far, ${totals.booked} booked`);
  }
}

function readTime(text: string): string {
  const time = parseMoment(text);
  if (time === null) throw usage("--since must be a date such as 2026-01-31, or an ISO 8601 time.");
  return new Date(time).toISOString();
}

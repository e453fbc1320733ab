import type { Command } from "commander";
import type { Body } from "./api.ts";
import type { Context } from "./context.ts";
import { listing, type ListOptions, printList } from "./list.ts";
import { projectPath } from "./paths.ts";
import { formatFields, formatTable, formatValue } from "./table.ts";

interface PeriodOptions {
  from?: string;
  to?: string;
}

interface RequestOptions extends ListOptions, PeriodOptions {
  id?: string;
  user?: string;
  model?: string;
  key?: string;
  outcome?: string;
  reason?: string;
  status?: string;
}

/** `farebox summary`, `farebox requests …` and `farebox alerts …` */
export function addWatch(program: Command, open: () => Context): void {
  program.command("summary <project>")
    .description("what was used, paid and refused, by model; of the last day by default")
    .option("--from <time>", "the first hour: a date or an ISO 8601 time, such as 2026-01-31")
    .option("--to <time>", "the end, exclusive; default: now")
    .action((project: string, period: PeriodOptions) => summary(open(), project, period));

  const requests = program.command("requests").description("the log of requests");
  listing(requests.command("list <project>").description("list requests, newest first"))
    .option("--id <id>", "the service's own id, or the caller's X-Request-Id")
    .option("--user <user>", "only those of this user")
    .option("--model <model>", "only those for this model")
    .option("--key <key>", "only those with this API key, by its id")
    .option("--outcome <outcome>", "how it ended, such as failed or refused")
    .option("--reason <code>", "why it failed or was refused")
    .option("--status <status>", "the status of the response, such as 502")
    .option("--from <time>", "created from this time on: a date or an ISO 8601 time")
    .option("--to <time>", "created before this time")
    .action((project: string, options: RequestOptions) => listRequests(open(), project, options));

  const alerts = program.command("alerts").description("what a project's owner is notified of");
  alerts.command("list <project>")
    .description("list alerts that fire, then those that were resolved in 30 days")
    .action((project: string) => listAlerts(open(), project));
  alerts.command("test <project>").description("send a sample to the confirmed addresses")
    .action(async (project: string) => {
      const { api, print } = open();
      const path = `${projectPath(project)}/alerts/test-email`;
      print(await api.json(path, { method: "POST" }), "The sample was sent.");
    });
}

async function summary(
  { api, print }: Context,
  project: string,
  { from, to }: PeriodOptions,
): Promise<void> {
  const found = await api.json(`${projectPath(project)}/summary`, { query: { from, to } });
  print(found, () => summaryText(found));
}

/** Figures that are shown also where they are 0. */
const mainFigures: ReadonlySet<string> = new Set(["requests", "calls", "failed", "cost"]);

function summaryText({ from, to, currency, totals, models, topSpenders, ...counted }: Body) {
  const figures = Object.entries(totals).filter(([name, value]) =>
    mainFigures.has(name) || Number(value) !== 0
  );
  const lists = { refusals: "REFUSED", failures: "FAILED", unpriced: "WITHOUT A PRICE" };
  return [
    formatFields({ from, to, currency, ...Object.fromEntries(figures) }),
    table(models, {
      MODEL: ({ model }) => model,
      REQUESTS: ({ requests }) => requests,
      CALLS: ({ calls }) => calls,
      FAILED: ({ failed }) => failed,
      REFUSED: ({ refused }) => refused,
      OUTPUT: ({ output }) => output,
      COST: ({ cost }) => cost,
      MARGIN: ({ margin }) => margin,
    }),
    ...Object.entries(lists).map(([name, title]) =>
      table(counted[name], { [title]: ({ reason }) => reason, COUNT: ({ count }) => count })
    ),
    table(topSpenders.slice(0, 10), {
      "TOP USERS": ({ user }) => user,
      SPENT: ({ spent }) => spent,
    }),
  ].filter((text) => text !== "").join("\n\n");
}

/** A table of `items`; "" for none. */
function table(items: readonly Body[], columns: Record<string, (item: Body) => unknown>): string {
  if (items.length === 0) return "";
  const cells = items.map((item) => Object.values(columns).map((of) => formatValue(of(item))));
  return formatTable(Object.keys(columns), cells);
}

function listRequests(
  context: Context,
  project: string,
  { limit, all, cursor, ...filter }: RequestOptions,
): Promise<void> {
  const options = { limit, ...(all ? { all } : {}), ...(cursor === undefined ? {} : { cursor }) };
  return printList(context, options, {
    path: `${projectPath(project)}/requests`,
    name: "requests",
    query: { ...filter },
    columns: {
      ID: ({ id }) => id,
      CREATED: ({ createdAt }) => createdAt,
      OUTCOME: ({ outcome }) => outcome,
      STATUS: ({ status }) => status,
      REASON: ({ reason }) => reason,
      ENDPOINT: ({ endpoint }) => endpoint,
      USER: ({ user }) => user,
      MODEL: ({ model }) => model,
      INPUT: ({ inputTokens }) => inputTokens,
      OUTPUT: ({ outputTokens }) => outputTokens,
      COST: ({ cost }) => cost,
      MS: ({ latencyMs }) => latencyMs,
      COUNT: ({ count }) => count,
    },
  });
}

async function listAlerts({ api, printRows, note }: Context, project: string): Promise<void> {
  const { alerts, mail } = await api.json(`${projectPath(project)}/alerts`);
  printRows(alerts, {
    RULE: ({ rule }) => rule,
    FIRED: ({ firedAt }) => firedAt,
    RESOLVED: ({ resolvedAt }) => resolvedAt,
    SUMMARY: ({ summary }) => summary,
  });
  if (!mail.isConfigured && mail.addresses.length > 0) {
    note("This server sends no e-mail: SMTP_URL is not set.");
  }
  if (mail.error !== null) note(`The last e-mail was not sent: ${mail.error}`);
  for (const { email, confirmed } of mail.addresses) {
    if (!confirmed) note(`${email} gets no alerts: its owner has not opened the link yet.`);
  }
}

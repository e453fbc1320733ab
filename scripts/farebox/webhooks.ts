import { type Command, InvalidArgumentError } from "commander";
import { parseMoment } from "../../src/base/moment.ts";
import type { Body } from "./api.ts";
import type { Columns, Context } from "./context.ts";
import { refused, usage } from "./failure.ts";
import { alsoNamed, readSecret, readSettingsOption } from "./input.ts";
import { projectPath } from "./paths.ts";
import { formatFields } from "./table.ts";
import { withWebhookKey } from "./webhook_key.ts";
import { addListen } from "./webhooks_listen.ts";

interface CreateOptions {
  url: string;
  event?: string[];
  description?: string;
  settings?: string;
}

interface RotateOptions {
  overlap?: number;
  secret?: boolean;
}

interface Named {
  project: string;
  subscription: string;
}

const own = "/v1/webhooks/subscriptions";
const keyNotes = `
The admin API cannot do this: the command creates a key of the project with the scope 'webhooks',
and revokes it right after. 'farebox keys list' shows it as revoked.`;

/** `farebox webhooks …` */
export function addWebhooks(program: Command, open: () => Context): void {
  const webhooks = program.command("webhooks").description("manage, test and receive webhooks");
  webhooks.command("list <project>")
    .description("list a project's webhooks")
    .action((project: string) => list(open(), project));
  webhooks.command("create <project>")
    .description("create a webhook; its signing secret is shown only once")
    .requiredOption("--url <url>", "the https URL that receives the events")
    .option(
      "--event <name>",
      "an event or a family such as balance.*; repeat. Default: *",
      alsoNamed,
    )
    .option("--description <text>", "a text to recognize it by")
    .option("--settings <json>", "customHeaders and a secret of your own; - reads standard input")
    .addHelpText("after", keyNotes)
    .action((project: string, options: CreateOptions) => create(open(), project, options));
  webhooks.command("remove <project> <subscription>")
    .description("end the deliveries to a webhook; 'enable' undoes it")
    .addHelpText("after", keyNotes)
    .action((project: string, subscription: string) => remove(open(), { project, subscription }));
  webhooks.command("enable <project> <subscription>")
    .description("deliver to a webhook again that was removed")
    .action((project: string, subscription: string) => enable(open(), { project, subscription }));
  webhooks.command("rotate <project> <subscription>")
    .description("replace the signing secret; the new one is shown only once")
    .option("--overlap <seconds>", "how long the old one signs too; default: a day", readSeconds)
    .option("--secret", "read the new one from standard input, such as a file: --secret < FILE")
    .action((project: string, subscription: string, options: RotateOptions) =>
      rotate(open(), { project, subscription }, options)
    );
  addDeliveries(webhooks, open);
  addListen(webhooks, open);
}

function addDeliveries(webhooks: Command, open: () => Context): void {
  webhooks.command("test <project> <subscription>")
    .description("send an example of an event to one webhook")
    .option("--type <event>", "such as balance.depleted", "updated")
    .action((project: string, subscription: string, { type }: { type: string }) =>
      test(open(), { project, subscription }, type)
    );
  webhooks.command("redeliver <project> <subscription>")
    .description("deliver again what failed at one webhook")
    .requiredOption("--since <time>", "a date or an ISO 8601 time, such as 2026-01-31")
    .action((project: string, subscription: string, { since }: { since: string }) =>
      redeliver(open(), { project, subscription }, since)
    );
}

const columns: Columns = {
  Id: ({ id }) => id,
  State: ({ isActive, consecutiveFailures }) =>
    !isActive ? "inactive" : consecutiveFailures > 0 ? "failing" : "active",
  URL: ({ url }) => url,
  Events: ({ events }) => events.join(" "),
};

function pathOf({ project, subscription }: Named): string {
  return `${projectPath(project)}/subscriptions/${encodeURIComponent(subscription)}`;
}

async function list({ api, printRows }: Context, project: string): Promise<void> {
  const { subscriptions } = await api.json(`${projectPath(project)}/subscriptions`);
  printRows(subscriptions, columns);
}

async function create(
  context: Context,
  project: string,
  { url, event: events = ["*"], description, settings: text }: CreateOptions,
): Promise<void> {
  const settings = await readSettingsOption(text, ["secret", "customHeaders"]);
  const { subscription } = await withWebhookKey(context, project, {
    name: "farebox webhooks create",
    use: (headers) =>
      context.api.json(own, { body: { ...settings, url, events, description }, headers }),
  });
  printWithSecret(context, subscription);
}

/** Prints a subscription whose secret is new, the secret first. */
function printWithSecret({ print, note }: Context, subscription: Body): void {
  print(subscription, () => {
    const { secret, id, url, events } = subscription;
    return formatFields({ secret, id, url, events: events.join(" ") });
  });
  note("The secret is shown only once: store it now.");
}

async function remove(context: Context, { project, subscription: id }: Named): Promise<void> {
  const { api, print } = context;
  const query = { status: "active" };
  const { subscriptions } = await api.json(`${projectPath(project)}/subscriptions`, { query });
  if (!subscriptions.some((each: Body) => each.id === id)) {
    throw refused(`The project has no active webhook '${id}'.`);
  }
  const { subscription } = await withWebhookKey(context, project, {
    name: "farebox webhooks remove",
    use: (headers) => api.json(`${own}/${id}`, { method: "DELETE", headers }),
  });
  print(subscription, () => `${id} gets no events any more. Its secret stays, for 'enable'.`);
}

async function enable({ api, print }: Context, named: Named): Promise<void> {
  const body = { isActive: true };
  const { subscription } = await api.json(pathOf(named), { method: "PATCH", body });
  print(subscription, () => `${subscription.id} gets events from now on.`);
}

async function rotate(
  context: Context,
  named: Named,
  { overlap: overlapSeconds, secret: isGiven }: RotateOptions,
): Promise<void> {
  const secret = isGiven ? await readSecret("--secret") : undefined;
  const body = { rotateSecret: true, secret, overlapSeconds };
  const { subscription } = await context.api.json(pathOf(named), { method: "PATCH", body });
  printWithSecret(context, subscription);
}

async function test({ api, print }: Context, named: Named, type: string): Promise<void> {
  const sent = await api.json(`${pathOf(named)}/test`, { body: { type } });
  print(sent, `${type} is on its way, as ${sent.delivery.id}.`);
}

const pauseMs = 500;

/** Delivers again what failed, and waits until all of it is pending. */
async function redeliver({ api, print, progress }: Context, named: Named, since: string) {
  const time = parseMoment(since);
  if (time === null) throw usage("--since must be a date such as 2026-01-31, or an ISO 8601 time.");
  const body = { since: new Date(time).toISOString() };
  let { redelivery } = await api.json(`${pathOf(named)}/redeliver`, { body });
  while (redelivery.status === "running") {
    progress(() => `${redelivery.redelivered} so far`);
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
    const path = `${projectPath(named.project)}/redeliveries/${redelivery.id}`;
    redelivery = (await api.json(path)).redelivery;
  }
  print(redelivery, () => {
    const { redelivered } = redelivery;
    const many = redelivered === 1 ? "delivery is on its" : "deliveries are on their";
    return `${redelivered} ${many} way again.`;
  });
}

function readSeconds(text: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("It must be a whole number of seconds.");
}

import { createHmac, timingSafeEqual } from "node:crypto";
import { type Command, InvalidArgumentError } from "commander";
import type { Body } from "./api.ts";
import type { Columns, Context } from "./context.ts";
import { projectPath } from "./paths.ts";

interface ListenOptions {
  event: string[];
  port: number;
  publicUrl?: string;
}

const dayMs = 24 * 60 * 60 * 1000;

/** `farebox webhooks …` */
export function addWebhooks(program: Command, open: () => Context): void {
  const webhooks = program.command("webhooks").description("list, test and receive webhooks");
  webhooks.command("list <project>")
    .description("list a project's webhooks")
    .action((project: string) => list(open(), project));
  webhooks.command("test <project> <subscription>")
    .description("send an example of an event to one webhook")
    .option("--type <event>", "such as balance.depleted", "updated")
    .action((project: string, subscription: string, { type }: { type: string }) =>
      test(open(), { project, subscription, type })
    );
  webhooks.command("listen <project>")
    .description("receive events on this machine and print them, until Ctrl-C")
    .option("--event <name>", "an event or a family such as balance.*; repeatable", collect, [])
    .option("--port <n>", "the port to listen on, on 127.0.0.1; default: any", readPort, 0)
    .option("--public-url <url>", "the https URL at which a tunnel leads to that port")
    .action((project: string, options: ListenOptions) => listen(open(), project, options));
}

const columns: Columns = {
  Id: ({ id }) => id,
  State: ({ isActive, consecutiveFailures }) =>
    !isActive ? "inactive" : consecutiveFailures > 0 ? "failing" : "active",
  URL: ({ url }) => url,
  Events: ({ events }) => events.join(" "),
};

/** Prints a project's subscriptions. */
async function list({ api, printRows }: Context, project: string): Promise<void> {
  const { subscriptions } = await api.json(`${projectPath(project)}/subscriptions`);
  printRows(subscriptions, columns);
}

/** Sends an example of an event to one subscription. */
async function test(
  { api, print }: Context,
  { project, subscription, type }: { project: string; subscription: string; type: string },
): Promise<void> {
  const path = `${projectPath(project)}/subscriptions/${encodeURIComponent(subscription)}/test`;
  const sent = await api.json(path, { body: { type } });
  print(sent, `${type} is on its way, as ${sent.delivery.id}.`);
}

function collect(value: string, before: string[]): string[] {
  return [...before, value];
}

function readPort(text: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) < 65_536) return Number(text);
  throw new InvalidArgumentError("It must be a port.");
}

/**
 * Subscribes a receiver on this machine with a key of its own, which lasts a day at most. Both end
 * with the command. In production the service only delivers to public https URLs.
 */
async function listen(
  context: Context,
  project: string,
  { event, port, publicUrl }: ListenOptions,
): Promise<void> {
  const { api, note } = context;
  let secret = "";
  let isSubscribed = false;
  const server = Deno.serve(
    { hostname: "127.0.0.1", port, onListen() {} },
    (request) => receive(context, request, secret),
  );
  const keys = `${projectPath(project)}/keys`;
  const made = await api.json(keys, {
    body: {
      name: "farebox webhooks listen",
      scopes: ["webhooks"],
      expiresAt: new Date(Date.now() + dayMs).toISOString(),
    },
  });
  const url = publicUrl ?? `http://127.0.0.1:${server.addr.port}/`;
  try {
    const { subscription } = await api.json("/v1/webhooks/subscriptions", {
      body: { url, events: event.length > 0 ? event : ["*"], description: "farebox listen" },
      headers: { authorization: `Bearer ${made.apiKey}` },
    });
    secret = subscription.secret;
    isSubscribed = true;
    note(`Listening at ${url} for ${subscription.events.join(", ")}. Stop with Ctrl-C.`);
    await stopped();
  } finally {
    await server.shutdown();
    // Ends the subscription with it.
    await api.json(`${keys}/${made.key.id}?made=true`, { method: "DELETE" });
    if (isSubscribed) note("The subscription and its key are removed.");
  }
}

function stopped(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM"] as const) {
      Deno.addSignalListener(signal, () => resolve());
    }
  });
}

async function receive(context: Context, request: Request, secret: string): Promise<Response> {
  const text = await request.text();
  if (!isSigned(request.headers, text, secret)) {
    context.note("A request without a valid signature was refused.");
    return new Response("invalid signature", { status: 401 });
  }
  const { event }: Body = JSON.parse(text);
  context.print(JSON.parse(text), () => lineOf(event));
  return new Response(null, { status: 204 });
}

/** Whether a delivery is signed as Standard Webhooks says (https://www.standardwebhooks.com). */
function isSigned(headers: Headers, body: string, secret: string): boolean {
  const signed = `${headers.get("webhook-id")}.${headers.get("webhook-timestamp")}.${body}`;
  const key = Uint8Array.fromBase64(secret.replace(/^whsec_/, ""));
  const expected = createHmac("sha256", key).update(signed).digest();
  return (headers.get("webhook-signature") ?? "").split(" ").some((signature) => {
    const given = Uint8Array.fromBase64(signature.replace(/^v1,/, ""));
    return given.length === expected.length && timingSafeEqual(given, expected);
  });
}

/** An event on one line, for people. */
function lineOf({ createdAt, type, id, subject, data }: Body): string {
  const facts = [subject?.externalId, data?.model, data?.amount ?? data?.cost, data?.reason];
  const shown = facts.filter((fact) => typeof fact === "string" && fact !== "");
  return [String(createdAt).slice(11, 19), String(type).padEnd(26), ...shown, `(${id})`].join("  ");
}

import { createHmac, timingSafeEqual } from "node:crypto";
import { type Command, InvalidArgumentError } from "commander";
import type { Body } from "./api.ts";
import type { Context } from "./context.ts";
import { Refusal, refused } from "./failure.ts";
import { alsoNamed } from "./input.ts";
import { makeWebhookKey } from "./webhook_key.ts";

interface ListenOptions {
  event?: string[];
  port: number;
  publicUrl?: string;
}

const dayMs = 24 * 60 * 60 * 1000;

/** `farebox webhooks listen` */
export function addListen(webhooks: Command, open: () => Context): void {
  webhooks.command("listen <project>")
    .description(
      "receive events on this machine and print them, until Ctrl-C. A service in development " +
        "delivers to it directly; for others, set --public-url",
    )
    .option("--event <name>", "an event or a family such as balance.*; repeatable", alsoNamed)
    .option("--port <n>", "the port to listen on, on 127.0.0.1; default: any", readPort, 0)
    .option("--public-url <url>", "the https URL at which a tunnel leads to that port")
    .action((project: string, options: ListenOptions) => listen(open(), project, options));
}

/**
 * Subscribes a receiver on this machine with a key of its own, which lasts a day at most. Both end
 * with the command. In production the service only delivers to public https URLs.
 */
async function listen(
  context: Context,
  project: string,
  { event: events = ["*"], port, publicUrl }: ListenOptions,
): Promise<void> {
  const { api, note } = context;
  let secret = "";
  let isSubscribed = false;
  const server = startReceiver(port, (request) => receive(context, request, secret));
  try {
    const name = "farebox webhooks listen";
    const key = await makeWebhookKey(context, project, { name, lastsMs: dayMs });
    const url = publicUrl ?? `http://127.0.0.1:${server.addr.port}/`;
    try {
      const { subscription } = await api.json("/v1/webhooks/subscriptions", {
        body: { url, events, description: "farebox listen" },
        headers: key.headers,
      }).catch((error) => {
        throw inOurWords(error, publicUrl);
      });
      secret = subscription.secret;
      isSubscribed = true;
      note(`Listening at ${url} for ${subscription.events.join(", ")}. Stop with Ctrl-C.`);
      await stopped();
    } finally {
      await key.revoke(true);
    }
  } finally {
    await server.shutdown();
  }
  if (isSubscribed) note("The subscription and its key are removed.");
}

/** Listens on this machine. Throws where the port is not free. */
function startReceiver(port: number, handle: (request: Request) => Promise<Response>) {
  try {
    return Deno.serve({ hostname: "127.0.0.1", port, onListen() {} }, handle);
  } catch (error) {
    const why = error instanceof Deno.errors.AddrInUse ? "is in use" : `is not possible: ${error}`;
    throw refused(`Port ${port} of 127.0.0.1 ${why}. Choose another one with --port.`);
  }
}

/** The service's message names the URL that corresponds to `--public-url`. */
function inOurWords(error: unknown, publicUrl: string | undefined): unknown {
  if (!(error instanceof Refusal) || error.status !== 400) return error;
  if (!error.message.startsWith("'url' ")) return error;
  const why = error.message.replace("'url'", publicUrl === undefined ? "its URL" : "--public-url");
  return refused(
    publicUrl !== undefined
      ? why
      : "This service does not deliver to 127.0.0.1, because it does not run in development: " +
        `${why} Lead an https URL to this machine with a tunnel, and set it with --public-url, ` +
        "and the port that the tunnel leads to with --port.",
  );
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

function readPort(text: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) < 65_536) return Number(text);
  throw new InvalidArgumentError("It must be a port.");
}

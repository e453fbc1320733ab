import { type Config, isLoopback, type MailSettings } from "../config/config.ts";
import { isIP } from "node:net";
import type { Deps, Mail } from "../deps.ts";

const connectMs = 10_000;
const silenceMs = 15_000;

/** Returns how e-mail is sent; null where it is not set up. Nothing connects before the first. */
export function openMailer(
  { mail: settings, baseUrl }: Pick<Config, "mail" | "baseUrl">,
  resolve: Deps["resolve"],
): ((mail: Mail) => Promise<void>) | null {
  if (settings === null) return null;
  const ownHost = new URL(baseUrl).hostname;
  const transport = once(() => openTransport(settings, ownHost));
  return async ({ id, ...mail }) => {
    const { from, host } = settings;
    // The library looks the name up again, on a thread that others need: it must not hang.
    if (isIP(host) === 0) await resolve(host, "operator");
    const sending = (await transport()).sendMail({
      ...mail,
      to: [...mail.to],
      from,
      messageId: `<${id}@${domainOf(from)}>`,
      // Out-of-office answers to a machine help no one (RFC 3834).
      headers: { "Auto-Submitted": "auto-generated" },
    });
    await sending.catch((error) => Promise.reject(named(error)));
  };
}

/** The library is loaded only where mail is sent. */
async function openTransport(settings: MailSettings, ownHost: string) {
  const { createTransport } = await import("nodemailer");
  const { host, port, implicitTls, user, password } = settings;
  return createTransport({
    host,
    port,
    secure: implicitTls,
    // A password is never sent in the clear to another machine.
    requireTLS: user !== null && !isLoopback(host),
    ...(user === null ? {} : { auth: { user, pass: password?.reveal() ?? "" } }),
    name: ownHost,
    connectionTimeout: connectMs,
    greetingTimeout: connectMs,
    socketTimeout: silenceMs,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
}

/** Of several addresses that were tried, the last error says more than all together. */
function named(error: unknown): unknown {
  return error instanceof AggregateError ? error.errors.at(-1) ?? error : error;
}

function once<T>(make: () => T): () => T {
  let made: { value: T } | null = null;
  return () => (made ??= { value: make() }).value;
}

function domainOf(address: string): string {
  return /@([^\s<>]+?)>?$/.exec(address)?.[1] ?? "localhost";
}

/** A mail server, and how to connect to it. */
export interface SmtpAddress {
  host: string;
  port: number;
  /** Whether TLS begins with the connection (`smtps`), rather than by STARTTLS. */
  implicitTls: boolean;
  user: string | null;
  password: string | null;
}

const ports: Readonly<Record<string, number>> = { "smtp:": 587, "smtps:": 465 };

/**
 * Parses `smtp://user:password@host:587` or `smtps://…`; without a port it is 587, or 465 (RFC
 * 8314). Throws an Error that says what is wrong, without any part of the text.
 */
export function parseSmtp(text: string): SmtpAddress {
  const url = URL.parse(text);
  const port = url ? ports[url.protocol] : undefined;
  if (!url || port === undefined || url.hostname === "" || /[?#]/.test(text)) {
    throw new Error("must be like smtp://user:password@host:587 or smtps://user:password@host");
  }
  if (url.pathname !== "" && url.pathname !== "/") throw new Error("must have no path");
  if ((url.username === "") !== (url.password === "")) {
    throw new Error("must have both a user and a password, or neither");
  }
  return {
    host: url.hostname.replace(/^\[|\]$/g, ""),
    port: url.port === "" ? port : Number(url.port),
    implicitTls: url.protocol === "smtps:",
    user: decoded(url.username),
    password: decoded(url.password),
  };
}

function decoded(part: string): string | null {
  try {
    return part === "" ? null : decodeURIComponent(part);
  } catch {
    throw new Error("must have its user and password percent-encoded");
  }
}

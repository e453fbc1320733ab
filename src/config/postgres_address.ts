/** Where a PostgreSQL database is, and how to connect to it. */
export interface PostgresAddress {
  /** Tried in this order; more than one for a primary and its standbys. */
  hosts: readonly { host: string; port: number }[];
  user: string;
  password: string | null;
  database: string;
  /** Whether connections are encrypted, and the server's certificate and name are verified. */
  tls: boolean;
  /** A file with the authorities to trust, in PEM. */
  rootCertPath: string | null;
  /** Options of the session, as libpq's `options`, such as `-c search_path=farebox`. */
  options: string;
  channelBinding: boolean;
}

/** Whether a path of the store is the URL of a PostgreSQL database. */
export function isPostgres(kvPath: string): boolean {
  return /^postgres(ql)?:\/\//i.test(kvPath);
}

const shape = /^postgres(?:ql)?:\/\/(?:([^:@/]*)(?::([^@/]*))?@)?([^/?]*)\/([^?/]+)(?:\?(.*))?$/i;
const tlsModes: Readonly<Record<string, boolean>> = {
  disable: false,
  prefer: true,
  require: true,
  "verify-ca": true,
  "verify-full": true,
};
const parametersKnown = [
  "sslmode",
  "sslrootcert",
  "options",
  "channel_binding",
  "target_session_attrs",
];

/**
 * Parses a connection URI as libpq knows it, with one host or several. Without `sslmode=disable` a
 * connection to another machine is encrypted and verified, whichever mode is named. Throws an
 * Error that says what is wrong, without any part of the URI.
 */
export function parsePostgres(uri: string): PostgresAddress {
  // What follows the first one would be taken for the host, and be asked of the DNS.
  if (uri.split("@").length > 2) {
    throw new Error("has more than one '@': write one that belongs to a name or password as %40");
  }
  const parts = shape.exec(uri);
  if (!parts) throw new Error("must be like postgres://user:password@host:5432/database");
  const [, user, password, hostList = "", database = "", query = ""] = parts;
  const parameters = new URLSearchParams(query);
  for (const name of parameters.keys()) {
    if (!parametersKnown.includes(name)) {
      throw new Error(`has an unknown parameter; known are ${parametersKnown.join(", ")}`);
    }
  }
  const hosts = hostList.split(",").map(parseHost);
  const isLocal = hosts.every(({ host }) => /^(localhost|127\.[\d.]+|::1)$/i.test(host));
  const mode = parameters.get("sslmode") ?? (isLocal ? "disable" : "verify-full");
  const tls = tlsModes[mode];
  if (tls === undefined) {
    throw new Error(`must have an sslmode of ${Object.keys(tlsModes).join(", ")}`);
  }
  if (!user) throw new Error("must name a user, as in postgres://user@host/database");
  return {
    hosts,
    user: decoded(user),
    password: password ? decoded(password) : null,
    database: decoded(database),
    tls,
    rootCertPath: parameters.get("sslrootcert"),
    options: parameters.get("options") ?? "",
    channelBinding: parameters.get("channel_binding") === "require",
  };
}

/** Returns the URI without its password, as the log may show it. */
export function withoutPassword(uri: string): string {
  return uri.replace(/^([a-z]+:\/\/[^:@/]*):[^@/]*@/i, "$1@");
}

function parseHost(text: string): { host: string; port: number } {
  const [, bracketed, plain, port = "5432"] = /^(?:\[(.+)\]|([^:]*))(?::(\d+))?$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  if (!host || Number(port) < 1 || Number(port) > 65_535) {
    throw new Error("must name a host and a port from 1 to 65535, such as db.internal:5432");
  }
  return { host, port: Number(port) };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new Error("has a user, password or database that is not percent-encoded");
  }
}

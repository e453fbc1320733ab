import { readEnvFile } from "../../src/platform/env_file.ts";
import { devAdminKey, devAdminKeyPath, devKvPath } from "../../src/base/dev_keys.ts";
import { Secret } from "../../src/base/secret.ts";
import { secretsKeys } from "../../src/config/config.ts";
import { usage } from "./failure.ts";

/** The service's URL, and the operator's key. */
export interface Settings {
  /** Without a slash at its end. */
  url: string;
  adminKey: string;
}

/** Reads a variable from the environment, else from the file `.env` in the working directory. */
export type Lookup = (name: string) => string | undefined;

/** The environment takes precedence over `.env`, as for the service itself. */
export function openEnvironment(): Lookup {
  const file = fileOrUsage();
  return (name) => Deno.env.get(name) || file[name] || undefined;
}

function fileOrUsage(): Record<string, string> {
  try {
    return readEnvFile();
  } catch (error) {
    throw usage(error instanceof Error ? error.message : String(error));
  }
}

/**
 * Reads the settings; `--service` takes precedence. Throws an error that tells what to do where one
 * is missing or invalid.
 */
export function readSettings(lookup: Lookup, given: { service?: string | undefined }): Settings {
  const [port, baseUrl] = [lookup("PORT"), lookup("BASE_URL")];
  // A port on this machine is closer than the URL that users call.
  const here = port || !baseUrl ? `http://localhost:${port || 8000}` : baseUrl;
  const named = [["--service", given.service], ["FAREBOX_URL", lookup("FAREBOX_URL")]] as const;
  const [from, text] = named.find(([, text]) => text !== undefined) ?? ["BASE_URL", here];
  const url = checkUrl(text ?? here, from);
  const adminKey = lookup("ADMIN_KEY") ?? (isThisMachine(url) ? devKey() : undefined);
  if (adminKey) return { adminKey, url };
  throw usage(
    "ADMIN_KEY is not set, in the environment or in .env. It must be the service's own ADMIN_KEY.",
  );
}

/** The key that a service in development has left beside its database; else the known one. */
function devKey(): string {
  try {
    // Development does not read KV_PATH from `.env`.
    return Deno.readTextFileSync(devAdminKeyPath(Deno.env.get("KV_PATH") || devKvPath)).trim();
  } catch {
    return devAdminKey;
  }
}

/** A service on this machine may be in development. */
function isThisMachine(url: string): boolean {
  return /^(localhost|127\.0\.0\.1|\[::1\])$/.test(new URL(url).hostname);
}

/** Reads the keys of `SECRETS_KEY`; none where it is not set. Throws for what cannot be one. */
export function readSecretsKeys(lookup: Lookup): Secret[] {
  const keys = secretsKeys.optional().safeParse(lookup("SECRETS_KEY"));
  if (!keys.success) throw usage(`SECRETS_KEY ${keys.error.issues[0]?.message}`);
  return (keys.data ?? []).map((key) => new Secret(key));
}

/** The URL may contain a password, so that an error repeats no part of it. */
function checkUrl(text: string, from: string): string {
  const url = URL.parse(text);
  if (url && /^https?:$/.test(url.protocol) && !/[?#@]/.test(text)) {
    return url.href.replace(/\/+$/, "");
  }
  throw usage(
    `${from} is not the URL of a service, without credentials. Use one such as ` +
      "http://localhost:8000.",
  );
}

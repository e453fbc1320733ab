import { z } from "zod";
import { cidrList } from "./cidr_list.ts";
import { devAdminKey, devKvPath } from "../base/dev_keys.ts";
import { issueWords } from "../base/issue_words.ts";
import { chatBodyBytesMax } from "../base/limits.ts";
import { kvPathFault } from "./kv_path.ts";
import { defaultBodiesBytes } from "./memory_limit.ts";
import { isPostgres, parsePostgres, withoutPassword } from "./postgres_address.ts";
import { withoutEndpoint } from "../base/upstream_url.ts";
import { Secret } from "../base/secret.ts";
import { isMask } from "../base/secret_mask.ts";
import { readSharedUpstreams, type SharedUpstreams } from "./shared_upstreams.ts";
import { parseSmtp, type SmtpAddress } from "./smtp_address.ts";

const url = z.string().refine((text) => URL.canParse(text) && /^https?:/.test(text), {
  error: "must be an http or https URL",
}).refine((text) => !/[?#@]/.test(text), {
  // A password with a slash in it would end the host, and "@" would be part of the path.
  error: "must have no query, fragment or credentials",
}).transform((text) => text.replace(/\/+$/, ""));

// Names of documentation (RFC 2606), which lead nowhere.
const exampleHost = /(^|\.)(example|invalid)$|^(www\.)?example\.(com|net|org)$/i;
const baseUrlSchema = url.refine((text) => !exampleHost.test(URL.parse(text)?.hostname ?? ""), {
  error: "is still that of the example: set the URL that your users reach",
});

// What the guides and the example file have where a value is still to be filled in.
const placeholder =
  /\.{3}$|^<.*>$|^at-least-\d+-characters|^(your|my|change|replace)[-_ ]?(me|this|own|admin|secret|key|token)\b|^changeme|placeholder/i;

const wholeNumber = (min: number, max: number) =>
  z.string().regex(/^\d{1,12}$/, { error: "must be a whole number" }).transform(Number)
    .refine((value) => value >= min && value <= max, { error: `must be from ${min} to ${max}` });

/** `SECRETS_KEY`: one key, or several, of which the first one encrypts and signs. */
export const secretsKeys = z.string().transform((text) => text.split(",").map((key) => key.trim()))
  .refine((keys) => keys.every((key) => base64Length(key) === 32), {
    error: "must be 32 bytes in base64, or several of those separated by commas",
  });
const secret = (text: string) => new Secret(text);

function base64Length(text: string): number {
  try {
    return atob(text).length;
  } catch {
    return -1;
  }
}

const kvPath = z.string().min(1).superRefine((path, context) => {
  const fault = kvPathFault(path);
  if (fault !== null) context.addIssue(fault);
});

const notFilledIn = "is still a placeholder: fill in a value of your own";
const visible = z.string().regex(/^[\x21-\x7e]+$/, { error: "must be visible ASCII characters" });
const ownSecret = visible.refine((text) => !placeholder.test(text) && !isMask(text), {
  error: notFilledIn,
});

const schema = z.strictObject({
  HOST: z.string().min(1).optional(),
  PORT: wholeNumber(0, 65_535).default(8000),
  BASE_URL: baseUrlSchema.optional(),
  KV_PATH: kvPath.optional(),
  ADMIN_KEY: ownSecret.min(32, { error: "must have at least 32 characters" }).optional(),
  METRICS_TOKEN: ownSecret.min(16, { error: "must have at least 16 characters" }).optional(),
  UPSTREAM_URL: url.refine(...withoutEndpoint).optional(),
  // A server of one's own takes any word as a key, also "changeme".
  UPSTREAM_API_KEY: visible.refine((text) => !isMask(text), { error: notFilledIn })
    .optional(),
  UPSTREAMS: z.string().min(1).optional(),
  UPSTREAMS_FILE: z.string().min(1).optional(),
  UPSTREAM_TIMEOUT_MS: wholeNumber(1_000, 3_600_000).default(600_000),
  UPSTREAM_IDLE_MS: wholeNumber(1_000, 3_600_000).default(120_000),
  UPSTREAM_EVENT_BYTES_MAX: wholeNumber(1_024, 268_435_456).default(8_388_608),
  UPSTREAM_BODY_BYTES_MAX: wholeNumber(1_024, 268_435_456).default(8_388_608),
  TRUSTED_PROXIES: cidrList.default([]),
  REQUESTS_MAX: wholeNumber(1, 1_000_000).default(5_000),
  BODIES_BYTES_MAX: wholeNumber(chatBodyBytesMax, 10 ** 12 - 1).optional(),
  SECRETS_KEY: secretsKeys.optional(),
  STRIPE_SECRET_KEY: ownSecret.optional(),
  STRIPE_WEBHOOK_SECRET: ownSecret.optional(),
  WEBHOOK_MAX_ATTEMPTS: wholeNumber(1, 50).default(8),
  WEBHOOK_BACKOFF_BASE_MS: wholeNumber(10, 3_600_000).default(30_000),
  WEBHOOK_TIMEOUT_MS: wholeNumber(100, 60_000).default(15_000),
  WEBHOOK_ALLOW_CIDRS: cidrList.default([]),
  WEBHOOK_USE_PROXY: z.enum(["true", "false"]).default("false"),
  WEBHOOK_RETENTION_DAYS: wholeNumber(1, 3_650).default(30),
  LOG_LEVEL: z.enum(["debug", "info", "warn", "error"]).default("info"),
  LOG_FORMAT: z.enum(["json", "text"]).optional(),
  HOME_URL: url.optional(),
  SMTP_URL: z.string().min(1).optional(),
  SMTP_FROM: z.string().regex(/^([^<>\r\n]{0,100}<[^\s@<>]+@[^\s@<>]+>|[^\s@<>]+@[^\s@<>]+)$/, {
    error: "must be an address such as alerts@my.app or Farebox <alerts@my.app>",
  }).optional(),
});

/** The names of all settings; nothing else in the environment is read. */
export const variableNames: readonly string[] = Object.keys(schema.shape);

/** The settings of one process, validated and frozen. */
export interface Config {
  readonly dev: boolean;
  /** On Deno Deploy, where processes come and go, and the platform provides their database. */
  readonly deploy: boolean;
  readonly host: string;
  readonly port: number;
  /** The scheme, host and optional port and path that links start with. */
  readonly baseUrl: string;
  /**
   * A file, the URL of a KV server or of a PostgreSQL database (without its password), `:memory:`,
   * or empty for the platform's own database.
   */
  readonly kvPath: string;
  /** The password of a PostgreSQL database. */
  readonly kvPassword: Secret | null;
  readonly adminKey: Secret | null;
  /**
   * Where the operator's key comes from: `ADMIN_KEY`; or in development the public one, or a random
   * one of this start. Those of development are accepted only from this machine.
   */
  readonly adminKeyOf: "setting" | "development" | "start";
  /** Grants access to /metrics, which is disabled without it. */
  readonly metricsToken: Secret | null;
  readonly upstream: { readonly url: string; readonly apiKey: Secret | null } | null;
  /** Named upstreams and routes for all projects. */
  readonly upstreams: SharedUpstreams | null;
  /** The deadline of a complete response, and of a stream's first byte. */
  readonly upstreamTimeoutMs: number;
  /** How long a stream may be silent. */
  readonly upstreamIdleMs: number;
  /** The largest event of a stream that is parsed, in characters; a larger one passes as it is. */
  readonly upstreamEventBytesMax: number;
  /** The largest whole response that is parsed, in bytes; a larger one passes as it is. */
  readonly upstreamBodyBytesMax: number;
  /** The most concurrent requests in this process; further ones get 503 at once. */
  readonly requestsMax: number;
  /** The most memory for large bodies of concurrent requests; further ones get 503 at once. */
  readonly bodiesBytesMax: number;
  /** 32 bytes in base64 each, the active one first; without any, secrets cannot be stored. */
  readonly secretsKeys: readonly Secret[];
  /** This server's own Stripe account, for payments into wallets. */
  readonly stripe: { readonly secretKey: Secret; readonly webhookSecret: Secret } | null;
  readonly webhooks: {
    /** The attempts of one delivery before it is given up. */
    readonly attemptsMax: number;
    /** The delay before the second attempt, which doubles with each. */
    readonly backoffBaseMs: number;
    /** From the DNS lookup to the end of the response. */
    readonly timeoutMs: number;
    /** Ranges that deliveries may go to although they are not public. */
    readonly allowCidrs: readonly string[];
    /** Whether deliveries go through the proxy of the environment, such as `HTTPS_PROXY`. */
    readonly useProxy: boolean;
    /** How long ended deliveries and their events are kept. */
    readonly retentionDays: number;
  };
  /** Ranges of the proxies in front, whose `X-Forwarded-For` names the client. */
  readonly trustedProxies: readonly string[];
  readonly logLevel: "debug" | "info" | "warn" | "error";
  /** JSON for programs, or text for people; null for text on a terminal only. */
  readonly logFormat: "json" | "text" | null;
  /** Where `/` leads; null for a page of this service. */
  readonly homeUrl: string | null;
  /** How e-mail is sent; null for not at all. */
  readonly mail: MailSettings | null;
}

/** How e-mail is sent. */
export interface MailSettings extends Omit<SmtpAddress, "password"> {
  readonly password: Secret | null;
  /** An address, with a name or without. */
  readonly from: string;
}

// It only protects a laptop's throw-away database, so it may be public.
const devSecretsKey = btoa("farebox development secrets key!");

type Environment = Record<string, string | undefined>;

interface ConfigOptions {
  dev: boolean;
  /** Reads the file of `UPSTREAMS_FILE`; throws an Error that names the setting. */
  readFile?: (path: string) => string;
  /**
   * Creates a random operator's key, for development with a provider's real key; by default there
   * is no operator then.
   */
  newAdminKey?: () => string | null;
  /** The memory that the process may use, in bytes; null where it is not known. */
  memoryBytes?: number | null;
}

/**
 * Validates the environment. Throws an Error that names each invalid variable and why, but never
 * its value.
 */
export function readConfig(
  environment: Environment,
  { dev, readFile = () => "", newAdminKey = () => null, memoryBytes = null }: ConfigOptions,
): Config {
  const given = variableNames.flatMap((name) =>
    environment[name] ? [[name, environment[name]] as const] : []
  );
  const parsed = schema.safeParse(Object.fromEntries(given));
  if (!parsed.success) {
    const faults = parsed.error.issues.map((issue) =>
      `${issue.path.join(".")} ${issueWords(issue)}`
    );
    throw new Error(faults.join("\n"));
  }
  const env = parsed.data;
  const baseUrl = env.BASE_URL ?? (dev ? `http://localhost:${env.PORT}` : null);
  if (!baseUrl) throw new Error("BASE_URL is required: links in messages start with it");
  const deploy = Boolean(environment.DENO_DEPLOY);
  const host = env.HOST ?? (deploy ? "0.0.0.0" : "127.0.0.1");
  if (dev) requireLoopback(host, baseUrl);
  const kvPath = env.KV_PATH ?? (deploy ? "" : dev ? devKvPath : "data/farebox.kv");
  requireFit(kvPath, { dev, deploy, hasSecretsKey: env.SECRETS_KEY !== undefined });
  const upstreams = sharedUpstreamsOf(env, environment, readFile);
  return Object.freeze({
    dev,
    deploy,
    host,
    port: env.PORT,
    baseUrl,
    ...databaseOf(kvPath),
    ...operatorOf(env, { dev, upstreams, newAdminKey }),
    metricsToken: env.METRICS_TOKEN ? secret(env.METRICS_TOKEN) : null,
    upstream: upstreamOf(env),
    upstreams,
    ...boundsOf(env, memoryBytes),
    secretsKeys: secretsKeysOf(env, dev).map(secret),
    stripe: stripeOf(env),
    webhooks: Object.freeze({
      attemptsMax: env.WEBHOOK_MAX_ATTEMPTS,
      backoffBaseMs: env.WEBHOOK_BACKOFF_BASE_MS,
      timeoutMs: env.WEBHOOK_TIMEOUT_MS,
      allowCidrs: env.WEBHOOK_ALLOW_CIDRS,
      useProxy: env.WEBHOOK_USE_PROXY === "true",
      retentionDays: env.WEBHOOK_RETENTION_DAYS,
    }),
    trustedProxies: env.TRUSTED_PROXIES,
    logLevel: env.LOG_LEVEL,
    logFormat: env.LOG_FORMAT ?? null,
    homeUrl: homeUrlOf(env.HOME_URL, baseUrl),
    mail: mailOf(env),
  });
}

type Env = z.output<typeof schema>;

function homeUrlOf(homeUrl: string | undefined, baseUrl: string): string | null {
  if (homeUrl === baseUrl) throw new Error("HOME_URL must not be BASE_URL, whose / leads there");
  return homeUrl ?? null;
}

function operatorOf(
  env: Env,
  { dev, upstreams, newAdminKey }: {
    dev: boolean;
    upstreams: SharedUpstreams | null;
    newAdminKey: () => string | null;
  },
): Pick<Config, "adminKey" | "adminKeyOf"> {
  const { ADMIN_KEY: key, UPSTREAM_API_KEY: upstreamKey, STRIPE_SECRET_KEY: stripeKey } = env;
  if (key || !dev) return { adminKey: key ? secret(key) : null, adminKeyOf: "setting" };
  const spendsMoney = upstreamKey || stripeKey || upstreams?.hasKeys;
  if (!spendsMoney) return { adminKey: secret(devAdminKey), adminKeyOf: "development" };
  const random = newAdminKey();
  return { adminKey: random === null ? null : secret(random), adminKeyOf: "start" };
}

function secretsKeysOf({ SECRETS_KEY: keys }: Env, dev: boolean): string[] {
  if (dev) return keys ?? [devSecretsKey];
  if (keys?.includes(devSecretsKey)) {
    throw new Error("SECRETS_KEY is the publicly known one of development: create your own");
  }
  return keys ?? [];
}

/** Throws where the database does not fit the other settings. */
function requireFit(
  kvPath: string,
  { dev, deploy, hasSecretsKey }: { dev: boolean; deploy: boolean; hasSecretsKey: boolean },
): void {
  if (!dev && !hasSecretsKey && isSharedStore(kvPath)) {
    throw new Error(
      "SECRETS_KEY is required where processes share a store: else no process accepts the links " +
        "of another",
    );
  }
  if (deploy && isDatabaseFile(kvPath)) {
    throw new Error(
      "KV_PATH must not be a file on Deno Deploy: it would be lost with its instance",
    );
  }
}

/** The path without its password, and that. */
function databaseOf(path: string): Pick<Config, "kvPath" | "kvPassword"> {
  if (!isPostgres(path)) return { kvPath: path, kvPassword: null };
  const { password } = parsePostgres(path);
  return {
    kvPath: withoutPassword(path),
    kvPassword: password === null ? null : secret(password),
  };
}

function boundsOf(env: Env, memoryBytes: number | null) {
  return {
    upstreamTimeoutMs: env.UPSTREAM_TIMEOUT_MS,
    upstreamIdleMs: env.UPSTREAM_IDLE_MS,
    requestsMax: env.REQUESTS_MAX,
    bodiesBytesMax: env.BODIES_BYTES_MAX ?? defaultBodiesBytes(memoryBytes),
    upstreamEventBytesMax: env.UPSTREAM_EVENT_BYTES_MAX,
    upstreamBodyBytesMax: env.UPSTREAM_BODY_BYTES_MAX,
  };
}

function upstreamOf({ UPSTREAM_URL: url, UPSTREAM_API_KEY: apiKey }: Env): Config["upstream"] {
  if (apiKey && !url) {
    throw new Error("UPSTREAM_API_KEY is only sent to UPSTREAM_URL, which is not set");
  }
  return url ? { url: withVersion(url), apiKey: apiKey ? secret(apiKey) : null } : null;
}

function sharedUpstreamsOf(
  { UPSTREAMS: text, UPSTREAMS_FILE: path }: Env,
  environment: Environment,
  readFile: (path: string) => string,
): SharedUpstreams | null {
  if (text && path) throw new Error("UPSTREAMS and UPSTREAMS_FILE must not be set together");
  if (path) return readSharedUpstreams("UPSTREAMS_FILE", readFile(path), environment);
  return text ? readSharedUpstreams("UPSTREAMS", text, environment) : null;
}

function stripeOf(env: Env): Config["stripe"] {
  const { STRIPE_SECRET_KEY: secretKey, STRIPE_WEBHOOK_SECRET: webhookSecret } = env;
  if (!secretKey !== !webhookSecret) {
    throw new Error("STRIPE_SECRET_KEY and STRIPE_WEBHOOK_SECRET must be set together");
  }
  if (!secretKey || !webhookSecret) return null;
  return { secretKey: secret(secretKey), webhookSecret: secret(webhookSecret) };
}

function mailOf({ SMTP_URL: url, SMTP_FROM: from }: Env): MailSettings | null {
  if (!url !== !from) throw new Error("SMTP_URL and SMTP_FROM must be set together");
  if (!url || !from) return null;
  try {
    const { password, ...address } = parseSmtp(url);
    return { ...address, password: password === null ? null : secret(password), from };
  } catch (error) {
    throw new Error(`SMTP_URL ${error instanceof Error ? error.message : error}`);
  }
}

/** Development uses a publicly known key, so it must not be reachable from elsewhere. */
function requireLoopback(host: string, baseUrl: string): void {
  if (!isLoopback(host)) throw new Error("HOST must be a loopback address in development");
  if (!isLoopback(new URL(baseUrl).hostname)) {
    throw new Error("BASE_URL must be a loopback address in development");
  }
}

/** Whether the database is a file on this machine, which one process at a time may use. */
export function isDatabaseFile(kvPath: string): boolean {
  return kvPath !== "" && kvPath !== ":memory:" && !/^[a-z][a-z\d+.-]*:\/\//i.test(kvPath);
}

/** Whether several processes can use the database. */
function isSharedStore(kvPath: string): boolean {
  return kvPath === "" || isPostgres(kvPath) || /^https?:/i.test(kvPath);
}

/** Returns a path of this service for links on its pages: under the path of `BASE_URL`, if any. */
export function publicPath({ baseUrl }: Pick<Config, "baseUrl">, path: string): string {
  return new URL(baseUrl).pathname.replace(/\/$/, "") + path;
}

/** Whether a host name or address literal is this machine's own: localhost, 127/8 or ::1. */
export function isLoopback(host: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|\[?::1\]?)$/i.test(host);
}

/** Normalizes an upstream's URL as clients give it: a bare host means its `/v1`. */
export function withVersion(url: string): string {
  return new URL(url).pathname === "/" ? `${url.replace(/\/+$/, "")}/v1` : url;
}

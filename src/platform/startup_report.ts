import { isPublicHttp } from "../base/host.ts";
import { type Config, isLoopback } from "../config/config.ts";
import { printable } from "./printable.ts";
import type { Deps, Log } from "../deps.ts";
import { readProxies } from "../http/proxy.ts";
import { findUnknownVariables } from "./variable_names.ts";

interface StartupFacts {
  environment: Record<string, string>;
  /** Whether the database file was created by this start. */
  isNew: boolean;
  /** Files of the database that other users of this machine may access. */
  exposed: readonly string[];
  /** What the store's own settings put at risk; null where they are sound. */
  warning: string | null;
  /** What has to be done about the keys of stored secrets; null where nothing. */
  sealing: string | null;
  /** Whether the log is text for people, which `say` then has said already. */
  forPeople: boolean;
  /** Prints a text for people. */
  say(text: string): void;
}

/**
 * Reports at the start, to people and in the log: what is on and off, a database that did not exist
 * before, settings that are missing or unsafe, and variables that look like misspelt settings.
 */
export function reportStart(deps: Pick<Deps, "config" | "log">, facts: StartupFacts) {
  const { config } = deps;
  const { environment, isNew, exposed, warning, sealing, forPeople, say } = facts;
  const log: Log = forPeople ? () => {} : deps.log;
  const rows = startupRows(config, environment);
  log("info", "starting", { settings: Object.fromEntries(rows) });
  if (!config.dev && !forPeople) say(`Farebox starts with:\n${startupTable(rows)}`);
  if (isNew && !config.dev) {
    say(`KV_PATH ${config.kvPath} did not exist: a new, empty database is created there`);
  }
  if (isNew) log(config.dev ? "info" : "warn", "database_created", { kvPath: config.kvPath });
  for (const path of exposed) {
    say(`Warning: ${path} can be accessed by other users, and its permissions cannot be changed`);
    log("warn", "file_exposed", { path });
  }
  const store = warning === null ? [] : [{ setting: "KV_PATH", consequence: warning }];
  for (const { setting, consequence } of [...startupWarnings(config), ...store]) {
    say(`Warning: ${setting} ${consequence}`);
    log("warn", "setting_unsafe", { setting, consequence });
  }
  if (sealing !== null) {
    say(`Warning: ${sealing}`);
    log("warn", "secrets_not_resealed", { consequence: sealing });
  }
  const keyNames = config.upstreams?.keyNames ?? [];
  const names = Object.keys(environment).filter((name) => !keyNames.includes(name));
  for (const { name, didYouMean } of findUnknownVariables(names)) {
    const hint = didYouMean === null ? "" : `. Did you mean ${didYouMean}?`;
    say(`Warning: ${name} is not a setting of Farebox, and has no effect${hint}`);
    log("warn", "unknown_setting", { name, didYouMean });
  }
}

interface ListeningFacts {
  /** Where it listens. */
  url: string;
  environment: Record<string, string>;
  /** The key of development, and a first request with it, to paste. */
  devKey: string;
  devRequest: string;
}

/**
 * Describes the running service to people: where it is, how to sign in, and what is on and off; in
 * development with a first request to paste.
 */
export function describeService(
  config: Config,
  { url, environment, devKey, devRequest }: ListeningFacts,
): string {
  const base = config.dev ? url : config.baseUrl;
  const rows: StartupRow[] = [
    ["mode", config.dev ? "development, for this machine only" : "production"],
    ["console", `${base}/console (sign in with ${signInKeys(config, devKey)})`],
    ["docs", `${base}/docs`],
    ...(config.dev ? devRows(config, devKey) : startupRows(config, environment)),
  ];
  const table = startupTable(rows.map(([name, state]) => [name, printable(state)]));
  const told = `Farebox listens on ${url}\n\n${table}\n`;
  return config.dev ? `${told}\nTry it:\n  ${devRequest.replaceAll("\n", "\n  ")}\n` : told;
}

/** The keys that open the console. Only those of development are shown. */
export function signInKeys({ dev, adminKey, adminKeyOf }: Config, devKey: string): string {
  const operator = adminKeyOf === "setting" ? "ADMIN_KEY" : adminKey?.reveal();
  if (dev) return operator ? `${devKey}, or as the operator with ${operator}` : devKey;
  return adminKey === null ? "a project's owner key" : "ADMIN_KEY, or a project's owner key";
}

/** What matters for a first look. */
function devRows(
  { kvPath, upstream, upstreams, stripe }: Config,
  devKey: string,
): StartupRow[] {
  return [
    ["API key", devKey],
    ["database", kvPath],
    ["upstream", upstream?.url ?? upstreams?.setting ?? "simulated: the model sandbox/echo"],
    ["payments", stripe ? "Stripe for wallets; otherwise simulated" : "simulated"],
  ];
}

/** Warns of projects whose users have no way to pay. */
export function reportUnpayable(
  { log }: Pick<Deps, "log">,
  projects: readonly { id: string; name: string }[],
  { forPeople, say }: Pick<StartupFacts, "forPeople" | "say">,
): void {
  if (projects.length === 0) return;
  const names = projects.map(({ name }) => `"${printable(name)}"`).join(", ");
  say(
    `Warning: users of ${names} cannot pay: connect Stripe, or set your own top-up page or checkout, ` +
      "in the console",
  );
  if (!forPeople) log("warn", "users_cannot_pay", { projects: projects.map(({ id }) => id) });
}

type StartupRow = [name: string, state: string];

/** Lists what is on and off with these settings, without any secret. */
function startupRows(config: Config, environment: Record<string, string>): StartupRow[] {
  const { webhooks, upstream, secretsKeys } = config;
  const older = secretsKeys.length - 1;
  const decrypting = older > 0 ? `, and ${older} older to decrypt` : "";
  return [
    ["base URL", config.baseUrl],
    ["database", config.kvPath || "the platform's own"],
    ["admin API", onOff(config.adminKey !== null, "ADMIN_KEY")],
    ["metrics", onOff(config.metricsToken !== null, "METRICS_TOKEN")],
    ["stored secrets", onOff(secretsKeys.length > 0, "SECRETS_KEY") + decrypting],
    ["upstream", upstream?.url ?? onOff(false, "UPSTREAM_URL")],
    ["upstreams for all projects", config.upstreams?.setting ?? onOff(false, "UPSTREAMS")],
    ["Stripe for wallets", onOff(config.stripe !== null, "STRIPE_SECRET_KEY")],
    ["e-mail", onOff(config.mail !== null, "SMTP_URL")],
    ["upstream proxy", onOff(hasProxy(environment), "HTTPS_PROXY")],
    ["private webhooks", webhooks.allowCidrs.join(" ") || onOff(false, "WEBHOOK_ALLOW_CIDRS")],
    ["trusted proxies", config.trustedProxies.join(" ") || onOff(false, "TRUSTED_PROXIES")],
    ["tracing", onOff(/^(true|1)$/i.test(environment.OTEL_DENO ?? ""), "OTEL_DENO")],
  ];
}

function hasProxy(environment: Record<string, string>): boolean {
  return readProxies((name) => environment[name]) !== null;
}

const onOff = (isOn: boolean, setting: string) => isOn ? "on" : `off (${setting} is not set)`;

function startupTable(rows: readonly StartupRow[]): string {
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, state]) => `  ${name.padEnd(width)}  ${state}`).join("\n");
}

/** Lists settings that production can start with, but should not go on with. */
function startupWarnings(config: Config): { setting: string; consequence: string }[] {
  if (config.dev) return [];
  const { upstream, baseUrl } = config;
  const warnings: [setting: string, applies: boolean, consequence: string][] = [
    [
      "ADMIN_KEY",
      config.adminKey === null,
      "is not set: the admin API is off, so no project and no key can be created",
    ],
    [
      "SECRETS_KEY",
      config.secretsKeys.length === 0,
      "is not set: webhook secrets and upstream keys cannot be stored, and all links end with this " +
      "process",
    ],
    [
      "BASE_URL",
      isLoopback(new URL(baseUrl).hostname),
      "leads to this machine only: links in messages do not work elsewhere",
    ],
    [
      "BASE_URL",
      isPublicHttp(baseUrl),
      "is http:// at a public host: keys, cookies and links travel unencrypted",
    ],
    [
      "UPSTREAM_URL",
      upstream !== null && isPublicHttp(upstream.url),
      "is http:// at a public host: UPSTREAM_API_KEY and all messages travel unencrypted",
    ],
    [
      "KV_PATH",
      config.kvPath.startsWith("http:") && isPublicHttp(config.kvPath),
      "is http:// at a public host: all data travel unencrypted",
    ],
  ];
  return warnings.flatMap(([setting, applies, consequence]) =>
    applies ? [{ setting, consequence }] : []
  );
}

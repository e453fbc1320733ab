// The process: environment, database file, socket, signals. Everything else is in src/.
import { type App, createApp } from "./src/app.ts";
import { toBase62 } from "./src/base/ids.ts";
import { version } from "./src/base/version.ts";
import { errorFields, serverStopping } from "./src/base/errors.ts";
import { type Config, isDatabaseFile, readConfig } from "./src/config/config.ts";
import {
  createPrivateFile,
  restrictDatabase,
  restrictNewFiles,
} from "./src/platform/database_files.ts";
import { isNewDatabase, lockDatabase } from "./src/platform/database_lock.ts";
import type { OutsideDeps } from "./src/deps.ts";
import { readEnvFile, readUpstreamsFile } from "./src/platform/env_file.ts";
import { beatEveryMs } from "./src/fleet/fleet.ts";
import { type HttpServer, listenHttp } from "./src/platform/http_server.ts";
import {
  describeService,
  reportStart,
  reportUnpayable,
  signInKeys,
} from "./src/platform/startup_report.ts";
import { createMemoryWatch, memoryOfProcess } from "./src/platform/memory.ts";
import { leaveDevAdminKey } from "./src/platform/dev_admin_key.ts";
import { devApiKey } from "./src/base/dev_keys.ts";
import { devProjectId } from "./src/projects/auth.ts";
import { createRealDeps, isLogForPeople } from "./src/platform/deps.ts";
import { openStore } from "./src/platform/stores.ts";
import { claimDataFormat } from "./src/store/data_format.ts";
import { copyKey } from "./src/store/keys.ts";
import { devProject, devRequest } from "./src/projects/dev_project.ts";

/** How often leftovers of dead processes are cleaned up. */
const sweepEveryMs = 15_000;
/** How often the store is polled for deliveries that no notification announced. */
const pollEveryMs = 250;
/** Parsing one body of 20 MiB takes longer. */
const watchMemoryEveryMs = 50;
/** How long a clean stop waits for running calls: Deno Deploy kills after 5 s in all. */
const finishMs = { usual: 25_000, deploy: 1_000 };
/**
 * How long a clean stop still accepts calls, so that what sends them learns of it: until none has
 * come for as long as clients keep an idle connection (Node.js: 4 s), and at most this long.
 */
const acceptMs = { untilQuietFor: 4_000, most: 10_000 };
/** How long it then waits for their charges, and until their callers are notified. */
const settleMs = 3_000;
const tellMs = 1_000;

/** Settings in a service's `.env` that development beside it must not use. */
const notForDev = ["KV_PATH", "BASE_URL"];

const started = Promise.withResolvers<App>();

// Where no process has to stay alive, what is due is processed at least every minute. Deno Deploy
// reads the schedule from the top of the program, and calls it on any instance.
if (Deno.env.get("DENO_DEPLOY")) {
  Deno.cron("farebox", "* * * * *", async () => {
    const app = await started.promise;
    await app.sweep();
    await app.dispatcher.poll();
  });
}

await main();

async function main(): Promise<void> {
  if (Deno.args.includes("--version")) {
    console.log(version);
    return;
  }
  restrictNewFiles();
  const settings = await orExit(readSettings);
  const kvPath = await orExit(() => lock(settings.kvPath));
  const config = Object.freeze({ ...settings, kvPath });
  const isNew = isDatabaseFile(kvPath) && isNewDatabase(kvPath);
  const exposed = await orExit(() => secureDatabase(kvPath));
  await orExit(() => leaveDevAdminKey(settings));
  const store = await orExit(() => openStore(config));
  const deps = await orExit(() => createRealDeps(config, store));
  const app = await orExit(() => createApp(deps));
  await orExit(() => requireWhole(deps));
  await orExit(() => claimDataFormat(deps.kv));
  await requireSecrets(app, deps);
  // Where that fails, the sweep does it.
  await app.sealingMark.note().catch((error) =>
    deps.log("warn", "sealing_not_noted", errorFields(error))
  );
  const sealing = await orExit(() => app.sealingMark.warning());
  const { warning } = store;
  const forPeople = isLogForPeople(config);
  const environment = Deno.env.toObject();
  reportStart(deps, { environment, isNew, exposed, warning, sealing, forPeople, say });
  await orExit(() => app.loadCatalogue());
  app.dispatcher.listen();
  if (config.dev) await app.admin.ensure(devProjectId, devProject);
  started.resolve(app);
  await app.beat();
  // Before anyone can know that it runs.
  const stopAsked = firstStopSignal();
  const server = await orExit(() => open(app, deps));
  app.findUnpayable().then((projects) => reportUnpayable(deps, projects, { forPeople, say }))
    .catch((error) => deps.log("warn", "checkouts_not_looked_at", errorFields(error)));
  const stopSweeping = repeat(deps, { everyMs: sweepEveryMs, work: () => app.sweep() });
  repeat(deps, { everyMs: beatEveryMs, work: () => app.beat() });
  const watch = createMemoryWatch(memoryOfProcess());
  const stopWatching = repeat(deps, { everyMs: watchMemoryEveryMs, work: async () => watch() });
  const stopPolling = repeat(deps, { everyMs: pollEveryMs, work: () => app.dispatcher.poll() });
  stopAsked.then(async () => {
    stopSweeping();
    stopPolling();
    stopWatching();
    await stop(server, app, deps);
    Deno.exit(0);
  });
}

/** Resolves at the first signal to stop. At a second one, exits at once: holds then expire. */
function firstStopSignal(): Promise<void> {
  return new Promise((resolve) => {
    let isStopping = false;
    for (const signal of ["SIGTERM", "SIGINT"] as const) {
      Deno.addSignalListener(signal, () => {
        if (isStopping) Deno.exit(130);
        isStopping = true;
        resolve();
      });
    }
  });
}

/** Runs a step that only fails because of a wrong setting, which its error names. */
async function orExit<T>(step: () => T | Promise<T>): Promise<T> {
  try {
    return await step();
  } catch (error) {
    exit(messageOf(error));
  }
}

function readSettings(): Config {
  const dev = Deno.args.includes("--dev");
  // With Deno's `process.loadEnvFile` the file would override the environment.
  for (const [name, value] of Object.entries(readEnvFile())) {
    if (dev && notForDev.includes(name)) continue;
    if (!Deno.env.get(name)) Deno.env.set(name, value);
  }
  return readConfig(Deno.env.toObject(), {
    dev,
    memoryBytes: memoryOfProcess(),
    readFile: readUpstreamsFile,
    newAdminKey: () => `admin_dev_${toBase62(crypto.getRandomValues(new Uint8Array(24)))}`,
  });
}

/**
 * One process per database file: a second one would only get "database is locked". Returns the
 * file's path with links resolved.
 */
function lock(kvPath: string): string {
  if (!isDatabaseFile(kvPath)) return kvPath;
  let path: string | null;
  try {
    path = lockDatabase(kvPath);
  } catch (error) {
    throw new Error(`KV_PATH ${kvPath} cannot be written: ${messageOf(error)}`);
  }
  if (path === null) {
    throw new Error(`KV_PATH ${kvPath} is in use by another process. Stop it first`);
  }
  return path;
}

/** Returns the paths of the database's files that other users of this machine may access. */
function secureDatabase(kvPath: string): string[] {
  if (!isDatabaseFile(kvPath)) return [];
  createPrivateFile(kvPath);
  return restrictDatabase(kvPath);
}

function open(app: App, deps: OutsideDeps): HttpServer {
  const { config } = deps;
  try {
    return listenHttp(deps, app.fetch, (port) => printAddress(config, port));
  } catch (error) {
    throw new Error(listenFault(config, error));
  }
}

function listenFault({ host, port }: Config, error: unknown): string {
  if (error instanceof Deno.errors.AddrInUse) {
    return `PORT ${port} is in use by another process. Stop it, or set another PORT`;
  }
  if (error instanceof Deno.errors.AddrNotAvailable) {
    return `HOST ${host} is not an address of this machine`;
  }
  if (error instanceof Deno.errors.PermissionDenied) {
    return `PORT ${port} requires privileges that this user does not have. Set one above 1023`;
  }
  return `HOST ${host} cannot be used to listen: ${messageOf(error)}`;
}

/** A service on half of a database would take what is missing for new. */
async function requireWhole({ kv }: OutsideDeps): Promise<void> {
  if ((await kv.get(copyKey)).value === null) return;
  throw new Error("KV_PATH has an unfinished copy of another store. Run 'farebox copy' to its end");
}

/** With a wrong key, links would be rejected and no delivery could be signed. */
async function requireSecrets(app: App, { log }: OutsideDeps): Promise<void> {
  const { opened, unreadable } = await app.probeSecrets();
  if (unreadable.length === 0) return;
  if (opened > 0) return log("error", "secrets_unreadable", { of: unreadable.join(" ") });
  exit("SECRETS_KEY decrypts none of the secrets in this database");
}

function exit(why: string): never {
  console.error(`Farebox cannot start:\n${why}`);
  Deno.exit(1);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function printAddress(config: Config, port: number): void {
  const { dev, host, baseUrl } = config;
  const name = host.includes(":") && !host.startsWith("[") ? `[${host}]` : host;
  const url = dev ? baseUrl.replace(/:0$/, `:${port}`) : `http://${name}:${port}`;
  if (isLogForPeople(config)) {
    const environment = Deno.env.toObject();
    const facts = { url, environment, devKey: devApiKey, devRequest: devRequest(url) };
    return say(describeService(config, facts));
  }
  const keys = config.adminKeyOf === "start" ? signInKeys(config, devApiKey) : devApiKey;
  if (!dev) return say(`Farebox listens on ${url} (public URL: ${baseUrl})`);
  say(`Farebox listens on ${url}, in development with the simulated model and key ${devApiKey}
Try it:
  ${devRequest(url).replaceAll("\n", "\n  ")}

Console: ${url}/console (sign in with ${keys}). Documentation: ${url}/docs
`);
}

/** Prints to standard output; the service works whether or not anyone reads it. */
function say(text: string): void {
  try {
    console.log(text);
  } catch {
    // The log says what is wrong with it.
  }
}

/** Runs a background task now, and again some time after each end. */
function repeat(
  { log, clock }: OutsideDeps,
  { everyMs, work }: { everyMs: number; work: () => Promise<void> },
): () => void {
  let cancel = () => {};
  let stopped = false;
  const round = async () => {
    await work().catch((error) => {
      // A stop closes the store under work that would take longer; the next sweep continues it.
      if (!stopped) log("error", "background_failed", errorFields(error));
    });
    if (!stopped) cancel = clock.after(everyMs, round);
  };
  round();
  return () => {
    stopped = true;
    cancel();
  };
}

/**
 * Announces that it stops, and accepts no more requests once that is known; lets calls finish, cuts
 * and charges the rest, and closes the store. Until then it still beats, or others would take its
 * calls for those of a dead process.
 */
async function stop(server: HttpServer, app: App, deps: OutsideDeps) {
  const { clock, committer, config, kv, log } = deps;
  log("info", "stopping", { running: app.running.size });
  const enough = clock.sleep(config.deploy ? finishMs.deploy : finishMs.usual);
  app.announceStop();
  // Deno Deploy has stopped sending calls by then, and development has no balancer.
  if (!config.deploy && !config.dev) await untilQuiet(app, deps);
  const closed = server.shutdown();
  await Promise.race([closed, enough]);
  app.running.cutAll(serverStopping());
  await Promise.race([app.running.idle(), clock.sleep(settleMs)]);
  // Callers that were cut are still being notified.
  await Promise.race([closed, clock.sleep(tellMs)]);
  await Promise.race([app.dispatcher.stop(), clock.sleep(settleMs)]);
  await Promise.race([app.flush().catch(() => {}), clock.sleep(settleMs)]);
  await Promise.race([app.leave().catch(() => {}), clock.sleep(tellMs)]);
  await committer.idle();
  kv.close();
  log("info", "stopped");
}

async function untilQuiet(app: App, { clock }: OutsideDeps): Promise<void> {
  const until = clock.elapsed() + acceptMs.most;
  while (clock.elapsed() < until && app.quietMs() < acceptMs.untilQuietFor) await clock.sleep(50);
}

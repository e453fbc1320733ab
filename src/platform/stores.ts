import { isPostgres } from "../config/postgres_address.ts";
import { type Config, isDatabaseFile } from "../config/config.ts";
import type { Alarm, Log, Snapshot } from "../deps.ts";
import type { Clock } from "../base/clock.ts";
import type { Kv } from "../store/kv.ts";
import { createAlarm } from "./alarm.ts";
import { denoKv, fileLimits, serverLimits } from "./deno_kv.ts";
import { copyDatabase, removeLeftCopies } from "./snapshot.ts";

/** The database of a process, as `KV_PATH` names it. */
export interface Store {
  kv: Kv;
  /**
   * A queue as a wake-up timer: of the server's, or in memory beside a file. It never fires where
   * there is none.
   */
  openAlarm(clock: Clock, log: Log): Alarm;
  /** Copies the database while it is in use; null where it is not a file of this process. */
  takeSnapshot: (() => Promise<Snapshot>) | null;
  /** What the store's own settings put at risk; null where they are sound. */
  warning: string | null;
}

type StoreConfig = Pick<Config, "kvPath" | "kvPassword" | "deploy">;

/** Opens the store. Throws an Error that names the setting and the problem. */
export async function openStore(config: StoreConfig): Promise<Store> {
  return isPostgres(config.kvPath) ? await openServer(config) : await openDenoKv(config);
}

async function openServer({ kvPath, kvPassword }: StoreConfig): Promise<Store> {
  // Its driver is loaded only where it is used.
  const { openPostgres } = await import("./postgres.ts");
  try {
    const password = kvPassword?.reveal() ?? null;
    const waits = { pause, elapsed: () => performance.now() };
    const { kv, warning } = await openPostgres(kvPath, { password, waits });
    // The polls of the dispatcher find what is due.
    const openAlarm = () => ({ schedule() {}, onWake() {} });
    return { kv, openAlarm, takeSnapshot: null, warning };
  } catch (error) {
    throw new Error(`KV_PATH cannot be opened: ${messageOf(error)}`, { cause: error });
  }
}

async function openDenoKv({ kvPath, deploy }: StoreConfig): Promise<Store> {
  const isFile = isDatabaseFile(kvPath);
  if (isFile) await removeLeftCopies(kvPath);
  const store = await openKv(kvPath);
  const isServer = deploy || /^https?:/i.test(kvPath);
  if (isServer) return serverStore(store);
  // Deno ends the process where the queue of a file meets a failing disk.
  const queue = await Deno.openKv(":memory:");
  const kv = denoKv(store, fileLimits);
  return {
    kv: {
      ...kv,
      close() {
        kv.close();
        queue.close();
      },
    },
    openAlarm: (clock, log) => createAlarm(queue, clock, log),
    takeSnapshot: isFile ? () => copyDatabase(kvPath) : null,
    warning: null,
  };
}

function serverStore(store: Deno.Kv): Store {
  return {
    kv: denoKv(store, serverLimits),
    openAlarm: (clock, log) => createAlarm(store, clock, log),
    takeSnapshot: null,
    warning: null,
  };
}

async function openKv(kvPath: string): Promise<Deno.Kv> {
  try {
    return await Deno.openKv(kvPath === "" ? undefined : kvPath);
  } catch (error) {
    throw new Error(await storeFault(kvPath, messageOf(error)), { cause: error });
  }
}

async function storeFault(kvPath: string, reason: string): Promise<string> {
  if (reason.includes("DENO_KV_ACCESS_TOKEN")) {
    return "DENO_KV_ACCESS_TOKEN is required, because KV_PATH is the URL of a KV server";
  }
  if (!isDatabaseFile(kvPath)) return `KV_PATH cannot be opened: ${reason}`;
  const found = await Deno.stat(kvPath).catch(() => null);
  if (found?.isDirectory) return `KV_PATH ${kvPath} is a folder. Name a file in it`;
  return `KV_PATH ${kvPath} cannot be opened as a database: ${reason}`;
}

/** Waits for a random time: processes that met at one row do not meet there again. */
function pause(aboutMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 2 * aboutMs * Math.random()));
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

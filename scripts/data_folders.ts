/**
 * Prints the folders that the service may write to, for `--allow-read` and `--allow-write` of its
 * task: the folder of its database, by KV_PATH of the environment or of `.env`. A link counts with
 * its own folder and the one that it leads to. With `--dev`, `.env` is not read, as in development.
 */
import { dirname } from "node:path";
import process from "node:process";
import { kvPathFault } from "../src/config/kv_path.ts";
import { isDatabaseFile } from "../src/config/config.ts";
import { databasePath } from "../src/platform/database_lock.ts";
import { readEnvFile } from "../src/platform/env_file.ts";

/** Returns the folders for a database at `kvPath`, below the working directory where relative. */
export function dataFolders(kvPath: string): string[] {
  // A mistyped URL may contain a password, and this becomes an argument.
  if (!isDatabaseFile(kvPath) || kvPathFault(kvPath) !== null) return ["data"];
  return [...new Set([dirname(kvPath), dirname(targetOf(kvPath))])];
}

/** Where the path leads; itself where that is not known yet. */
function targetOf(kvPath: string): string {
  try {
    return databasePath(kvPath);
  } catch {
    return kvPath;
  }
}

/** An unreadable file is reported by the service itself, when it starts. */
function pathInFile(): string | undefined {
  try {
    return readEnvFile().KV_PATH;
  } catch {
    return undefined;
  }
}

if (import.meta.main) {
  const isDev = Deno.args.includes("--dev");
  const kvPath = process.env.KV_PATH || (isDev ? "" : pathInFile()) || "data/farebox.kv";
  // A comma in a path would separate two paths.
  console.log(dataFolders(kvPath).map((folder) => folder.replaceAll(",", ",,")).join(","));
}

import { devAdminKeyPath } from "../base/dev_keys.ts";
import { type Config, isDatabaseFile } from "../config/config.ts";

/**
 * Leaves a random operator's key of development to the commands of this machine, in a file beside
 * the database that only its owner may read; removes the one of an earlier start. A database that
 * is no file has no such place: then the key is only printed.
 */
export function leaveDevAdminKey(
  { dev, kvPath, adminKey, adminKeyOf }: Pick<Config, "dev" | "kvPath" | "adminKey" | "adminKeyOf">,
): void {
  if (!dev || !isDatabaseFile(kvPath)) return;
  const path = devAdminKeyPath(kvPath);
  try {
    Deno.removeSync(path);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
  if (adminKeyOf !== "start" || adminKey === null) return;
  Deno.writeTextFileSync(path, adminKey.reveal(), { createNew: true, mode: 0o600 });
}

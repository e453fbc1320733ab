import { parseEnv } from "node:util";

/** Reads the file of `UPSTREAMS_FILE`. Throws an Error that tells why it cannot be read. */
export function readUpstreamsFile(path: string): string {
  try {
    return Deno.readTextFileSync(path);
  } catch (error) {
    const why = error instanceof Deno.errors.NotCapable
      ? "it must be below the working directory, or beside the database"
      : error instanceof Error
      ? error.message
      : error;
    throw new Error(`UPSTREAMS_FILE ${path} cannot be read: ${why}`);
  }
}

/**
 * Reads `.env` in the working directory; empty where there is no such file. The environment takes
 * precedence. Throws an Error that tells why the file cannot be read.
 */
export function readEnvFile(): Record<string, string> {
  try {
    const values = Object.entries(parseEnv(Deno.readTextFileSync(".env")));
    return Object.fromEntries(values.map(([name, value]) => [name, value ?? ""]));
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return {};
    throw new Error(`.env cannot be read: ${error instanceof Error ? error.message : error}`);
  }
}

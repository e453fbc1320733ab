import { parseEnv } from "node:util";

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

import { parseEnv } from "node:util";

/**
 * What `.env` in the working directory says, by name; nothing where there is no such file. The
 * environment wins over it. Throws an Error that says why it cannot be read.
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

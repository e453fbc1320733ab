import { isObject, type Json, parseJson } from "../../src/base/json.ts";
import { secretNames } from "../../src/projects/stored_secret.ts";
import { usage } from "./failure.ts";

/**
 * Reads a JSON object from an option: its text, or `-` for standard input, where secrets belong:
 * other users of the machine can read arguments.
 */
export async function readJsonOption(
  text: string | undefined,
  option: string,
): Promise<Record<string, unknown>> {
  if (text === undefined) return {};
  const isInput = text === "-";
  const json = isInput ? await new Response(Deno.stdin.readable).text() : text;
  const { value, fault } = parse(json);
  if (isObject(value)) return value;
  const where = isInput ? "standard input" : "its value";
  const hint = isInput ? "" : ` To pass a file, use ${option} - < FILE`;
  throw usage(`${option} must be a JSON object; ${where} is ${fault}.${hint}`);
}

/**
 * Reads the secret of an option from standard input: other users of the machine can read arguments.
 * Throws where it would be typed at a terminal, which shows it, and where there is none.
 */
export async function readSecret(option: string): Promise<string> {
  if (Deno.stdin.isTerminal()) {
    throw usage(`${option} reads standard input: pass a file or a pipe, as in ${option} < FILE`);
  }
  const secret = (await new Response(Deno.stdin.readable).text()).trim();
  if (secret === "") throw usage(`${option} reads standard input, which is empty.`);
  return secret;
}

/** Reads a secret from a file, or by `-` from standard input. Throws where there is none. */
export async function readSecretFile(path: string, option: string): Promise<string> {
  if (path === "-") return await readSecret(`${option} -`);
  const text = await Deno.readTextFile(path).catch((error) => {
    throw usage(`${option}: ${path} cannot be read: ${error.message}`);
  });
  const secret = text.replace(/\r?\n$/, "");
  if (secret === "") throw usage(`${option}: ${path} is empty.`);
  return secret;
}

/**
 * Reads the settings of a project, an upstream or a webhook from `--settings`, as `readJsonOption`
 * does. Throws for a secret among the arguments; `more` names settings that hold one beside those
 * that do so anywhere.
 */
export async function readSettingsOption(
  text: string | undefined,
  more: readonly string[] = [],
): Promise<Record<string, unknown>> {
  const settings = await readJsonOption(text, "--settings");
  const name = text === "-"
    ? undefined
    : secretIn(settings) ?? more.find((each) => Object.hasOwn(settings, each));
  if (name === undefined) return settings;
  throw usage(
    `--settings has a secret, '${name}', which other users of this machine can read. ` +
      "Use --settings - < FILE",
  );
}

/** Adds a value to an option that may be repeated. */
export function alsoNamed(value: string, before: string[] = []): string[] {
  return [...before, value];
}

/** The name of a setting that has a secret as text, at any depth. */
function secretIn(value: unknown): string | undefined {
  if (!isObject(value)) return undefined;
  for (const [name, member] of Object.entries(value)) {
    const isText = typeof member === "string" || Array.isArray(member);
    const found = secretNames.has(name) && isText ? name : secretIn(member);
    if (found !== undefined) return found;
  }
  return undefined;
}

function parse(text: string): { value: Json; fault: string } {
  try {
    return { value: parseJson(text), fault: "another kind of JSON" };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    // Without the excerpt of the text that V8 shows, which may contain a secret.
    return { value: null, fault: `not JSON: ${why.replace(/, (\.\.\.)?".*$/s, "")}` };
  }
}

import { isObject, type Json, parseJson } from "../../src/base/json.ts";
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

function parse(text: string): { value: Json; fault: string } {
  try {
    return { value: parseJson(text), fault: "another kind of JSON" };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    // Without the excerpt of the text that V8 shows, which may contain a secret.
    return { value: null, fault: `not JSON: ${why.replace(/, (\.\.\.)?".*$/s, "")}` };
  }
}

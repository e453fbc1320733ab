import { isObject, type Json, parseJson } from "../../src/base/json.ts";
import { usage } from "./failure.ts";

/**
 * A JSON object that an option gives: its text, or `-` for standard input, where secrets belong:
 * what is an argument, others on the machine can read.
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
  const where = isInput ? "what came on standard input" : "its value";
  const hint = isInput ? "" : ` A file goes in by ${option} - < FILE`;
  throw usage(`${option} must be a JSON object; ${where} is ${fault}.${hint}`);
}

function parse(text: string): { value: Json; fault: string } {
  try {
    return { value: parseJson(text), fault: "another kind of JSON" };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    // Without the piece of the text that V8 shows, which may be a secret's.
    return { value: null, fault: `no JSON: ${why.replace(/, (\.\.\.)?".*$/s, "")}` };
  }
}

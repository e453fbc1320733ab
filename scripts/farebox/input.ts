import { parseJson } from "../../src/base/json.ts";
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
  const json = text === "-" ? await new Response(Deno.stdin.readable).text() : text;
  const value = parse(json);
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    return value as Record<string, unknown>;
  }
  const where = text === "-" ? "what came on standard input" : "its value";
  throw usage(`${option} must be a JSON object; ${where} is none.`);
}

function parse(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

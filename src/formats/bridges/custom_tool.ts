import { isObject, type Json, type JsonObject } from "../../base/json.ts";

/** The parameters of the function that stands for a custom tool, which takes one text. */
export const customParameters: JsonObject = {
  type: "object",
  properties: { input: { type: "string" } },
  required: ["input"],
};

/** The arguments of that function for an input of the custom tool. */
export function customArguments(input: string): JsonObject {
  return { input };
}

/**
 * The paragraph of a description that tells a custom tool's grammar, which the model reads and
 * nothing enforces. Empty for a tool of any text; null for a format that is not known.
 */
export function grammarText(format: Json | undefined): string | null {
  if (!isObject(format) || format.type === "text") return "";
  const { syntax, definition } = isObject(format.grammar) ? format.grammar : format;
  if (format.type !== "grammar" || typeof definition !== "string") return null;
  return `\`input\` follows this ${syntax ?? ""} grammar:\n${definition}`;
}

/** The input of a custom tool: the one argument of its function, else all that was written. */
export function customInput(written: string): string {
  try {
    const parsed: unknown = JSON.parse(written);
    if (typeof parsed === "object" && parsed !== null && "input" in parsed) {
      if (typeof parsed.input === "string") return parsed.input;
    }
  } catch {
    // Models do not always write JSON.
  }
  return written === "{}" ? "" : written;
}

import type { z } from "zod";

/** The most values that are listed. */
const valuesMax = 16;

/**
 * Returns what is wrong with a value, to follow its name: a schema's own message, or in plain words
 * what zod says. Of a record's key, what is wrong with that.
 */
export function issueWords(issue: z.core.$ZodIssue): string {
  const [ofName] = issue.code === "invalid_key" ? issue.issues : [];
  const told = ofName ?? issue;
  if (told.code === "invalid_value" && /^Invalid (input|option): /.test(told.message)) {
    return `must be ${alternatives(told.values.map(String).filter((value) => value !== ""))}`;
  }
  return told.message.replace(/^Invalid (input|option): /, "");
}

/** `["a", "b", "c"]` -> `a, b or c` */
function alternatives(values: string[]): string {
  if (values.length > valuesMax) return `one of ${values.slice(0, valuesMax).join(", ")}, …`;
  const last = values.at(-1) ?? "";
  return values.length > 1 ? `${values.slice(0, -1).join(", ")} or ${last}` : last;
}

import { ApiError } from "../../base/errors.ts";

/** One server-sent event. JSON text has no line breaks; other data keeps its own. */
export function sseFrame(data: string): string {
  if (!/[\r\n]/.test(data)) return `data: ${data}\n\n`;
  return data.split(/\r\n|\r|\n/).map((line) => `data: ${line}\n`).join("") + "\n";
}

/** The event that ends OpenAI's streams. */
export const sseDone = "data: [DONE]\n\n";

/** An error as the event that ends a stream, in OpenAI's shape. */
export function errorFrame(error: unknown): string {
  const shown = error instanceof ApiError ? error : new ApiError(500, {
    message: "The response could not be completed.",
    code: "internal_error",
  });
  return sseFrame(JSON.stringify(shown.body()));
}

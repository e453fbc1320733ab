import { type ApiError, badRequest } from "../../../base/errors.ts";
import type { Json } from "../../../base/json.ts";

/** 400: chat completions, which the upstream speaks, cannot carry what a field asks for. */
export function notInChat(param: string, what: string): ApiError {
  return badRequest(
    param,
    `'${param}': ${what} cannot be passed on to this upstream, which only speaks chat completions.`,
    "unsupported_parameter",
  );
}

/** 400: the request refers to what an upstream of chat completions does not keep. */
export function nothingKept(param: string): ApiError {
  return badRequest(
    param,
    `'${param}': this upstream keeps no responses; send the whole conversation, or set store: ` +
      "false.",
    "unsupported_parameter",
  );
}

/** 400: the upstream does not compact a conversation by itself. */
export function noCompaction(param: string): ApiError {
  return badRequest(
    param,
    `'${param}': this upstream does not compact conversations; ask the model for a summary, as ` +
      "Codex does with a provider of your own in its config.toml.",
    "unsupported_parameter",
  );
}

/** A type as an error names it. */
export function typeName(type: Json | undefined): string {
  return typeof type === "string" ? type.slice(0, 64) : "none";
}

import { isObject, type JsonObject } from "../../base/json.ts";
import type { ResponseScanner, ServedBy } from "../../inference/upstream_response.ts";
import { joinReports } from "../../pricing/join_reports.ts";
import { readTier } from "../../pricing/usage_fields.ts";
import { OpenAiScanner } from "../openai/response_scanner.ts";
import { billedUsage } from "./usage.ts";

/** Reads the usage and the model from the text of a message, or of an event, of any length. */
export class MessageScanner implements ResponseScanner {
  readonly #scanner = new OpenAiScanner();
  /** Why the message has ended, where it is an event that says so. */
  get stopReason(): string | null {
    return this.#scanner.stopReason;
  }

  push(text: string): void {
    this.#scanner.push(text);
  }

  get usages(): JsonObject[] {
    const usage = this.#usage;
    return usage ? [billedUsage(usage)] : [];
  }

  get served(): ServedBy {
    const usage = this.#usage;
    return { model: this.#scanner.served.model, tier: usage && readTier(usage) };
  }

  get #usage(): JsonObject | null {
    const found = this.#scanner.usages.filter(isObject);
    return found.length > 0 ? found.reduce((before, next) => joinReports(before, next)) : null;
  }
}

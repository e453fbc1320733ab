import { isObject, type JsonObject } from "../base/json.ts";
import { soon } from "../base/soon.ts";
import { type Dialect, type DialectCall, dialectFor } from "../upstreams/dialect.ts";
import { maxTokensFields } from "../formats/chat/request.ts";

/** A request's body, in JSON, and the manner that it is written in. */
interface Written {
  manner: Dialect;
  body: string;
}

/** Has the body ready once the hold for it is durable: it is written while the store is waited for. */
export class PreparedBody {
  readonly #asked: Pick<DialectCall, "upstream" | "chat">;
  #prepared: { cap: number; written: Promise<Written> } | null = null;

  constructor(asked: Pick<DialectCall, "upstream" | "chat">) {
    this.#asked = asked;
  }

  /** Begins with it, for an answer of so many tokens at the most. */
  prepare(cap: number): void {
    this.#prepared = { cap, written: soon(() => this.#write(cap)) };
  }

  /** Gives what was prepared for this bound, else writes it. Keeps nothing: answers may be long. */
  async take(cap: number): Promise<Written> {
    const prepared = this.#prepared;
    this.#prepared = null;
    return prepared?.cap === cap ? await prepared.written : this.#write(cap);
  }

  #write(cap: number): Written {
    const { upstream, chat } = this.#asked;
    const manner = dialectFor(upstream, chat);
    return { manner, body: bodyFor({ chat, cap }, manner) };
  }
}

/** The caller's own body as JSON, with the output's bound, and usage asked for. */
export function bodyFor({ chat, cap }: Pick<DialectCall, "chat" | "cap">, manner: Dialect): string {
  // What is undefined is not written; an object with a field deleted takes three times as long.
  const body: Partial<JsonObject> = { ...chat.body };
  for (const field of maxTokensFields) body[field] = undefined;
  body[manner.maxTokensField] = Math.min(cap, manner.maxTokens, manner.room);
  if (chat.stream) {
    const options = isObject(body.stream_options) ? body.stream_options : {};
    body.stream_options = manner.requestsUsage ? { ...options, include_usage: true } : undefined;
  }
  return JSON.stringify(body);
}

import type { MakeId } from "./base/ids.ts";
import type { Config } from "./config.ts";
import type { Committer } from "./store/commit.ts";
import type { Kv } from "./store/kv.ts";

/** Time, and everything that waits for it. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Resolves after so long, or at once when `signal` aborts; never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Calls `work` after so long; the returned function takes that back. */
  after(ms: number, work: () => void): () => void;
}

/** One line of structured log. Never give it a secret or a message's text. */
export type Log = (
  level: "debug" | "info" | "warn" | "error",
  event: string,
  fields?: Record<string, unknown>,
) => void;

/** The one door to the outside: everything impure or shared that the rooms may use. */
export interface Deps {
  config: Config;
  kv: Kv;
  committer: Committer;
  clock: Clock;
  id: MakeId;
  randomBytes(length: number): Uint8Array<ArrayBuffer>;
  fetch: (url: string, init: RequestInit) => Promise<Response>;
  log: Log;
}

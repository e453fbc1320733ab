import type { BodyBudget } from "./body_budget.ts";

/** A request as handlers see it, with what the router found in its path. */
export interface Incoming {
  request: Request;
  /** The id on every response: the caller's own, or ours. */
  requestId: string;
  /** When the request arrived, by the clock's `elapsed`. */
  startedAt: number;
  /** The path as it was sent, still percent-encoded, without doubled or trailing slashes. */
  path: string;
  /**
   * The client's IP address: the peer's, or the one that trusted proxies name. Null where it is
   * unknown.
   */
  address(): string | null;
  /** A path parameter, decoded. */
  param(name: string): string;
  /** A query parameter, decoded, or undefined. */
  query(name: string): string | undefined;
  /** Waits for the request body. Rejects with 408 when it does not arrive in time. */
  inTime<T>(reading: Promise<T>): Promise<T>;
  /** Adds fields to the request's line in the log. */
  note(fields: Record<string, string | number>): void;
  /** The memory budget for large bodies. */
  bodies: BodyBudget;
}

/** Handles one request. An error that it throws becomes an error body in one place. */
export type Handler = (incoming: Incoming) => Promise<Response> | Response;

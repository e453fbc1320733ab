import type { BodyBudget } from "./body_budget.ts";

/** A request as handlers see it, with what the router found in its address. */
export interface Incoming {
  request: Request;
  /** On every answer: the caller's own id, or ours. */
  requestId: string;
  /** When it came, by the clock's `elapsed`. */
  startedAt: number;
  /** The path as it was sent, still percent-encoded, without doubled or trailing slashes. */
  path: string;
  /** Who connected, by address: a proxy's where one stands before us. Null where it is not told. */
  address(): string | null;
  /** A path parameter, decoded. */
  param(name: string): string;
  /** A query parameter, decoded, or undefined. */
  query(name: string): string | undefined;
  /** Waits for the caller's body. Rejects with 408 when it does not come in time. */
  inTime<T>(reading: Promise<T>): Promise<T>;
  /** Where a large body's reader takes its room. */
  bodies: BodyBudget;
}

/** Answers one request. What it throws becomes an error body in one place. */
export type Handler = (incoming: Incoming) => Promise<Response> | Response;

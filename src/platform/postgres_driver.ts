import pg from "pg";

// What is used of the driver `pg`, which has no types of its own. The package of its types brings
// those of Node with it, which differ from Deno's.

/** A statement with its parameters; a name keeps it prepared on its connection. */
export interface Query {
  name: string;
  text: string;
  values: readonly (Uint8Array | string)[];
  rowMode: "array";
  /** Values arrive as text, and are left as they are. */
  types: { getTypeParser(): (value: string) => unknown };
  /** How long it may take, in ms, instead of the time that all have. */
  query_timeout?: number;
}

/** What a connection needs to know; the driver has more options. */
export interface ClientConfig {
  host?: string;
  port?: number;
  password?: string;
  ssl?: false | { rejectUnauthorized: true; ca?: string };
}

/** One connection. */
interface Client {
  once(event: "error", listener: (error: Error) => void): this;
  query(query: Query): Promise<{ rows: (string | null)[][] }>;
  query(text: string, values?: readonly unknown[]): Promise<{ rows: Record<string, unknown>[] }>;
  end(): Promise<void>;
}

/** A connection of a pool, to be given back; with true, to be closed. */
export interface PoolClient extends Client {
  connection: { stream: { destroy(): void } };
  /** The process id of the server's side. */
  processID: number;
  release(close?: boolean): void;
}

/** Connections that are opened when they are needed, and kept. */
export interface Pool {
  connect(): Promise<PoolClient>;
  on(event: "error", listener: (error: Error) => void): this;
  end(): Promise<void>;
}

/** The driver. `DatabaseError` is what the server reported, with its SQLSTATE as `code`. */
export const driver: {
  Client: new (config: ClientConfig) => Client;
  Pool: new (config: Record<string, unknown>) => Pool;
  DatabaseError: new () => Error & { code?: string };
} = pg;

import type { ConnectionPool, HttpConnection } from "./connection.ts";

/** The server's keep-alive time counts from its response, which may have arrived this late. */
const keepAliveSlackMs = 1_000;

/** A connection without a request. */
interface Idle {
  connection: HttpConnection;
  waits: boolean;
  /** Cancels its idle timeout. */
  stop(): void;
}

/** The idle connections to one server. */
export class IdleConnections implements ConnectionPool {
  readonly clock: ConnectionPool["clock"];
  readonly pace: ConnectionPool["pace"];
  readonly isTolerant: boolean;
  readonly receivedMax: number;
  readonly #idleMs: number;
  readonly #idleMax: number;
  readonly #stack: Idle[] = [];
  #isClosed = false;

  constructor(
    { clock, pace, isTolerant = false, receivedMax = Infinity }: Omit<ConnectionPool, "keep">,
    { idleMs, idleMax }: { idleMs: number; idleMax: number },
  ) {
    this.clock = clock;
    this.pace = pace;
    this.isTolerant = isTolerant;
    this.receivedMax = receivedMax;
    this.#idleMs = idleMs;
    this.#idleMax = idleMax;
  }

  /** Takes the one that was used last: its server is the least likely to be closing it. */
  take(): HttpConnection | null {
    const idle = this.#stack.pop();
    if (!idle) return null;
    idle.waits = false;
    idle.stop();
    return idle.connection;
  }

  keep(connection: HttpConnection, keepAliveMs: number | null): void {
    const ms = Math.min(this.#idleMs, (keepAliveMs ?? Infinity) - keepAliveSlackMs);
    if (ms <= 0 || this.#isClosed || this.#stack.length >= this.#idleMax) return connection.close();
    const drop = () => {
      if (!idle.waits) return;
      idle.waits = false;
      idle.stop();
      this.#stack.splice(this.#stack.indexOf(idle), 1);
      connection.close();
    };
    const idle: Idle = { connection, waits: true, stop: this.clock.after(ms, drop) };
    this.#stack.push(idle);
    connection.onUnexpected(drop);
  }

  /** Closes the idle connections, and keeps none from now on. */
  close(): void {
    this.#isClosed = true;
    for (let kept = this.take(); kept; kept = this.take()) kept.close();
  }
}

const encoder = new TextEncoder();

/** A receiver that only knows bytes, on this machine. */
interface RawReceiver extends Disposable {
  port: number;
  /** How many connections were opened. */
  readonly connections: number;
  /** The text that arrived, by connection. */
  received: string[];
}

/** How a receiver behaves. */
export interface RawReceiverOptions {
  hostname?: string;
  port?: number;
  /** A certificate and its key; without it, the receiver speaks plain TCP. */
  tls?: { cert: string; key: string };
  /** Returns the answer to a read; null closes the connection, and undefined sends nothing. */
  answer(connection: number, request: number): string | Uint8Array | null | undefined;
  /** Whether the connection is closed after an answer. */
  closes?: ((connection: number, request: number) => boolean) | undefined;
}

/** Starts a receiver. Throws where the address cannot be used. */
export function startRawReceiver(
  { hostname = "127.0.0.1", port = 0, tls, answer, closes }: RawReceiverOptions,
): RawReceiver {
  const listener = tls
    ? Deno.listenTls({ hostname, port, ...tls })
    : Deno.listen({ hostname, port });
  const open: Deno.Conn[] = [];
  const received: string[] = [];
  async function serve(connection: Deno.Conn, number: number): Promise<void> {
    const buffer = new Uint8Array(16 * 1024);
    received[number] = "";
    for (let request = 0;; request++) {
      const length = await connection.read(buffer);
      if (length === null) break;
      received[number] += new TextDecoder().decode(buffer.subarray(0, length));
      const said = answer(number, request);
      if (said === null) break;
      if (said === undefined) continue;
      const bytes = typeof said === "string" ? encoder.encode(said) : said;
      for (let sent = 0; sent < bytes.length;) {
        sent += await connection.write(bytes.subarray(sent));
      }
      if (closes?.(number, request)) break;
    }
    closeQuietly(connection);
  }
  (async () => {
    for (;;) {
      try {
        const connection = await listener.accept();
        open.push(connection);
        serve(connection, open.length - 1).catch(() => closeQuietly(connection));
      } catch (error) {
        if (error instanceof Deno.errors.BadResource) return;
      }
    }
  })();
  return {
    port: (listener.addr as Deno.NetAddr).port,
    get connections() {
      return open.length;
    },
    received,
    [Symbol.dispose]() {
      listener.close();
      open.forEach(closeQuietly);
    },
  };
}

function closeQuietly(connection: Deno.Conn): void {
  try {
    connection.close();
  } catch {
    // It is closed already.
  }
}

/** Whether this machine has IPv6. */
export function hasIpv6(): boolean {
  try {
    Deno.listen({ hostname: "::1", port: 0 }).close();
    return true;
  } catch {
    return false;
  }
}

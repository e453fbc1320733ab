/** A listener in front of the server that takes out wishes to upgrade the protocol. */
export interface UpgradeFilter {
  port: number;
  /** The address of the client behind one of the server's connections, by that one's port. */
  clientOf(serverSidePort: number): Deno.NetAddr | null;
  /** Accepts no more connections. Those that are open go on. */
  close(): void;
  /** Resolves once everything that the server sent on its ended connections has been passed on. */
  drained(): Promise<void>;
}

const pieceBytes = 64 * 1024;
/** A head that is not complete within so many bytes is passed on as it is. */
const headBytesMax = 16 * 1024;

/**
 * Passes connections on to the server at `serverPort` of this machine. Deno's server answers a
 * request that has a body and asks for an upgrade with an empty 400, as the default client of Java
 * sends it over plain http. A server may ignore the wish (RFC 9110, 7.8), so it is taken out of the
 * head. Costs each request some 25 µs, so that it is off unless it is asked for.
 */
export function listenWithoutUpgrades(
  { hostname, port, serverPort, onFailure }: {
    hostname: string;
    port: number;
    serverPort: number;
    /** No connection could be accepted, for example with too many open files; resolves to retry. */
    onFailure(error: unknown): Promise<void>;
  },
): UpgradeFilter {
  const listener = Deno.listen({ hostname, port });
  const clients = new Map<number, Deno.NetAddr>();
  const open = new Set<Promise<void>>();
  let isClosed = false;

  async function connect(client: Deno.TcpConn): Promise<void> {
    try {
      using server = await Deno.connect({ hostname: "127.0.0.1", port: serverPort });
      server.setNoDelay();
      client.setNoDelay();
      clients.set(server.localAddr.port, client.remoteAddr);
      try {
        // Either side may end its direction first.
        await Promise.all([
          pump(client, server, withoutUpgrade),
          pump(server, client, (piece) => piece).finally(() => closeQuietly(client)),
        ]);
      } finally {
        clients.delete(server.localAddr.port);
      }
    } catch {
      // A broken connection ends both of its sides.
    } finally {
      closeQuietly(client);
    }
  }

  async function accept(): Promise<void> {
    while (!isClosed) {
      try {
        const connected = connect(await listener.accept());
        open.add(connected);
        void connected.then(() => open.delete(connected));
      } catch (error) {
        if (!isClosed) await onFailure(error);
      }
    }
  }

  void accept();
  return {
    port: listener.addr.port,
    clientOf: (serverSidePort) => clients.get(serverSidePort) ?? null,
    close() {
      isClosed = true;
      listener.close();
    },
    async drained() {
      await Promise.all(open);
    },
  };
}

async function pump(
  from: Deno.TcpConn,
  to: Deno.TcpConn,
  change: (piece: Uint8Array) => Uint8Array,
): Promise<void> {
  const buffer = new Uint8Array(pieceBytes);
  for (let read = await from.read(buffer); read !== null; read = await from.read(buffer)) {
    const piece = change(buffer.subarray(0, read));
    for (let sent = 0; sent < piece.length;) sent += await to.write(piece.subarray(sent));
  }
  await to.closeWrite();
}

function closeQuietly(connection: Deno.TcpConn): void {
  try {
    connection.close();
  } catch {
    // It is closed already.
  }
}

/**
 * A piece of a request without the wish to upgrade, where it begins with a head that has one, and a
 * body follows. Upgrades without a body, such as those to WebSocket, are left to the server.
 */
export function withoutUpgrade(piece: Uint8Array): Uint8Array {
  const first = piece[0] ?? 0;
  // Heads begin with a method, and JSON bodies never do.
  if (first < 0x41 || first > 0x5a) return piece;
  const text = asLatin1(piece.subarray(0, headBytesMax));
  const end = text.indexOf("\r\n\r\n");
  if (end < 0 || !/^[A-Z]+ \S+ HTTP\/1\.1\r\n/.test(text)) return piece;
  const head = text.slice(0, end);
  if (!/\r\nupgrade:/i.test(head)) return piece;
  if (!/\r\n(content-length|transfer-encoding):/i.test(head)) return piece;
  const kept = head.split("\r\n").filter((line) => !/^(upgrade|http2-settings):/i.test(line))
    .map(withoutUpgradeTokens).join("\r\n");
  const rest = piece.subarray(end);
  const changed = new Uint8Array(kept.length + rest.length);
  for (let at = 0; at < kept.length; at++) changed[at] = kept.charCodeAt(at);
  changed.set(rest, kept.length);
  return changed;
}

/** Bytes as characters of the same number. */
function asLatin1(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return text;
}

function withoutUpgradeTokens(line: string): string {
  const [, value] = /^connection:(.*)$/i.exec(line) ?? [];
  if (value === undefined) return line;
  const tokens = value.split(",").map((token) => token.trim())
    .filter((token) => token !== "" && !/^(upgrade|http2-settings)$/i.test(token));
  return `Connection: ${tokens.join(", ") || "keep-alive"}`;
}

/** A proxy of TCP between clients and a server, which can fail in the ways that networks do. */
export interface TcpProxy extends AsyncDisposable {
  port: number;
  /** How many connections were made through it. */
  readonly made: number;
  /** From now on, no byte of these connections arrives, and none is closed. */
  swallow(which: "open" | "all"): void;
  /** Bytes arrive again, on new connections. */
  recover(): void;
  /** Closes all open connections. */
  cut(): void;
  /** Closes the next connection that answers, once it has passed on that many bytes of it. */
  cutAnswerAfter(bytes: number): void;
}

interface Passing {
  conns: Deno.Conn[];
  swallowed: boolean;
}

/** Starts a proxy for a server on this machine. */
export function startTcpProxy(serverPort: number): TcpProxy {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const open = new Set<Passing>();
  let made = 0;
  let swallowsNew = false;
  let cutAfter: number | null = null;

  async function copy(passing: Passing, from: Deno.Conn, to: Deno.Conn, answers: boolean) {
    const buffer = new Uint8Array(64 * 1024);
    for (;;) {
      const read = await from.read(buffer);
      if (read === null) break;
      if (passing.swallowed) continue;
      let rest = buffer.subarray(0, read);
      const cuts = answers && cutAfter !== null;
      if (cuts) {
        rest = rest.subarray(0, cutAfter ?? 0);
        cutAfter = null;
      }
      while (rest.length > 0) rest = rest.subarray(await to.write(rest));
      if (cuts) break;
    }
    if (!passing.swallowed) close(passing);
  }

  function close(passing: Passing): void {
    open.delete(passing);
    for (const conn of passing.conns.splice(0)) {
      try {
        conn.close();
      } catch {
        // Closed by the other side.
      }
    }
  }

  async function pass(client: Deno.Conn): Promise<void> {
    const server = await Deno.connect({ hostname: "127.0.0.1", port: serverPort });
    const passing = { conns: [client, server], swallowed: swallowsNew };
    open.add(passing);
    const ended = () => close(passing);
    copy(passing, client, server, false).catch(ended);
    copy(passing, server, client, true).catch(ended);
  }

  const serving = (async () => {
    for await (const client of listener) {
      made++;
      pass(client).catch(() => client.close());
    }
  })();

  return {
    port: listener.addr.port,
    get made() {
      return made;
    },
    swallow(which) {
      for (const passing of open) passing.swallowed = true;
      swallowsNew = which === "all";
    },
    recover: () => void (swallowsNew = false),
    cut: () => [...open].forEach(close),
    cutAnswerAfter: (bytes) => void (cutAfter = bytes),
    async [Symbol.asyncDispose]() {
      listener.close();
      [...open].forEach(close);
      await serving;
    },
  };
}

// A TCP proxy that holds everything back for half of the given time in each direction, as a network
// would. Its arguments are a port of this machine and the time of a round trip in ms; it prints its
// own port.
const [port = 0, roundTripMs = 20] = Deno.args.map(Number);
const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
console.log(listener.addr.port);

for await (const client of listener) forward(client);

async function forward(client: Deno.TcpConn): Promise<void> {
  const server = await Deno.connect({ hostname: "127.0.0.1", port });
  client.setNoDelay(true);
  server.setNoDelay(true);
  await Promise.all([pass(client, server), pass(server, client)]).catch(() => {});
  for (const connection of [client, server]) {
    try {
      connection.close();
    } catch {
      // It was closed by its other end.
    }
  }
}

/** Passes on what arrives, in order, each piece at its own time. */
async function pass(from: Deno.TcpConn, to: Deno.TcpConn): Promise<void> {
  let sent = Promise.resolve();
  for (;;) {
    const buffer = new Uint8Array(32 * 1024);
    const length = await from.read(buffer).catch(() => null);
    const due = performance.now() + roundTripMs / 2;
    if (length === null) {
      await sent;
      return to.closeWrite();
    }
    sent = sent.then(async () => {
      const left = due - performance.now();
      if (left > 0) await new Promise((resolve) => setTimeout(resolve, left));
      await writeAll(to, buffer.subarray(0, length));
    });
    sent.catch(() => {});
  }
}

async function writeAll(to: Deno.TcpConn, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length;) at += await to.write(bytes.subarray(at));
}

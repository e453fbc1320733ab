/** A proxy of raw bytes; `answer` is its response to CONNECT, null for none. */
export function startProxy(answer: string | null, port: number) {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const requests: string[] = [];
  const open: Deno.Conn[] = [];
  (async () => {
    for await (const client of listener) {
      open.push(client);
      serve(client).catch(() => {});
    }
  })();
  async function serve(client: Deno.Conn) {
    const buffer = new Uint8Array(4096);
    const length = await client.read(buffer) ?? 0;
    requests.push(new TextDecoder().decode(buffer.subarray(0, length)));
    if (answer === null) return;
    await client.write(new TextEncoder().encode(answer));
    if (!answer.includes(" 200 ")) return client.close();
    const target = await Deno.connect({ hostname: "127.0.0.1", port });
    open.push(target);
    await Promise.all([
      client.readable.pipeTo(target.writable),
      target.readable.pipeTo(client.writable),
    ]);
  }
  return {
    requests,
    proxy: { hostname: "127.0.0.1", port: (listener.addr as Deno.NetAddr).port },
    [Symbol.dispose]() {
      listener.close();
      for (const connection of open) {
        try {
          connection.close();
        } catch {
          // It is closed already.
        }
      }
    },
  };
}

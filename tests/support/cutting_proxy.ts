/** A proxy between a caller and a server that cuts connections in the middle of a response. */
interface CuttingProxy extends AsyncDisposable {
  url: string;
  /** How many connections were cut. */
  readonly cuts: number;
}

/** Cuts the first `cutsMax` connections, each after a number of bytes from the server. */
export function startCuttingProxy(
  to: string,
  { afterBytes, cutsMax, losesLast = false }: {
    afterBytes: number;
    cutsMax: number;
    /** Whether nothing arrives of the chunk in which a connection is cut. */
    losesLast?: boolean;
  },
): CuttingProxy {
  const { hostname, port } = new URL(to);
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  let cuts = 0;

  async function pass(caller: Deno.Conn): Promise<void> {
    using from = caller;
    using server = await Deno.connect({ hostname, port: Number(port) });
    const asking = from.readable.pipeTo(server.writable, { preventClose: true }).catch(() => {});
    const answer = server.readable.getReader();
    const writer = from.writable.getWriter();
    for (let passed = 0;;) {
      const { done, value } = await answer.read();
      if (done) break;
      if (passed + value.length > afterBytes && cuts < cutsMax) {
        cuts++;
        if (!losesLast) await writer.write(value.subarray(0, afterBytes - passed));
        return;
      }
      passed += value.length;
      await writer.write(value);
    }
    await asking;
  }

  const serving = (async () => {
    for await (const caller of listener) pass(caller).catch(() => {});
  })();
  return {
    url: `http://127.0.0.1:${listener.addr.port}`,
    get cuts() {
      return cuts;
    },
    async [Symbol.asyncDispose]() {
      listener.close();
      await serving;
    },
  };
}

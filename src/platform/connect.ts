import type { Connect } from "../http/client.ts";
import type { HttpSocket } from "../http/connection.ts";

/** Connects by TCP, and within it by TLS where the server is asked for by https. */
export const connect: Connect = async ({ hostname, port, secure }, signal) => {
  const plain = await Deno.connect({ hostname, port, signal });
  plain.setNoDelay(true);
  plain.setKeepAlive(true);
  return secure ? await startTls(plain, hostname, signal) : plain;
};

async function startTls(plain: Deno.TcpConn, hostname: string, signal: AbortSignal) {
  let open: HttpSocket = plain;
  const close = () => {
    try {
      open.close();
    } catch {
      // The connection that has just become a part of the other is closed with it.
    }
  };
  signal.addEventListener("abort", close, { once: true });
  try {
    const secure = await Deno.startTls(plain, { hostname, alpnProtocols: ["http/1.1"] });
    open = secure;
    signal.throwIfAborted();
    await secure.handshake();
    return secure;
  } catch (error) {
    close();
    throw error;
  } finally {
    signal.removeEventListener("abort", close);
  }
}

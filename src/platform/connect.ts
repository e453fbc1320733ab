import type { Connect } from "../http/client.ts";
import type { HttpSocket } from "../http/connection.ts";
import { openTunnel } from "../http/tunnel.ts";

/**
 * Connects by TCP, through a proxy's tunnel where one is given, and by TLS where the server is
 * secure. `caCerts` are trusted besides the usual authorities.
 */
export function createConnect(caCerts: string[] = []): Connect {
  return async (server, signal, proxy, onReached) => {
    const target = { ...server, hostname: server.address ?? server.hostname };
    const { hostname, port } = proxy ?? target;
    const plain = await Deno.connect({ hostname, port, signal });
    plain.setNoDelay(true);
    plain.setKeepAlive(true);
    if (!server.secure) return plain;
    let open: HttpSocket = plain;
    const close = () => {
      try {
        open.close();
      } catch {
        // The TCP connection has become part of the TLS connection, and is closed with it.
      }
    };
    signal.addEventListener("abort", close, { once: true });
    try {
      signal.throwIfAborted();
      if (proxy) await openTunnel(plain, target, proxy);
      onReached?.();
      const options = { hostname: server.hostname, caCerts, alpnProtocols: ["http/1.1"] };
      const secure = await Deno.startTls(plain, options);
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
  };
}

import { isIP } from "node:net";
import type { Clock } from "../base/clock.ts";

/** How long an address may take to accept a connection before the next one is tried beside it. */
const staggerMs = 300;
/** How long it may take for the rest, such as a TLS handshake, before the next one is tried. */
const handshakeMs = 2_000;

/** Connects to one address. Calls `onReached` when it has accepted the TCP connection. */
export type ConnectTo<T> = (
  address: string,
  signal: AbortSignal,
  onReached: () => void,
) => Promise<T>;

interface RaceOptions<T> {
  clock: Pick<Clock, "after">;
  signal: AbortSignal;
  connectTo: ConnectTo<T>;
}

/** All addresses have failed: their errors, in the order in which they came. */
export class AllAddressesFailed extends Error {
  override name = "AllAddressesFailed";
  constructor(readonly errors: readonly unknown[]) {
    super("no address could be connected to", { cause: errors[0] });
  }
}

/**
 * Connects to the first of these addresses that works (RFC 8305): the next one is tried when one
 * fails, or beside it when it is slow. Throws `AllAddressesFailed`.
 */
export function connectToFirst<T extends { close(): void }>(
  addresses: readonly string[],
  { clock, signal, connectTo }: RaceOptions<T>,
): Promise<{ address: string; connected: T }> {
  const left = alternating([...new Set(addresses)]);
  const errors: unknown[] = [];
  const ended = new AbortController();
  const anyEnd = left.length > 1 ? AbortSignal.any([signal, ended.signal]) : signal;
  let running = 0;
  let cancelTimer = () => {};
  return new Promise((resolve, reject) => {
    const isOver = () => ended.signal.aborted;
    const startAfter = (ms: number) => {
      cancelTimer();
      if (left.length > 0 && !isOver()) cancelTimer = clock.after(ms, startNext);
    };
    function startNext(): void {
      cancelTimer();
      const address = left.shift();
      if (address === undefined) return;
      running++;
      startAfter(staggerMs);
      connectTo(address, anyEnd, () => startAfter(handshakeMs)).then((connected) => {
        if (isOver()) return connected.close();
        end();
        resolve({ address, connected });
      }, (error) => {
        running--;
        errors.push(error);
        if (isOver()) return;
        if (left.length > 0 && !signal.aborted) return startNext();
        if (running > 0) return;
        end();
        reject(new AllAddressesFailed(errors));
      });
    }
    function end(): void {
      cancelTimer();
      ended.abort();
    }
    startNext();
  });
}

/** Orders addresses by turns of IPv6 and IPv4, so that a family without a route costs little. */
function alternating(addresses: readonly string[]): string[] {
  const [first] = addresses;
  if (first === undefined) throw new Error("no address to connect to");
  const preferred = addresses.filter((address) => isIP(address) === isIP(first));
  const others = addresses.filter((address) => isIP(address) !== isIP(first));
  return Array.from(
    { length: Math.max(preferred.length, others.length) },
    (_, at) => [preferred[at], others[at]],
  ).flat().filter((address) => address !== undefined);
}

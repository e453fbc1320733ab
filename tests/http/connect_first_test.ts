import assert from "node:assert/strict";
import {
  AllAddressesFailed,
  type ConnectTo,
  connectToFirst,
} from "../../src/http/connect_first.ts";
import { createHandClock } from "../support/clock.ts";

interface Connected {
  address: string;
  closed: boolean;
  close(): void;
}

/** Connects as the test says, and counts. */
function startRace(addresses: string[]) {
  const clock = createHandClock();
  const stop = new AbortController();
  const started: string[] = [];
  const signals: AbortSignal[] = [];
  const open = new Map<string, (connected: Connected) => void>();
  const fail = new Map<string, (error: Error) => void>();
  const reach = new Map<string, () => void>();
  const connectTo: ConnectTo<Connected> = (address, signal, onReached) => {
    started.push(address);
    signals.push(signal);
    reach.set(address, onReached);
    return new Promise((resolve, reject) => {
      open.set(address, resolve);
      fail.set(address, reject);
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    });
  };
  const connected = (address: string): Connected => ({
    address,
    closed: false,
    close() {
      this.closed = true;
    },
  });
  const result = connectToFirst(addresses, { clock, signal: stop.signal, connectTo });
  result.catch(() => {});
  return {
    clock,
    stop,
    started,
    signals,
    result,
    async succeed(address: string) {
      const made = connected(address);
      open.get(address)?.(made);
      await new Promise((resolve) => setTimeout(resolve, 0));
      return made;
    },
    async fail(address: string) {
      fail.get(address)?.(new Error(address));
      await new Promise((resolve) => setTimeout(resolve, 0));
    },
    reach: (address: string) => reach.get(address)?.(),
  };
}

Deno.test("addresses: a silent one is joined by the next after 300 ms, and the first to answer wins", async () => {
  const race = startRace(["192.0.2.1", "192.0.2.2", "192.0.2.3"]);
  assert.deepEqual(race.started, ["192.0.2.1"]);
  await race.clock.advance(299);
  assert.deepEqual(race.started, ["192.0.2.1"]);
  await race.clock.advance(1);
  assert.deepEqual(race.started, ["192.0.2.1", "192.0.2.2"]);
  await race.succeed("192.0.2.2");
  assert.equal((await race.result).address, "192.0.2.2");
  assert.ok(race.signals.every(({ aborted }) => aborted), "the others are ended");
  await race.clock.advance(10_000);
  assert.equal(race.started.length, 2);
});

Deno.test("addresses: one that accepts TCP gets two seconds for its handshake", async () => {
  const race = startRace(["192.0.2.1", "192.0.2.2"]);
  race.reach("192.0.2.1");
  await race.clock.advance(1_999);
  assert.deepEqual(race.started, ["192.0.2.1"]);
  await race.clock.advance(1);
  assert.deepEqual(race.started, ["192.0.2.1", "192.0.2.2"]);
  await race.succeed("192.0.2.1");
  assert.equal((await race.result).address, "192.0.2.1", "the slow one may still win");
});

Deno.test("addresses: IPv6 and IPv4 take turns, each address once, and all errors are kept", async () => {
  const all = ["2001:db8::1", "2001:db8::2", "192.0.2.1", "2001:db8::1", "192.0.2.2"];
  const race = startRace(all);
  const order = ["2001:db8::1", "192.0.2.1", "2001:db8::2", "192.0.2.2"];
  for (const address of order) await race.fail(address);
  assert.deepEqual(race.started, order);
  const error = await race.result.catch((error) => error);
  assert.ok(error instanceof AllAddressesFailed);
  assert.deepEqual(error.errors.map(String), order.map((address) => `Error: ${address}`));
});

Deno.test("addresses: after the deadline no further address is tried", async () => {
  const race = startRace(["192.0.2.1", "192.0.2.2"]);
  race.stop.abort();
  await assert.rejects(race.result);
  await race.clock.advance(10_000);
  assert.deepEqual(race.started, ["192.0.2.1"]);
});

import assert from "node:assert/strict";
import { createResolve } from "../../src/platform/resolve.ts";
import { createHandClock, settle } from "../support/clock.ts";

/** Name servers that answer when the test tells them to, on a hand-moved clock. */
function createNameServers() {
  const clock = createHandClock();
  const asked: string[] = [];
  const answers = new Map<string, () => void>();
  const resolve = createResolve((host) => {
    asked.push(host);
    return new Promise((found) => answers.set(host, () => found(["93.184.216.34"])));
  }, clock);
  return {
    clock,
    asked,
    resolve,
    async answer(...hosts: string[]) {
      for (const host of hosts) answers.get(host)?.();
      await settle();
    },
  };
}

const names = (kind: string, count: number) =>
  Array.from({ length: count }, (_, n) => `${kind}${n}.example.com`);

Deno.test("resolve: no more than twelve new names are looked up at once; the others wait", async () => {
  const { asked, resolve, answer } = createNameServers();
  const hosts = names("a", 20);
  const all = Promise.all(hosts.map((host) => resolve(host, host)));
  await settle();
  assert.deepEqual(asked, hosts.slice(0, 12));
  await answer("a3.example.com");
  assert.deepEqual(asked, hosts.slice(0, 13));
  for (let n = 0; n < 4; n++) await answer(...hosts);
  assert.deepEqual((await all).length, 20);
});

Deno.test("resolve: new names whose servers hang do not delay names that were quick before", async () => {
  const { clock, asked, resolve, answer } = createNameServers();
  const quick = names("quick", 20);
  const first = Promise.all(quick.map((host) => resolve(host, host)));
  for (let n = 0; n < 4; n++) await answer(...quick);
  await first;
  await clock.advance(2_000);
  const hanging = names("hanging", 50);
  const never = Promise.allSettled(hanging.map((host) => resolve(host, host)));
  await settle();
  asked.length = 0;
  const again = Promise.all(quick.map((host) => resolve(host, host)));
  await settle();
  assert.deepEqual(asked, quick.slice(0, 12));
  for (let n = 0; n < 3; n++) await answer(...quick);
  assert.equal((await again).length, 20);
  for (let n = 0; n < 9; n++) await answer(...hanging);
  await never;
});

Deno.test("resolve: names that were slow use at most six slots, and leave the others theirs", async () => {
  const { clock, asked, resolve, answer } = createNameServers();
  const slow = names("slow", 9);
  const first = Promise.all(slow.map((host) => resolve(host, host)));
  await clock.advance(5_000);
  await answer(...slow);
  await first;
  await clock.advance(2_000);
  asked.length = 0;
  const again = Promise.all(slow.map((host) => resolve(host, host)));
  const others = names("quick", 6);
  const quick = Promise.all(others.map((host) => resolve(host, host)));
  await settle();
  assert.deepEqual(asked, [...slow.slice(0, 6), ...others]);
  await answer(...others, ...slow);
  await answer(...slow);
  await Promise.all([again, quick]);
});

Deno.test("resolve: names of one project that hang leave the other projects theirs", async () => {
  const { clock, asked, resolve, answer } = createNameServers();
  const hanging = names("hanging", 40);
  const never = Promise.allSettled(hanging.map((host) => resolve(host, "one")));
  const others = names("other", 9);
  const found = Promise.all(others.map((host, n) => resolve(host, `project ${n}`)));
  await settle();
  assert.deepEqual(asked, [...hanging.slice(0, 3), ...others]);
  await answer(...others);
  assert.equal((await found).length, 9);
  for (let n = 0; n < 14; n++) {
    await clock.advance(1_000);
    await answer(...hanging);
  }
  await never;
});

Deno.test("resolve: a name whose servers hang is not asked for again for ten seconds", async () => {
  const clock = createHandClock();
  let asked = 0;
  const resolve = createResolve(async () => {
    asked++;
    await clock.sleep(10_000);
    throw new Error("no answer");
  }, clock);
  const look = () => resolve("hung.example.com", "one").catch(() => "none");
  const first = Promise.all([look(), look()]);
  await clock.advance(10_001);
  assert.deepEqual(await first, ["none", "none"]);
  await clock.advance(9_000);
  assert.equal(await look(), "none");
  assert.equal(asked, 1);
  await clock.advance(2_000);
  look();
  assert.equal(asked, 2);
  await clock.advance(10_001);
});

Deno.test("resolve: a name is looked up once for concurrent callers, and again a second later", async () => {
  const { clock, asked, resolve, answer } = createNameServers();
  const waiting = [resolve("a.example.com", "a")];
  await clock.advance(3_000);
  waiting.push(resolve("a.example.com", "a"));
  await answer("a.example.com");
  waiting.push(resolve("a.example.com", "a"));
  await Promise.all(waiting);
  assert.equal(asked.length, 1);
  await clock.advance(1_001);
  const later = resolve("a.example.com", "a");
  await answer("a.example.com");
  await later;
  assert.equal(asked.length, 2);
});

Deno.test("resolve: names that were quick and then hang take a share only", async () => {
  const { clock, asked, resolve, answer } = createNameServers();
  const own = names("own", 20);
  const others = names("other", 3);
  const first = Promise.all([
    ...own.map((host) => resolve(host, "prj_1")),
    ...others.map((host) => resolve(host, host)),
  ]);
  for (let n = 0; n < 10; n++) await answer(...own, ...others);
  await first;
  await clock.advance(2_000);
  asked.length = 0;
  const hanging = Promise.all(own.map((host) => resolve(host, "prj_1")));
  await settle();
  assert.equal(asked.length, 4);
  const quick = Promise.all(others.map((host) => resolve(host, host)));
  await settle();
  assert.deepEqual(asked.slice(4), others);
  for (let n = 0; n < 10; n++) await answer(...own, ...others);
  await quick;
  await hanging;
});

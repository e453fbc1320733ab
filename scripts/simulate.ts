/**
 * `deno task simulate`: runs the whole service in simulated time, seed by seed, with crashes,
 * storms and lost alarms.
 * `--seeds N` runs that many (10,000), `--from N` starts there, `--seed N` replays one and prints
 * its last steps. Exits 1 when a promise was broken.
 */
import { parseArgs } from "node:util";
import process from "node:process";
import { prepare, runSeed, type SeedResult } from "../tests/simulation/simulation.ts";

const seedsDefault = 10_000;
/** How many seeds a worker gets at once. */
const share = 8;
/** Stops after this many broken seeds. */
const brokenMax = 10;
const tellEveryMs = 15_000;

async function main(): Promise<number> {
  const { values } = parseArgs({
    args: Deno.args,
    options: {
      seed: { type: "string" },
      seeds: { type: "string" },
      from: { type: "string" },
    },
  });
  if (values.seed !== undefined) return await replay(wholeNumber("--seed", values.seed));
  const from = wholeNumber("--from", values.from ?? "1");
  return await runAll(from, wholeNumber("--seeds", values.seeds ?? String(seedsDefault)));
}

function wholeNumber(name: string, text: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text);
  console.error(`${name} takes a whole number, not '${text}'`);
  Deno.exit(2);
}

/** Replays one seed, with its last steps. */
async function replay(seed: number): Promise<number> {
  await prepare();
  const result = await runSeed(seed);
  console.log(result.trace.join("\n"));
  const { hash, calls, crashes, entries, deliveries, posts, simulatedMs } = result;
  const minutes = Math.round(simulatedMs / 60_000);
  console.log(
    `seed ${seed}: ${calls} calls, ${crashes} crashes, ${entries} entries, ${deliveries} ` +
      `deliveries in ${posts} attempts, ${minutes} simulated minutes, trace ${hash}`,
  );
  if (result.violation) tellBroken(result);
  return result.violation ? 1 : 0;
}

/** Runs every seed from there on, on all cores. */
async function runAll(from: number, count: number): Promise<number> {
  const startedAt = performance.now();
  const sum = { seeds: 0, calls: 0, crashes: 0, entries: 0, posts: 0, rerouted: 0 };
  const broken: SeedResult[] = [];
  let next = from;
  const nextShare = () => {
    const until = broken.length < brokenMax ? Math.min(next + share, from + count) : next;
    const seeds = Array.from({ length: until - next }, (_, n) => next + n);
    next = until;
    return seeds;
  };
  const told = (result: SeedResult) => {
    sum.seeds++;
    for (const name of summed) sum[name] += result[name];
    if (!result.violation) return;
    broken.push(result);
    tellBroken(result);
  };
  const progress = setInterval(() => console.log(`${sum.seeds} seeds`), tellEveryMs);
  const cores = Math.max(1, navigator.hardwareConcurrency);
  await Promise.all(Array.from({ length: cores }, () => work(nextShare, told)));
  clearInterval(progress);
  const seconds = (performance.now() - startedAt) / 1000;
  const perMinute = Math.round((sum.seeds / seconds) * 60);
  console.log(
    `simulate: ${sum.seeds} seeds, ${broken.length} broken, in ${seconds.toFixed(0)} s ` +
      `(${perMinute} a minute): ${sum.calls} calls, ${sum.crashes} crashes, ` +
      `${sum.entries} entries, ${sum.posts} tries of deliveries, ${sum.rerouted} calls rerouted`,
  );
  return broken.length > 0 ? 1 : 0;
}

const summed = ["calls", "crashes", "entries", "posts", "rerouted"] as const;

/** One worker, from its first share to its last. */
function work(nextShare: () => number[], told: (result: SeedResult) => void): Promise<void> {
  const url = new URL("../tests/simulation/worker.ts", import.meta.url);
  const worker = new Worker(url, { type: "module" });
  return new Promise((resolve, reject) => {
    let left = 0;
    const goOn = () => {
      const seeds = nextShare();
      left = seeds.length;
      if (left > 0) return worker.postMessage({ seeds });
      worker.terminate();
      resolve();
    };
    worker.onmessage = ({ data }: MessageEvent<SeedResult>) => {
      told(data);
      if (--left === 0) goOn();
    };
    worker.onerror = (event) => {
      event.preventDefault();
      reject(new Error(event.message));
    };
    goOn();
  });
}

/** The last steps shown of a broken seed. */
const stepsShown = 25;

function tellBroken({ seed, violation, trace, hash }: SeedResult): void {
  const steps = trace.slice(-stepsShown).map((line) => `  ${line.slice(0, 200)}`);
  console.log(
    [
      `seed ${seed} broke: ${violation?.invariant}`,
      `  ${violation?.detail.slice(0, 1_500)}`,
      "its last steps, in simulated milliseconds:",
      ...steps,
      `replay it with: deno task simulate --seed ${seed}  (trace ${hash})`,
    ].join("\n"),
  );
}

if (import.meta.main) process.exit(await main());

/// <reference lib="deno.worker" />

// One core's share: runs the seeds that it is given, one after another, and reports the results.

// Not awaited here: messages sent to a worker before it listens are lost where a module waits.
const ready = import("./simulation.ts").then(async ({ prepare, runSeed }) => {
  await prepare();
  return runSeed;
});

self.onmessage = async ({ data }: MessageEvent<{ seeds: number[] }>) => {
  const runSeed = await ready;
  for (const seed of data.seeds) self.postMessage(await runSeed(seed));
};

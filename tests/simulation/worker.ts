/// <reference lib="deno.worker" />

// One core's share: runs the seeds that it is told to, one after the other, and says what came of
// each.

// Not awaited here: what is told to a worker before it listens is lost where a module waits.
const ready = import("./simulation.ts").then(async ({ prepare, runSeed }) => {
  await prepare();
  return runSeed;
});

self.onmessage = async ({ data }: MessageEvent<{ seeds: number[] }>) => {
  const runSeed = await ready;
  for (const seed of data.seeds) self.postMessage(await runSeed(seed));
};

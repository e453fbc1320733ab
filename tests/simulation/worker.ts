/// <reference lib="deno.worker" />
import { prepare, runSeed } from "./simulation.ts";

// One core's share: runs the seeds that it is told to, one after the other, and says what came of each.

const ready = prepare();

self.onmessage = async ({ data }: MessageEvent<{ seeds: number[] }>) => {
  await ready;
  for (const seed of data.seeds) self.postMessage(await runSeed(seed));
};

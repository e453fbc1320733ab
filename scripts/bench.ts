// `deno task bench [part…] [--long] [--json file]`: measures the figures of BENCHMARKS.md.
// `deno task bench chat --against DIR…`: compares this checkout with others, the first as baseline.
import { describeMachine, type Figure } from "./bench/figures.ts";
import { benchAbuse } from "./bench/abuse.ts";
import { benchMediaAbuse } from "./bench/abuse_media.ts";
import { benchChat } from "./bench/chat.ts";
import { benchFleet } from "./bench/fleet.ts";
import { benchFormats } from "./bench/formats.ts";
import { benchGrowth } from "./bench/growth.ts";
import { benchLatency } from "./bench/latency.ts";
import { benchLogs } from "./bench/logs.ts";
import { benchMemory } from "./bench/memory.ts";
import { benchMetrics } from "./bench/metrics.ts";
import { benchMoney } from "./bench/money.ts";
import { benchPages } from "./bench/pages.ts";
import { benchPeers } from "./bench/peers.ts";
import { benchOutages } from "./bench/outages.ts";
import { benchRemoval } from "./bench/removal.ts";
import { benchStreams } from "./bench/streams.ts";
import { benchVerify } from "./bench/verify.ts";
import { benchWebhooks } from "./bench/webhooks.ts";

const parts: Record<string, (long: boolean, checkouts: readonly string[]) => Promise<Figure[]>> = {
  chat: benchChat,
  peers: benchPeers,
  latency: benchLatency,
  streams: benchStreams,
  money: benchMoney,
  growth: benchGrowth,
  verify: benchVerify,
  memory: benchMemory,
  removal: benchRemoval,
  webhooks: benchWebhooks,
  logs: benchLogs,
  formats: benchFormats,
  metrics: benchMetrics,
  abuse: async () => [...await benchAbuse(), ...await benchMediaAbuse()],
  outages: benchOutages,
  fleet: benchFleet,
  pages: benchPages,
};

const long = Deno.args.includes("--long");
const jsonAt = Deno.args.indexOf("--json");
const againstAt = Deno.args.indexOf("--against");
const checkouts = againstAt < 0 ? [] : Deno.args.slice(againstAt + 1);
const chosen = Deno.args.filter((arg) => Object.hasOwn(parts, arg));
console.log(describeMachine());
const figures: Figure[] = [];
for (const [name, bench] of Object.entries(parts)) {
  if (chosen.length > 0 && !chosen.includes(name)) continue;
  console.log(`\n${name}`);
  figures.push(...await bench(long, checkouts));
}
if (jsonAt >= 0) {
  const report = { machine: describeMachine(), figures };
  await Deno.writeTextFile(Deno.args[jsonAt + 1] ?? "bench.json", JSON.stringify(report, null, 2));
}

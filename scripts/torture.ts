// `deno task torture [--seconds 300] [--seed N]`: kills a real service at random moments under a
// load of everything. Prints what came of it; exits 1 when anything was lost, doubled or wrong.
// `--store URL --services 2`: so many services on one PostgreSQL database, or on one KV Connect
// server, such as denokv, whose token is in DENO_KV_ACCESS_TOKEN.
// `--store - < FILE`: a URL with a password, which is no argument.
// `--store postgres`: on a PostgreSQL server of its own, which crashes now and then as well.
// `--store standby`: on one with a synchronous standby, which takes its place at its first crash.
import { parseArgs } from "node:util";
import { readSecret } from "./farebox/input.ts";
import { crashing, failingOver } from "../tests/support/postgres_faults.ts";
import { torture } from "../tests/support/torture.ts";

const { values } = parseArgs({
  args: Deno.args,
  options: {
    seconds: { type: "string", default: "300" },
    seed: { type: "string", default: String(Date.now()) },
    services: { type: "string", default: "1" },
    store: { type: "string" },
  },
});
const [seconds, seed] = [Number(values.seconds), Number(values.seed)];
const services = Number(values.services);
if (!(seconds > 0) || !Number.isInteger(seed)) {
  console.error("--seconds must be a number greater than zero, and --seed a whole number");
  Deno.exit(1);
}
if (!(Number.isInteger(services) && services >= 1) || (services > 1 && !values.store)) {
  console.error("--services must be 1, or more with --store: a file is for one service");
  Deno.exit(1);
}
if (/:.*:.*@/.test(values.store ?? "")) {
  console.error("--store has a password, which others can read: use --store - < FILE");
  Deno.exit(1);
}
const named = values.store === "-" ? await readSecret("--store -") : values.store;
await using own = named === "postgres"
  ? await crashing()
  : named === "standby"
  ? await failingOver()
  : null;
console.log(`torture for ${seconds} s, with seed ${seed}`);
const outcome = await torture({
  seconds,
  seed,
  lifeMaxMs: 8_000,
  store: own?.url ?? named,
  crashStore: own?.crash,
  services,
  onKill(kills, { operations, acknowledged, faults }) {
    if (kills % 10 > 0) return;
    console.log(
      `${kills} kills, ${operations} operations, ${acknowledged.size} acknowledged, ${faults.length} faults`,
    );
  },
});
console.log(JSON.stringify(outcome, null, 2));
const { lost, duplicates, eventsLost, faults } = outcome;
const isWell = lost + duplicates + eventsLost + faults.length === 0;
console.log(isWell ? "Nothing was lost, nothing was booked twice, everything holds." : "FAILED");
Deno.exit(isWell ? 0 : 1);

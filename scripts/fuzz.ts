/**
 * `deno task fuzz`: sends spoiled requests to the whole service, which must answer each without a
 * fault of its own. `--bodies N` sends that many (100,000), `--seed N` chooses which ones, and
 * `--from N --bodies 1` replays one. Exits 1 when something was found.
 */
import { parseArgs } from "node:util";
import { fuzz } from "../tests/fuzz/fuzz.ts";

const { values } = parseArgs({
  args: Deno.args,
  options: {
    seed: { type: "string", default: "1" },
    bodies: { type: "string", default: "100000" },
    from: { type: "string", default: "0" },
  },
});

function wholeNumber(name: string, text: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text);
  console.error(`${name} takes a whole number, not '${text}'`);
  Deno.exit(2);
}

const seed = wholeNumber("--seed", values.seed);
const bodies = wholeNumber("--bodies", values.bodies);
const from = wholeNumber("--from", values.from);
const shownChars = bodies === 1 ? Infinity : 3_000;
let unhandled = 0;
addEventListener("unhandledrejection", (event) => {
  event.preventDefault();
  unhandled++;
  console.log(`unhandled rejection: ${event.reason?.stack ?? event.reason}`);
});
const startedAt = performance.now();
const findings = await fuzz({
  seed,
  bodies,
  from,
  tell: ({ at, what, request }) =>
    console.log(`--seed ${seed} --from ${at}: ${what}\n  ${request.slice(0, shownChars)}\n`),
  progress(sent) {
    const seconds = Math.round((performance.now() - startedAt) / 1000);
    console.log(`${sent} bodies, ${seconds} s`);
  },
});
console.log(`seed ${seed}: ${bodies} bodies, ${findings.length} findings`);
Deno.exit(findings.length + unhandled > 0 ? 1 : 0);

import { basename, resolve } from "node:path";
import { chatLoad, startPaid, warmUpSeconds } from "./paid.ts";
import { type Figure, median, show } from "./figures.ts";
import { processorTicks, runLoad, startProcess } from "./processes.ts";
import { makeFolder } from "./service.ts";

const turns = 7;
const microsOfTick = 10_000;

/** A checkout's service, and what each turn has measured. */
interface Arm {
  name: string;
  service: Awaited<ReturnType<typeof startPaid>>;
  /** Processor time of a chat, in µs. */
  micros: number[];
  perSecond: number[];
}

/**
 * Measures the services of other checkouts and of this one in turns, under the same load. The first
 * is the baseline, to which all are compared. Of processor times the least counts, of ratios of
 * throughput the median of the turns.
 */
export async function benchAgainst(checkouts: readonly string[]): Promise<Figure[]> {
  await using upstream = await startProcess("upstream.ts");
  await using stack = new AsyncDisposableStack();
  const arms: Arm[] = [];
  for (const root of [...checkouts.map((path) => `${resolve(path)}/`), undefined]) {
    const folder = stack.use(makeFolder());
    const service = stack.use(await startPaid(upstream.port, folder.path, 500, {}, root));
    const name = root ? basename(root) : "this checkout";
    arms.push({ name, service, micros: [], perSecond: [] });
  }
  const figures: Figure[] = [];
  for (const users of [500, 1]) {
    await measure(arms, users);
    figures.push(...figuresOf(arms, users === 1 ? "one user" : `${users} users`));
  }
  figures.forEach(show);
  return figures;
}

async function measure(arms: readonly Arm[], users: number): Promise<void> {
  for (const arm of arms) {
    arm.micros = [];
    arm.perSecond = [];
    await runLoad(chatLoad(arm.service, { users, seconds: warmUpSeconds }));
  }
  for (let turn = 0; turn < turns; turn++) {
    for (const { service, micros, perSecond } of arms) {
      const before = processorTicks(service.pid);
      const loaded = await runLoad(chatLoad(service, { users }));
      micros.push((processorTicks(service.pid) - before) * microsOfTick / loaded.requests);
      perSecond.push(loaded.perSecond);
    }
  }
}

function figuresOf(arms: readonly Arm[], load: string): Figure[] {
  const [first] = arms;
  if (!first) throw new Error("at least one was measured");
  return arms.flatMap(({ name, micros, perSecond }) => {
    const least = Math.min(...micros);
    const rates = perSecond.map((rate, turn) => rate / (first.perSecond[turn] ?? NaN));
    const ofFirst = least / Math.min(...first.micros);
    return [
      { name: `${name}, ${load}: processor time of a chat`, value: least, unit: "µs" },
      { name: `${name}, ${load}: that, of ${first.name}`, value: ofFirst, unit: "" },
      { name: `${name}, ${load}: chats, of ${first.name}`, value: median(rates), unit: "" },
    ];
  });
}

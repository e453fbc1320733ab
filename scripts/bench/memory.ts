import { chatLoad, startPaid, warmUpSeconds } from "./paid.ts";
import { type Figure, show } from "./figures.ts";
import { runLoad, startProcess } from "./processes.ts";
import { makeFolder } from "./service.ts";

const chatsMin = 300_000;
const chatsMinLong = 1_000_000;
const turnSeconds = 10;
const readEveryMs = 500;
/** The first part is not compared: memory may still be growing in it. */
const parts = 5;

/** Measures a service's memory over very many chats: anything kept for each would show. */
export async function benchMemory(long: boolean): Promise<Figure[]> {
  await using upstream = await startProcess("upstream.ts");
  using folder = makeFolder();
  await using service = await startPaid(upstream.port, folder.path);
  await runLoad(chatLoad(service, { seconds: warmUpSeconds }));
  const readings: number[] = [];
  const watch = setInterval(() => readings.push(service.rssMiB()), readEveryMs);
  let chats = 0;
  while (chats < (long ? chatsMinLong : chatsMin)) {
    chats += (await runLoad(chatLoad(service, { seconds: turnSeconds }))).requests;
  }
  clearInterval(watch);
  const meanOf = (part: number) => {
    const share = readings.length / parts;
    const own = readings.slice(Math.round(part * share), Math.round((part + 1) * share));
    return own.reduce((sum, mib) => sum + mib, 0) / own.length;
  };
  const ratio = meanOf(parts - 1) / meanOf(1);
  const hot = readings.slice(Math.round(readings.length / parts));
  const figures: Figure[] = [
    {
      name: `memory over ${chats} chats, least once it is hot`,
      value: Math.min(...hot),
      unit: "MiB",
    },
    { name: "most", value: Math.max(...hot), unit: "MiB" },
    { name: "its last fifth", value: meanOf(parts - 1), unit: "MiB" },
    {
      name: "the last fifth against the second",
      value: ratio,
      unit: "times",
      bar: "at most 1.1",
      ok: ratio <= 1.1,
    },
  ];
  figures.forEach(show);
  return figures;
}

import { chatLoad, startPaid } from "./paid.ts";
import { type Figure, median, show } from "./figures.ts";
import {
  type Load,
  type ModelCallKind,
  processorTicks,
  runLoad,
  startProcess,
} from "./processes.ts";
import { makeFolder } from "./service.ts";

const turns = 7;
const kinds: readonly { kind: ModelCallKind; path: string; most: number }[] = [
  { kind: "chat", path: "/v1/chat/completions", most: Infinity },
  { kind: "responses", path: "/v1/responses", most: 1.15 },
  { kind: "messages", path: "/v1/messages", most: 1.15 },
  { kind: "embeddings", path: "/v1/embeddings", most: 1 },
];

/** Measures the processor time of a call in each format, against a chat's in the same turn. */
export async function benchFormats(): Promise<Figure[]> {
  await using upstream = await startProcess("upstream.ts");
  using folder = makeFolder();
  await using service = await startPaid(upstream.port, folder.path);
  const loadOf = ({ kind, path }: typeof kinds[number], seconds: number): Load => ({
    ...chatLoad(service, { seconds }),
    kind,
    path,
  });
  for (const kind of kinds) await runLoad(loadOf(kind, 6));
  const ratios = kinds.map((): number[] => []);
  for (let turn = 0; turn < turns; turn++) {
    const spent: number[] = [];
    for (const kind of kinds) {
      const before = processorTicks(service.pid);
      const { requests } = await runLoad(loadOf(kind, 3));
      spent.push((processorTicks(service.pid) - before) / requests);
    }
    for (const [at, each] of spent.entries()) ratios[at]?.push(each / (spent[0] ?? NaN));
  }
  const figures = kinds.flatMap(({ kind, most }, at): Figure[] => {
    if (most === Infinity) return [];
    const value = median(ratios[at] ?? []);
    const bar = `at most ${most}`;
    return [{
      name: `${kind}: processor time, of a chat's`,
      value,
      unit: "",
      bar,
      ok: value <= most,
    }];
  });
  figures.forEach(show);
  return figures;
}

import { createIds } from "../../src/base/ids.ts";
import { eventKey } from "../../src/store/keys.ts";
import { denoKv } from "../../src/platform/deno_kv.ts";
import { emptyWrite } from "../../src/store/kv.ts";
import { afterAttempt, newDelivery } from "../../src/webhooks/delivery/delivery.ts";
import { putDelivery } from "../../src/webhooks/delivery/delivery_rows.ts";
import { type Figure, median, show } from "./figures.ts";
import { makeFolder, type Service, startService } from "./service.ts";

const perWrite = 60;
const policy = { attemptsMax: 8, backoffBaseMs: 30_000 };
const types = ["balance.deposit.created", "usage.charge.created", "proxy.request.started"];

/** Writes ended deliveries of a project, in the form that the service writes. */
async function fill(path: string, projectId: string, count: number): Promise<void> {
  const store = await Deno.openKv(path);
  const kv = denoKv(store);
  const id = createIds(Date.now, Math.random);
  for (let made = 0; made < count; made += perWrite) {
    const write = emptyWrite();
    for (let n = made; n < Math.min(count, made + perWrite); n++) {
      const named = {
        id: id("dly"),
        projectId,
        subscriptionId: `sub_0000000000000000000000000${n % 3}`,
        eventId: id("evt"),
        eventType: types[n % 3] ?? "",
        eventVersion: "1.0",
      };
      const responseCode = n % 10 === 0 ? 404 : 200;
      const error = responseCode === 200 ? null : "status 404";
      const ended = afterAttempt(
        newDelivery(named, Date.now()),
        { at: Date.now(), latencyMs: 3, responseCode, error, retryAfterMs: null, bodyHead: "" },
        { policy, random: 0.5 },
      );
      putDelivery(write, null, ended);
      const event = { id: named.eventId, type: named.eventType, version: "1.0", data: {} };
      const value = new TextEncoder().encode(JSON.stringify(event));
      write.sets.push({ key: eventKey(projectId, named.eventId), value });
    }
    await kv.atomic(write);
  }
  kv.close();
}

const queries = [
  "",
  "?status=error",
  "?eventType=usage.charge.created&status=success",
  "?subscriptionId=sub_00000000000000000000000001&limit=100",
];

/** Starts a service with this many entries in its log. */
async function filled(folder: string, count: number): Promise<Service> {
  let before: { projectId: string; key: string };
  {
    await using service = await startService({}, folder);
    before = { projectId: service.projectId, key: service.key };
  }
  await fill(`${folder}/bench.kv`, before.projectId, count);
  return Object.assign(await startService({}, folder), before);
}

const rounds = 200;
const warmUp = 40;

/** Measures pages of the log with few entries and with many, in turns. */
export async function benchLogs(long: boolean): Promise<Figure[]> {
  const many = long ? 1_000_000 : 50_000;
  using fewFolder = makeFolder();
  using manyFolder = makeFolder();
  await using small = await filled(fewFolder.path, 1_000);
  await using large = await filled(manyFolder.path, many);
  const times = new Map<Service, number[]>([[small, []], [large, []]]);
  for (let round = 0; round < rounds; round++) {
    for (const query of queries) {
      for (const [service, taken] of times) {
        const startedAt = performance.now();
        await service.json(`/v1/webhooks/logs${query}`);
        if (round >= warmUp) taken.push(performance.now() - startedAt);
      }
    }
  }
  const [few = NaN, lots = NaN] = [...times.values()].map(median);
  const figures: Figure[] = [
    { name: "a page of the log with 1,000 entries", value: few, unit: "ms" },
    { name: `a page of the log with ${many} entries`, value: lots, unit: "ms" },
    {
      name: "their ratio",
      value: lots / few,
      unit: "times",
      bar: "at most 1.3",
      ok: lots / few <= 1.3,
    },
  ];
  figures.forEach(show);
  return figures;
}

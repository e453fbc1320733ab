import { fromBytes, toBytes } from "../../src/base/json.ts";
import type { RequestUpstream } from "../../src/deps.ts";
import type { KeptRow } from "../../src/inference/kept/kept_responses.ts";
import type { Entry, EntryUsage } from "../../src/ledger/entry.ts";
import type { Write } from "../../src/store/kv.ts";
import { type Defect, writing } from "./defect_seams.ts";
import { routedUpstreams } from "./routed_upstreams.ts";

/** The write, with the usage of its entries changed. */
function withUsage(write: Write, change: (usage: EntryUsage) => EntryUsage): Write {
  const sets = write.sets.map(({ key, value }) => {
    if (key[0] !== "entry") return { key, value };
    const entry = fromBytes<Entry>(value);
    return { key, value: entry.usage ? toBytes({ ...entry, usage: change(entry.usage) }) : value };
  });
  return { ...write, sets };
}

/** Sends what one upstream is asked to another one as well. */
function askTwo(send: RequestUpstream): RequestUpstream {
  const { main, spare } = routedUpstreams;
  return async (request) => {
    if (!main || !spare || !request.url.includes(main.host)) return await send(request);
    const answering = send(request);
    const url = request.url.replace(main.host, spare.host);
    send({ ...request, url, onSend: undefined }).then(({ body }) => body.cancel(), () => {});
    return await answering;
  };
}

/** The write, without the upstream that keeps a response. */
function withoutKeeper(write: Write): Write {
  const sets = write.sets.map(({ key, value }) => {
    if (key[0] !== "kept_id") return { key, value };
    const { upstream: _, ...row } = fromBytes<KeptRow>(value);
    return { key, value: toBytes(row) };
  });
  return { ...write, sets };
}

/** Defects in how calls are sent to several upstreams. */
export const routeDefects: readonly Defect[] = [
  {
    name: "two upstreams are asked at once",
    seams: { deps: (deps) => ({ ...deps, requestUpstream: askTwo(deps.requestUpstream) }) },
    seedsMax: 5,
  },
  {
    name: "what an upstream costs is recorded without the attempts that failed",
    seams: writing((write) =>
      withUsage(write, (usage) => usage.attempts ? { ...usage, upstreamCost: "0" } : usage)
    ),
    seedsMax: 10,
  },
  {
    name: "an entry names an upstream that has not answered",
    seams: writing((write) =>
      withUsage(write, (usage) => usage.attempts ? { ...usage, upstream: "main" } : usage)
    ),
    seedsMax: 40,
  },
  {
    name: "a continued response forgets where it is kept",
    seams: writing(withoutKeeper),
    seedsMax: 100,
  },
];

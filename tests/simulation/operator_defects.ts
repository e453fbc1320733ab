import { tokenCounts } from "../../src/base/token_classes.ts";
import { createCatalogue } from "../../src/pricing/catalogue.ts";
import { costOfUse, useOfTokens } from "../../src/pricing/price.ts";
import { createPrices } from "../../src/pricing/terms.ts";
import { fromBytes, toBytes } from "../../src/base/json.ts";
import { zero } from "../../src/base/money.ts";
import type { Event } from "../../src/events/event.ts";
import type { Project } from "../../src/projects/schema.ts";
import type { Key, Row, Write } from "../../src/store/kv.ts";
import type { RedeliveryJob } from "../../src/webhooks/schema.ts";
import { accountTx, type Defect, lacks, listing, writing } from "./defect_seams.ts";

/** A project as it was before it was archived. */
function reopened(row: Row): Row {
  if (row.key[0] !== "project" || !row.value) return row;
  const project = fromBytes<Project>(row.value);
  return { ...row, value: toBytes({ ...project, status: "active" }) };
}

const isJob = ([name]: Key) => name === "redelivery_job";

/** A redelivery's row, as if nothing were left to do. */
function asDone({ key, value }: Write["sets"][number]) {
  if (!isJob(key)) return { key, value };
  return { key, value: toBytes({ ...fromBytes<RedeliveryJob>(value), status: "done" }) };
}

function withoutEventsOf(type: string, write: Write): Write {
  const left = write.sets.filter(({ key, value }) =>
    key[0] === "event" && fromBytes<Event>(value).type === type
  ).map(({ key }) => key[2]);
  const sets = write.sets.filter(({ key }) =>
    !(key[0] === "event" && left.includes(key[2])) &&
    !(key[0] === "outbox" && left.includes(key[1]))
  );
  return { ...write, sets };
}

const prices = createPrices(createCatalogue(), null);

/** Defects in what operators do while the service runs. */
export const operatorDefects: readonly Defect[] = [
  {
    name: "a response is charged by the prices at its end",
    install: accountTx("debit", (inner) =>
      function (amount, entry, origin) {
        const { project } = this.snapshot;
        const terms = entry.usage && prices.terms(project, entry.usage.model, this.now);
        if (!entry.usage || !terms) return inner.call(this, amount, entry, origin);
        const { uncachedInputTokens, outputTokens } = entry.usage;
        const counts = tokenCounts({ uncachedInput: uncachedInputTokens, output: outputTokens });
        const cost = costOfUse(terms.price, useOfTokens(counts));
        return inner.call(this, cost, entry, origin);
      }),
    seedsMax: 10,
  },
  {
    name: "an archived project is not refused",
    seams: {
      kv: (kv) => ({
        ...kv,
        get: (key) => kv.get(key).then(reopened),
        getMany: (keys) => kv.getMany(keys).then((rows) => rows.map(reopened)),
      }),
    },
    seedsMax: 10,
  },
  {
    name: "responses that end after the archiving cost nothing",
    install: accountTx("debit", (inner) =>
      function (amount, entry, origin) {
        const isOver = entry.kind === "usage" && this.snapshot.project.status === "archived";
        return inner.call(this, isOver ? zero : amount, entry, origin);
      }),
    seedsMax: 40,
  },
  {
    name: "archiving emits no event",
    seams: writing((write) => withoutEventsOf("archived", write)),
    seedsMax: 120,
  },
  {
    name: "redeliveries in progress are not continued",
    seams: listing((options, kv) => isJob(options.prefix) ? Promise.resolve([]) : kv.list(options)),
    seedsMax: 90,
  },
  {
    name: "a redelivery ends before it has started",
    seams: writing((write) => ({ ...write, sets: write.sets.map(asDone) })),
    seedsMax: 40,
  },
  {
    name: "a redelivered delivery is pending, and never due",
    seams: writing((write) =>
      write.sets.some(({ key }) => isJob(key)) ? lacks(write, "due") : write
    ),
    seedsMax: 40,
  },
];

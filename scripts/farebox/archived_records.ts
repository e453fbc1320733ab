import type { JsonObject } from "../../src/base/json.ts";
import { isRange, parseMoment } from "../../src/base/moment.ts";
import { activityRecord } from "../../src/ledger/api/view.ts";
import { refused, usage } from "./failure.ts";
import { openSealed, type SealedEntry } from "./sealed_file.ts";

/** A record of an export, and its JSON text. */
export interface Exported {
  line: string;
  record: JsonObject;
}

/** The entries of sealed files, in order of their ids. */
interface ArchivedRecords {
  /** Returns those before an id that were not returned yet; some of the rest for null. */
  before(id: string | null): Promise<Exported[]>;
  /** Returns the one with that id, in whose place the database has another; null without one. */
  at(id: string): Promise<Exported[] | null>;
}

const recordsTogether = 500;

/** Opens sealed files of a project for an export. Throws `Failure` for a file of another one. */
export async function openArchive(
  files: readonly string[],
  { project, from, to }: { project: string; from?: string | undefined; to?: string | undefined },
): Promise<ArchivedRecords> {
  // Without files, only the service reads the times.
  const timeIn = (text: string | undefined, option: string) =>
    files.length === 0 ? null : timeOf(text, option);
  const [start, end] = [timeIn(from, "--from") ?? -Infinity, timeIn(to, "--to") ?? Infinity];
  if (!isRange({ from: start, to: end })) throw usage("--from must be before --to.");
  const sources = await Promise.all(files.map(async (file) => {
    const { head, entries } = await openSealed(file);
    if (head.project !== project) throw refused(`${file} is of another project: ${head.project}.`);
    return { currency: head.currency, entries };
  }));
  const merged = merge(sources.map(({ entries }) => entries));
  const currency = sources[0]?.currency ?? "";
  let next = await merged.next();

  async function take(): Promise<Exported[]> {
    if (next.done) return [];
    const { entry } = next.value;
    next = await merged.next();
    if (entry.createdAt < start || entry.createdAt >= end) return [];
    const record = { ...activityRecord(entry, currency), wallet: null };
    return [{ line: JSON.stringify(record), record }];
  }

  return {
    async before(id) {
      const found: Exported[] = [];
      while (!next.done && (id === null || next.value.entry.id < id)) {
        found.push(...await take());
        if (id === null && found.length >= recordsTogether) break;
      }
      return found;
    },
    at: async (id) => !next.done && next.value.entry.id === id ? await take() : null,
  };
}

/** Merges entries in order of their ids; of two with the same id, those of a later file count. */
async function* merge(sources: AsyncGenerator<SealedEntry>[]): AsyncGenerator<SealedEntry> {
  const heads = await Promise.all(sources.map((source) => source.next()));
  for (;;) {
    let first: SealedEntry | null = null;
    for (const head of heads) {
      if (!head.done && (first === null || head.value.entry.id <= first.entry.id)) {
        first = head.value;
      }
    }
    if (first === null) return;
    yield first;
    for (const [at, head] of heads.entries()) {
      if (head.done || head.value.entry.id !== first.entry.id) continue;
      heads[at] = await sources[at]?.next() ?? head;
    }
  }
}

function timeOf(text: string | undefined, option: string): number | null {
  if (text === undefined) return null;
  const time = parseMoment(text);
  if (time === null) throw usage(`${option} must be an ISO 8601 time, or a date (UTC).`);
  return time;
}

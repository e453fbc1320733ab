import { createHash } from "node:crypto";
import { fromBytes, toBytes } from "../../src/base/json.ts";
import { isLarge, sameBytes } from "../../src/store/batch.ts";
import { encodeKey } from "../../src/store/key_bytes.ts";
import {
  commitMarkersPrefix,
  copyKey,
  leasesPrefix,
  processesPrefix,
  projectKey,
  sealedWithKey,
} from "../../src/store/keys.ts";
import { emptyWrite, type Key, type Kv, type Row, type Write } from "../../src/store/kv.ts";
import { markWithMore } from "../../src/store/sealed_with.ts";
import { refused } from "./failure.ts";
import type { ProjectRows } from "./project_rows.ts";

/** How far a copy has come, as the target has it until the copy is complete. */
interface CopyProgress {
  /** The source, without a password. */
  from: string;
  /** The last key that was copied; null before the first. */
  after: Key | null;
  rows: number;
}

/** The stores of a copy, and what of the source is copied. */
interface CopyOptions {
  source: Kv;
  target: Kv;
  /** The source, without a password. */
  from: string;
  /** Only the rows of one project; the target may have other ones then. */
  project?: ProjectRows;
}

/** What was copied and compared. */
interface Copied {
  rows: number;
  /** SHA-256 of all keys and values, in the order of their keys. */
  checksum: string;
}

const rowsPerPage = 500;

// What belongs to a process and not to the data: markers of its commits, its row, its leases.
const ofProcesses = [commitMarkersPrefix, processesPrefix, leasesPrefix, copyKey]
  .map((prefix) => prefix[0]);
const isCopied = ({ key }: Row) => !ofProcesses.includes(key[0]);

/**
 * Copies all rows, and then compares them. An interrupted copy is continued. Throws an error for
 * people when the target has data of its own, or differs at the end.
 */
export async function copyRows(
  { source, target, from, project }: CopyOptions,
  onProgress: (what: "copied" | "compared", rows: number) => void,
): Promise<Copied> {
  const isWanted = (row: Row) => isCopied(row) && (project?.owns(row) ?? true);
  const progress = await startOrContinue({ source, target, from, project });
  for await (const rows of pagesOf(source, { after: progress.after, isWanted })) {
    for (const write of writesOf(rows)) {
      progress.rows += write.sets.length;
      progress.after = write.sets.at(-1)?.key ?? progress.after;
      write.sets.push({ key: copyKey, value: toBytes(progress) });
      await target.atomic(write);
    }
    onProgress("copied", progress.rows);
  }
  const compared = (rows: number) => onProgress("compared", rows);
  const copied = await compare({ source, target, isWanted }, compared);
  await target.atomic({ ...emptyWrite(), deletes: [copyKey] });
  return copied;
}

async function startOrContinue(
  { source, target, from, project }:
    & Pick<CopyOptions, "source" | "target" | "from">
    & { project: ProjectRows | undefined },
): Promise<CopyProgress> {
  const name = project ? `${project.id} of ${from}` : from;
  const { value } = await target.get(copyKey);
  if (value) {
    const known = fromBytes<CopyProgress>(value);
    if (known.from === name) return known;
    throw refused(
      `The target has an unfinished copy of ${known.from}. Continue that, or empty it.`,
    );
  }
  if (project) {
    if ((await target.get(projectKey(project.id))).value) {
      throw refused(`The target has the project ${project.id} already. Nothing was changed.`);
    }
  } else {
    const rows = await target.list({ prefix: [], limit: rowsPerPage });
    if (rows.some(isCopied)) {
      throw refused("The target is not empty: a copy needs a new database. Nothing was changed.");
    }
  }
  const progress = { from: name, after: null, rows: 0 };
  await target.atomic({
    ...emptyWrite(),
    sets: [
      { key: copyKey, value: toBytes(progress) },
      ...(project ? await markOfKeys(source, target) : []),
    ],
  });
  return progress;
}

/** Secrets of the project may be encrypted with other keys than those of the target. */
async function markOfKeys(source: Kv, target: Kv): Promise<Write["sets"]> {
  const [more, mark] = await Promise.all([source.get(sealedWithKey), target.get(sealedWithKey)]);
  const value = markWithMore(mark.value, more.value);
  return value ? [{ key: sealedWithKey, value }] : [];
}

/** All wanted rows after a key, page by page, in the order of their keys. */
async function* pagesOf(
  kv: Kv,
  { after, isWanted }: { after: Key | null; isWanted: (row: Row) => boolean },
): AsyncGenerator<Row[]> {
  for (let last = after;;) {
    const start: { start?: Key } = last ? { start: last } : {};
    const rows = await kv.list({ prefix: [], ...start, limit: rowsPerPage });
    const next = rows.at(-1)?.key;
    const isSame = (row: Row) => last !== null && encodeKey(row.key) === encodeKey(last);
    yield rows.filter((row) => isWanted(row) && !isSame(row));
    if (!next || rows.length < rowsPerPage) return;
    last = next;
  }
}

/** Splits rows into writes that every store takes. */
function* writesOf(rows: readonly Row[]): Generator<Write> {
  let write = emptyWrite();
  for (const { key, value } of rows) {
    if (value) write.sets.push({ key, value });
    if (!isLarge(write)) continue;
    yield write;
    write = emptyWrite();
  }
  if (write.sets.length > 0) yield write;
}

async function compare(
  { source, target, isWanted }: {
    source: Kv;
    target: Kv;
    isWanted: (row: Row) => boolean;
  },
  onProgress: (rows: number) => void,
): Promise<Copied> {
  const hash = createHash("sha256");
  const others = rowsOf(target, isWanted);
  let rows = 0;
  for await (const row of rowsOf(source, isWanted)) {
    const { value: other } = await others.next();
    const key = encodeKey(row.key);
    if (!other || encodeKey(other.key) !== key || !isSameValue(row, other)) {
      throw refused(`The copy differs at ${JSON.stringify(row.key)}. Empty the target, and retry.`);
    }
    hash.update(key, "latin1").update(row.value ?? new Uint8Array());
    if (++rows % rowsPerPage === 0) onProgress(rows);
  }
  const { value: more } = await others.next();
  if (more) throw refused(`The target has a row more: ${JSON.stringify(more.key)}.`);
  return { rows, checksum: hash.digest("hex") };
}

async function* rowsOf(
  kv: Kv,
  isWanted: (row: Row) => boolean,
): AsyncGenerator<Row, undefined> {
  for await (const rows of pagesOf(kv, { after: null, isWanted })) yield* rows;
}

function isSameValue({ value: one }: Row, { value: other }: Row): boolean {
  return one !== null && other !== null && sameBytes(one, other);
}

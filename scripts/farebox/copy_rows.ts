import { createHash } from "node:crypto";
import { fromBytes, toBytes } from "../../src/base/json.ts";
import { isLarge, sameBytes } from "../../src/store/batch.ts";
import { encodeKey } from "../../src/store/key_bytes.ts";
import {
  commitMarkersPrefix,
  copyKey,
  leasesPrefix,
  processesPrefix,
} from "../../src/store/keys.ts";
import { emptyWrite, type Key, type Kv, type Row, type Write } from "../../src/store/kv.ts";
import { refused } from "./failure.ts";

/** How far a copy has come, as the target has it until the copy is complete. */
interface CopyProgress {
  /** The source, without a password. */
  from: string;
  /** The last key that was copied; null before the first. */
  after: Key | null;
  rows: number;
}

/** What was copied and compared. */
export interface Copied {
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
  { source, target, from }: { source: Kv; target: Kv; from: string },
  onProgress: (what: "copied" | "compared", rows: number) => void,
): Promise<Copied> {
  const progress = await startOrContinue(target, from);
  for await (const rows of pagesOf(source, progress.after)) {
    for (const write of writesOf(rows)) {
      progress.rows += write.sets.length;
      progress.after = write.sets.at(-1)?.key ?? progress.after;
      write.sets.push({ key: copyKey, value: toBytes(progress) });
      await target.atomic(write);
    }
    onProgress("copied", progress.rows);
  }
  const copied = await compare(source, target, (rows) => onProgress("compared", rows));
  await target.atomic({ ...emptyWrite(), deletes: [copyKey] });
  return copied;
}

async function startOrContinue(target: Kv, from: string): Promise<CopyProgress> {
  const { value } = await target.get(copyKey);
  if (value) {
    const known = fromBytes<CopyProgress>(value);
    if (known.from === from) return known;
    throw refused(
      `The target has an unfinished copy of ${known.from}. Continue that, or empty it.`,
    );
  }
  const rows = await target.list({ prefix: [], limit: rowsPerPage });
  if (rows.some(isCopied)) {
    throw refused("The target is not empty: a copy needs a new database. Nothing was changed.");
  }
  const progress = { from, after: null, rows: 0 };
  await target.atomic({
    ...emptyWrite(),
    sets: [{ key: copyKey, value: toBytes(progress) }],
  });
  return progress;
}

/** All rows after a key, page by page, in the order of their keys. */
async function* pagesOf(kv: Kv, after: Key | null): AsyncGenerator<Row[]> {
  for (;;) {
    const start = after ? { start: after } : {};
    const rows = await kv.list({ prefix: [], ...start, limit: rowsPerPage });
    const last = rows.at(-1)?.key;
    const isSame = (row: Row) => after !== null && encodeKey(row.key) === encodeKey(after);
    yield rows.filter((row) => isCopied(row) && !isSame(row));
    if (!last || rows.length < rowsPerPage) return;
    after = last;
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
  source: Kv,
  target: Kv,
  onProgress: (rows: number) => void,
): Promise<Copied> {
  const hash = createHash("sha256");
  const others = rowsOf(target);
  let rows = 0;
  for await (const row of rowsOf(source)) {
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

async function* rowsOf(kv: Kv): AsyncGenerator<Row, undefined> {
  for await (const rows of pagesOf(kv, null)) yield* rows;
}

function isSameValue({ value: one }: Row, { value: other }: Row): boolean {
  return one !== null && other !== null && sameBytes(one, other);
}

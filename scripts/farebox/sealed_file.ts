import { createHash } from "node:crypto";
import { entryKinds } from "../../src/base/entry_kinds.ts";
import { fromBytes, isObject, type JsonObject, parseJson } from "../../src/base/json.ts";
import { formatAmount, fromDecimal } from "../../src/base/money.ts";
import type { Entry } from "../../src/ledger/entry.ts";
import { parseStoredEntry } from "../../src/ledger/verify/schemas.ts";
import { recomputeCost } from "../../src/verify/recompute_cost.ts";
import { refused } from "./failure.ts";
import { openOutput } from "./output_file.ts";

// A sealed file is gzip of lines: a head, entries as they were stored in order of their ids, and a
// seal with the number, the sums and the SHA-256 of all bytes before it.

/** What the first line of a sealed file states. */
export interface SealedHead {
  farebox: "sealed entries";
  version: 1;
  project: string;
  currency: string;
  /** All entries were created before that time. */
  before: string;
}

/** What the last line states. */
interface Seal {
  entries: number;
  /** The sums of all entries. */
  delta: string;
  shortfall: string;
  /** Of everything before this line, uncompressed. */
  sha256: string;
}

/** An entry of a sealed file. */
export interface SealedEntry {
  line: string;
  entry: Entry;
}

/** Adds up what a seal states. */
class Sums {
  readonly #hash = createHash("sha256");
  #entries = 0;
  #delta = 0n;
  #shortfall = 0n;

  addLine(line: string): void {
    this.#hash.update(`${line}\n`);
  }

  addEntry({ delta, shortfall }: Entry): void {
    this.#entries++;
    this.#delta += fromDecimal(delta);
    this.#shortfall += fromDecimal(shortfall);
  }

  seal(): Seal {
    return {
      entries: this.#entries,
      delta: formatAmount(this.#delta),
      shortfall: formatAmount(this.#shortfall),
      sha256: this.#hash.digest("hex"),
    };
  }
}

/**
 * Writes a sealed file, and reads it back before it gets its name. Throws `Failure` where it cannot
 * be written, or differs.
 */
export async function writeSealed(
  path: string,
  head: SealedHead,
  entries: AsyncIterable<SealedEntry> | Iterable<SealedEntry>,
): Promise<Seal> {
  const output = await openOutput(path);
  return await output.fill(async () => {
    const packing = new CompressionStream("gzip");
    const packed = (async () => {
      for await (const piece of packing.readable) await output.write(piece);
    })();
    const writer = packing.writable.getWriter();
    const sums = new Sums();
    const write = async (line: string) => {
      sums.addLine(line);
      await writer.write(new TextEncoder().encode(`${line}\n`));
    };
    await write(JSON.stringify(head));
    for await (const { line, entry } of entries) {
      sums.addEntry(entry);
      await write(line);
    }
    const seal = sums.seal();
    await writer.write(new TextEncoder().encode(`${JSON.stringify({ seal })}\n`));
    await writer.close();
    await packed;
    for await (const _ of (await openSealed(output.partPath)).entries);
    return seal;
  });
}

/**
 * Opens a sealed file; its entries are verified as they are read, and the seal at their end. Throws
 * `Failure` for a file that is damaged, incomplete or not a sealed file.
 */
export async function openSealed(
  path: string,
): Promise<{ head: SealedHead; entries: AsyncGenerator<SealedEntry, Seal> }> {
  const lines = readLines(path);
  const first = await lines.next();
  const head = first.done ? null : readHead(first.value);
  if (first.done || head === null) throw refused(`${path} is not a sealed file.`);
  return { head, entries: readEntries(path, lines, { head, headLine: first.value }) };
}

/** Reads and verifies a whole sealed file. Throws `Failure` as `openSealed` does. */
export async function verifySealed(path: string): Promise<{ head: SealedHead; seal: Seal }> {
  const { head, entries } = await openSealed(path);
  for (;;) {
    const { done, value } = await entries.next();
    if (done) return { head, seal: value };
  }
}

async function* readEntries(
  path: string,
  lines: AsyncGenerator<string>,
  { head, headLine }: { head: SealedHead; headLine: string },
): AsyncGenerator<SealedEntry, Seal> {
  const sums = new Sums();
  sums.addLine(headLine);
  let last = "";
  for await (const line of lines) {
    const stated = readSeal(line);
    if (stated) {
      const found = sums.seal();
      const isEnd = (await lines.next()).done;
      if (isEnd && JSON.stringify(stated) === JSON.stringify(found)) return found;
      throw refused(
        `${path} is damaged: its seal states ${JSON.stringify(stated)}, but it has ` +
          `${JSON.stringify(found)}${isEnd ? "" : " and more"}.`,
      );
    }
    const entry = readEntry(line);
    const fault = entry ? faultOf(entry, { last, head }) : "cannot be read";
    if (!entry || fault !== null) {
      throw refused(`${path} is damaged: the entry after ${last || "its head"} ${fault}.`);
    }
    last = entry.id;
    sums.addLine(line);
    sums.addEntry(entry);
    yield { line, entry };
  }
  throw refused(`${path} is incomplete: its seal is missing.`);
}

/** Returns what is wrong with an entry; null where nothing is. */
function faultOf(
  { id, kind, createdAt, usage, delta, shortfall }: Entry,
  { last, head }: { last: string; head: SealedHead },
): string | null {
  if (id <= last) return `is ${id}, which comes before it`;
  if (!entryKinds[kind].isArchived || kind === "carried") return `is a ${kind}`;
  if (createdAt >= Date.parse(head.before)) return `was created after ${head.before}`;
  const due = fromDecimal(shortfall) - fromDecimal(delta);
  if (usage === null || recomputeCost(usage).some((cost) => cost === due)) return null;
  return `was due ${formatAmount(due)}, which is not what its tokens cost`;
}

async function* readLines(path: string): AsyncGenerator<string> {
  let rest = "";
  try {
    const file = await Deno.open(path);
    const text = file.readable.pipeThrough(new DecompressionStream("gzip"))
      .pipeThrough(new TextDecoderStream("utf-8", { fatal: true }));
    for await (const piece of text) {
      const lines = (rest + piece).split("\n");
      rest = lines.pop() ?? "";
      yield* lines;
    }
  } catch (error) {
    throw refused(`${path} cannot be read: ${error instanceof Error ? error.message : error}`);
  }
  if (rest !== "") throw refused(`${path} is incomplete.`);
}

function readEntry(line: string): Entry | null {
  try {
    return parseStoredEntry(new TextEncoder().encode(line));
  } catch {
    return null;
  }
}

function objectIn(line: string): JsonObject {
  try {
    const value = parseJson(line);
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}

function readHead(line: string): SealedHead | null {
  const { farebox, version } = objectIn(line);
  if (farebox !== "sealed entries" || version !== 1) return null;
  return fromBytes<SealedHead>(new TextEncoder().encode(line));
}

function readSeal(line: string): Seal | null {
  if (!line.startsWith('{"seal":')) return null;
  return fromBytes<{ seal: Seal }>(new TextEncoder().encode(line)).seal;
}

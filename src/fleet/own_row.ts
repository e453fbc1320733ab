import { withDeadline } from "../base/deadline.ts";
import { storeUnavailable } from "../base/errors.ts";
import { type JsonObject, toBytes } from "../base/json.ts";
import type { Deps } from "../deps.ts";
import { processKey } from "../store/keys.ts";
import { asStoreFault, emptyWrite } from "../store/kv.ts";

/** The row by which the other processes of a store know this one. */
export interface OwnRow {
  /** The id that it is known by. */
  readonly id: string;
  /** Whether an id is this process's, now or before. */
  isOwn(id: string): boolean;
  /** How long ago the last write began that has landed, in ms. */
  knownForMs(): number;
  /** Writes the row. Calls at once share a write. Throws `ApiError` 503. */
  write(): Promise<void>;
  /** The same, but not where it says what it said, and not long ago. */
  writeUnlessSame(): Promise<void>;
  /** Removes the row for good. Never throws. */
  remove(): Promise<void>;
}

/** A row that says the same is written again after this time, as a sign of life. */
const lifeSignMs = 2_000;
/** A write that hangs is given up, so that the next sign of life comes in time. */
const writeDeadlineMs = 2_000;

/**
 * Creates the row, which says what `say` returns. Another process removes the row of one that was
 * silent for long, and what it held is then taken. If it was only paused, it goes on under a new
 * id, so that nobody takes what it holds from then on.
 */
export function createOwnRow(
  { kv, clock, id: makeId }: Pick<Deps, "kv" | "clock" | "id">,
  say: () => Promise<JsonObject>,
): OwnRow {
  let id = makeId("prc");
  const ids = new Set([id]);
  let version: string | null = null;
  let said: string | null = null;
  let knownSince = -Infinity;
  let writing: Promise<void> | null = null;
  let isRemoved = false;

  async function put(told: JsonObject): Promise<void> {
    const startedAt = clock.elapsed();
    // The time makes it a new version also where nothing else is new.
    const value = toBytes({ ...told, at: clock.now() });
    const key = processKey(id);
    const write = { ...emptyWrite(), checks: [{ key, version }], sets: [{ key, value }] };
    const landed = await kv.atomic(write).catch((error) => {
      throw asStoreFault(error);
    });
    if (landed === null) return await putAgain(told);
    version = landed;
    said = JSON.stringify(told);
    knownSince = Math.max(knownSince, startedAt);
  }

  /** Another process has changed the row or removed it; or an earlier write landed late. */
  async function putAgain(told: JsonObject): Promise<void> {
    const row = await kv.get(processKey(id));
    if (row.version === null && said !== null) ids.add(id = makeId("prc"));
    version = row.version;
    await put(told);
  }

  async function writeNow(told: JsonObject): Promise<void> {
    if (isRemoved) return;
    await put(told);
  }

  function write(): Promise<void> {
    const late = () => storeUnavailable(`no sign of life within ${writeDeadlineMs} ms`);
    return writing ??= withDeadline(clock, say().then(writeNow), { ms: writeDeadlineMs, late })
      .finally(() => (writing = null));
  }

  return {
    get id() {
      return id;
    },
    isOwn: (other) => ids.has(other),
    knownForMs: () => clock.elapsed() - knownSince,
    write,
    async writeUnlessSame() {
      const isSame = JSON.stringify(await say()) === said;
      if (isSame && clock.elapsed() - knownSince < lifeSignMs) return;
      await write();
    },
    async remove() {
      isRemoved = true;
      if (said === null) return;
      await kv.atomic({ ...emptyWrite(), deletes: [processKey(id)] }).catch(() => {});
    },
  };
}

import { badRequest } from "../base/errors.ts";
import { fromBytes, fromBytesExactly, type Json, toBytes } from "../base/json.ts";
import { keptReferencesMax, keptResponseLifetimeMs, keptTurnBytesMax } from "../base/limits.ts";
import type { AccountRef } from "../ledger/account.ts";
import type { AccountTx } from "../ledger/account_tx.ts";
import type { Deps } from "../deps.ts";
import type { TokenUsage } from "../pricing/usage.ts";
import { inputTokensOf, outputTokensOf } from "../base/token_classes.ts";
import { withTokenizerMargin } from "../pricing/tokenizer.ts";
import { commitUnlessMoved, type Eraser, eraseRows } from "../store/erase.ts";
import {
  allKeptIdsPrefix,
  allKeptTurnsPrefix,
  keptIdKey,
  keptIdsPrefix,
  keptTurnKey,
  keptTurnsPrefix,
} from "../store/keys.ts";
import { emptyWrite, type Key, type Kv, type Row } from "../store/kv.ts";
import { listAfter } from "../store/scan.ts";
import type { KeptIds, KeptItems, KeptReference } from "./format.ts";

/** A response that an upstream gave to one of a project's users: one value under all of its ids. */
export interface KeptRow {
  user: string;
  /** Its own id. */
  response: string;
  /** The most tokens that a reference adds to a prompt: to the response, or to its output. */
  tokens: number;
  outputTokens: number;
  /** Ids of its items. */
  items: readonly string[];
  /** Whether we keep the turn, because the upstream keeps nothing. */
  hasTurn?: true;
  /** The name of the upstream that keeps it; absent for the project's usual one. */
  upstream?: string;
  /** In milliseconds since 1970. */
  expiresAt: number;
}

interface KeptTurn {
  user: string;
  /** In milliseconds since 1970. */
  expiresAt: number;
  previous: string | null;
  input: readonly Json[];
  output: readonly Json[];
}

/** A response whose ids its caller may use later. */
export interface KeptResponse {
  ref: AccountRef;
  kept: KeptIds;
  usage: TokenUsage;
  /** The name of the upstream that gave it; null for the project's usual one. */
  upstream: string | null;
  /** The request's part of the turn; null where the upstream keeps the response itself. */
  turn: { previous: string | null; input: readonly Json[] } | null;
}

const itemsMax = 100;
const idCharsMax = 256;
/** Turns of one conversation that are put together again. */
const turnsMax = 200;

/** Remembers, with the charge, that a response's ids belong to its user. */
export function rememberResponse(
  tx: AccountTx,
  { ref, kept, usage, upstream, turn }: KeptResponse,
): void {
  const { projectId, user } = ref;
  const { response } = kept;
  if (response === "" || response.length > idCharsMax) return;
  const items = kept.items.slice(0, itemsMax).filter((id, at, all) =>
    id !== "" && id !== response && id.length <= idCharsMax && all.indexOf(id) === at
  );
  const expiresAt = tx.now + keptResponseLifetimeMs;
  const output = turn ? kept.output?.() ?? [] : [];
  const value = turn && toBytes({ ...turn, user, output, expiresAt } satisfies KeptTurn);
  const hasTurn = value !== null && value.length <= keptTurnBytesMax;
  // What the upstream does not keep, and is too large for us, can never be referred to.
  if (turn && !hasTurn) return;
  const bounded = (tokens: number) =>
    usage.source === "provider" ? tokens : withTokenizerMargin(tokens);
  const outputTokens = bounded(outputTokensOf(usage));
  const tokens = outputTokens + bounded(inputTokensOf(usage));
  const row: KeptRow = { user, response, tokens, outputTokens, items, expiresAt };
  if (hasTurn) row.hasTurn = true;
  else if (upstream !== null) row.upstream = upstream;
  const bytes = toBytes(row);
  tx.add(keptIdKey(projectId, response), bytes);
  for (const id of items) tx.add(keptIdKey(projectId, id), bytes);
  if (value) tx.add(keptTurnKey(projectId, response), value);
}

/** What the ids in a request stand for. */
export interface ResolvedReferences {
  /** The most tokens that they add to the prompt at the upstream. */
  hiddenTokens: number;
  /** What has to be sent with the request; null where the upstream keeps it. */
  kept: KeptItems | null;
  /** The name of the upstream that keeps it; null for any. */
  upstream: string | null;
}

const noReferences: ResolvedReferences = { hiddenTokens: 0, kept: null, upstream: null };

/**
 * Finds what the ids in a user's request stand for. Throws 400, as OpenAI does, for an id that is
 * unknown or another user's: the two cannot be told apart.
 */
export async function resolveReferences(
  { kv, clock }: Pick<Deps, "kv" | "clock">,
  { projectId, user }: Pick<AccountRef, "projectId" | "user">,
  references: readonly KeptReference[],
): Promise<ResolvedReferences> {
  if (references.length === 0) return noReferences;
  if (references.length > keptReferencesMax) {
    throw badRequest("input", `'input' refers to more than ${keptReferencesMax} items.`);
  }
  const ids = await readIds(kv, projectId, references.map(({ id }) => id));
  const counted = new Set<string>();
  const turns: string[] = [];
  let previous: string | null = null;
  let hiddenTokens = 0;
  let upstream: string | null = null;
  for (const [at, reference] of references.entries()) {
    const found = ids[at];
    const isOwn = found && found.user === user && found.expiresAt > clock.now() &&
      (reference.kind === "response") === (found.response === reference.id);
    if (!isOwn) throw unknownReference(reference);
    const { response } = found;
    upstream ??= found.upstream ?? null;
    if (found.hasTurn) turns.push(response);
    if (found.hasTurn && reference.param === "previous_response_id") previous = reference.id;
    // An item's tokens are those of the response that it is a part of.
    const part = `${reference.kind} ${response}`;
    const tokens = reference.kind === "response" ? found.tokens : found.outputTokens;
    if (!found.hasTurn && !counted.has(part)) hiddenTokens += tokens;
    counted.add(part);
  }
  if (turns.length === 0) return { hiddenTokens, kept: null, upstream };
  return { hiddenTokens, kept: await readKept(kv, projectId, { previous, turns }), upstream };
}

/** A response of a user's own; null for one that is unknown or another user's. */
export async function findKeptResponse(
  { kv, clock }: Pick<Deps, "kv" | "clock">,
  { projectId, user }: Pick<AccountRef, "projectId" | "user">,
  id: string,
): Promise<KeptRow | null> {
  if (id === "" || id.length > idCharsMax) return null;
  const [found] = await readIds(kv, projectId, [id]);
  const isOwn = found?.user === user && found.response === id && found.expiresAt > clock.now();
  return isOwn ? found : null;
}

/** Forgets a response's ids, and its turn. */
export async function forgetResponse(
  { kv, committer }: Pick<Deps, "kv" | "committer">,
  projectId: string,
  response: string,
): Promise<void> {
  const [found] = await readIds(kv, projectId, [response]);
  if (!found) return;
  const write = emptyWrite();
  const ids = [response, ...found.items];
  write.deletes.push(
    ...ids.map((id) => keptIdKey(projectId, id)),
    keptTurnKey(projectId, response),
  );
  await committer.commit(write);
}

const rowsPerSweep = 500;

/**
 * Creates the sweep of ids and turns whose time is over. Each call looks at a bounded number of
 * rows, from where the last one stopped: a row for each response that says when it expires would
 * cost more than to look at all of them now and then.
 */
export function createKeptSweep(
  { kv, clock, committer }: Pick<Deps, "kv" | "clock" | "committer">,
): () => Promise<void> {
  const places: { prefix: Key; after: Key | null }[] = [
    { prefix: allKeptIdsPrefix, after: null },
    { prefix: allKeptTurnsPrefix, after: null },
  ];
  return async () => {
    for (const place of places) {
      const { prefix, after } = place;
      const rows = await listAfter(kv, prefix, { after, limit: rowsPerSweep });
      place.after = rows.length < rowsPerSweep ? null : rows.at(-1)?.key ?? null;
      const isOver = ({ value }: Row) =>
        value !== null && fromBytes<{ expiresAt: number }>(value).expiresAt <= clock.now();
      const remove = (row: Row) =>
        commitUnlessMoved(committer, row, { sets: [], deletes: [row.key] });
      await Promise.all(rows.filter(isOver).map(remove));
    }
  };
}

/** Erases a user's ids and turns. */
export function createKeptErasers(
  { kv, committer }: Pick<Deps, "kv" | "committer">,
): readonly Eraser[] {
  const removeOwn: Parameters<typeof eraseRows>[0]["rewrite"] = ({ key, value }, { user }) =>
    value && fromBytes<{ user: string }>(value).user === user ? { sets: [], deletes: [key] } : null;
  return [
    eraseRows({
      name: "keptIds",
      kv,
      committer,
      prefix: ({ projectId }) => keptIdsPrefix(projectId),
      rewrite: removeOwn,
    }),
    eraseRows({
      name: "keptTurns",
      kv,
      committer,
      prefix: ({ projectId }) => keptTurnsPrefix(projectId),
      rewrite: removeOwn,
    }),
  ];
}

function unknownReference({ kind, id, param }: KeptReference) {
  const shown = id.slice(0, 128);
  return kind === "response"
    ? badRequest(
      param,
      `Previous response with id '${shown}' not found.`,
      "previous_response_not_found",
    )
    : badRequest(
      param,
      `Item with id '${shown}' not found. Items are not persisted when \`store\` is set to false. ` +
        "Try again with `store` set to true, or send the item itself.",
    );
}

async function readIds(
  kv: Kv,
  projectId: string,
  ids: readonly string[],
): Promise<(KeptRow | null)[]> {
  const isKey = (id: string) => id !== "" && id.length <= idCharsMax;
  const wanted = [...new Set(ids.filter(isKey))];
  const rows = await kv.getMany(wanted.map((id) => keptIdKey(projectId, id)));
  const byId = new Map(wanted.map((id, at) => [id, rows[at]?.value ?? null]));
  return ids.map((id) => {
    const value = byId.get(id);
    return value ? fromBytes<KeptRow>(value) : null;
  });
}

/** The items of these turns, and the conversation up to `previous`. */
async function readKept(
  kv: Kv,
  projectId: string,
  { previous, turns }: { previous: string | null; turns: readonly string[] },
): Promise<KeptItems> {
  const wanted = [...new Set(turns)];
  const rows = await kv.getMany(wanted.map((id) => keptTurnKey(projectId, id)));
  const read = rows.flatMap(({ value }) => (value ? [fromBytesExactly<KeptTurn>(value)] : []));
  const items = new Map<string, Json>();
  for (const { output } of read) {
    for (const item of output) {
      const id = idOf(item);
      if (id !== null) items.set(id, item);
    }
  }
  return { items, history: previous === null ? [] : await readHistory(kv, projectId, previous) };
}

async function readHistory(kv: Kv, projectId: string, last: string): Promise<Json[]> {
  const turns: KeptTurn[] = [];
  for (let id: string | null = last; id !== null;) {
    const { value } = await kv.get(keptTurnKey(projectId, id));
    if (!value || turns.length >= turnsMax) {
      throw badRequest(
        "previous_response_id",
        "The conversation before this response is no longer kept. Send it whole.",
        "previous_response_not_found",
      );
    }
    const turn = fromBytesExactly<KeptTurn>(value);
    turns.unshift(turn);
    id = turn.previous;
  }
  return turns.flatMap(({ input, output }) => [...input, ...output]);
}

function idOf(item: Json): string | null {
  const { id } = Object(item);
  return typeof id === "string" ? id : null;
}

import { keptName } from "../../store/kept_name.ts";
import { badRequest } from "../../base/errors.ts";
import { keptKindOf } from "../../base/kept_kinds.ts";
import { fromBytes, type Json, toBytes } from "../../base/json.ts";
import {
  keptIdCharsMax,
  keptReferencesMax,
  keptResponseLifetimeMs,
  keptTurnBytesMax,
} from "../../base/limits.ts";
import type { AccountRef } from "../../ledger/account.ts";
import type { AccountTx } from "../../ledger/account_tx.ts";
import type { Deps } from "../../deps.ts";
import type { TokenUsage } from "../../pricing/usage.ts";
import type { Project } from "../../projects/schema.ts";
import { decodeProject } from "../../projects/project_row.ts";
import { inputTokensOf, outputTokensOf } from "../../base/token_classes.ts";
import { withTokenizerMargin } from "../../pricing/tokenizer.ts";
import { type Eraser, eraseRows } from "../../store/erase.ts";
import { type ExpiringKind, keysWithExpiry, withExpiry } from "../../store/expiry.ts";
import { keptHead, type KeptTexts } from "../../store/kept_texts.ts";
import {
  allKeptIdsPrefix,
  keptByUserKey,
  keptByUserPrefix,
  keptIdKey,
  keptIdsPrefix,
  keptTurnKey,
  keptTurnsPrefix,
} from "../../store/keys.ts";
import { emptyWrite, type Key, type Kv } from "../../store/kv.ts";
import type { ProjectRows } from "../../store/project_rows.ts";
import type { KeptReference } from "../model_request.ts";
import type { KeptIds } from "../upstream_response.ts";
import {
  type ConversationSize,
  encodeTurn,
  keptTurnRows,
  sizeWith,
  type TooLarge,
  tooLargeToContinue,
  tooLargeToKeep,
  type TurnsToLoad,
} from "./kept_turns.ts";

/** A response that an upstream gave to one of a project's users: one value under all of its ids. */
export interface KeptRow {
  user: string;
  /** The name of its own id. */
  response: string;
  /** The most tokens that a reference adds to a prompt: to the response, or to its output. */
  tokens: number;
  outputTokens: number;
  /** The names of its items' ids. */
  items: readonly string[];
  /** Whether we keep the turn, because the upstream keeps nothing. */
  hasTurn?: true;
  /**
   * Of that turn, and of its conversation with it; absent where 0.9.0 has stored it. Version 1.1
   * may drop it.
   */
  turn?: { bytes: number; conversation: ConversationSize };
  /** Why that turn is not kept after all. */
  tooLarge?: TooLarge;
  /** The name of the upstream that keeps it; absent for the project's usual one. */
  upstream?: string;
  /** In milliseconds since 1970. */
  expiresAt: number;
}

/** Ids of responses and of their items. */
export const keptIdRows: ExpiringKind = {
  prefix: allKeptIdsPrefix,
  endsAt: (value) => fromBytes<KeptRow>(value).expiresAt,
};

/** What is kept of each user's turns. */
export const keptByUserRows: ExpiringKind = {
  prefix: keptByUserPrefix(),
  endsAt: (value) => fromBytes<{ expiresAt: number }>(value).expiresAt,
};

/** A response whose ids its caller may use later. */
interface KeptResponse {
  ref: AccountRef;
  kept: KeptIds;
  usage: TokenUsage;
  /** The name of the upstream that gave it; null for the project's usual one. */
  upstream: string | null;
  /** The request's part of the turn; null where the upstream keeps the response itself. */
  turn: RequestTurn | null;
}

/** A request's part of a turn. */
export interface RequestTurn {
  previous: string | null;
  input: readonly Json[];
  /** The conversation before it; null where there is none. */
  history: ConversationSize | null;
  /** The fewest tokens that the texts of these items have. */
  leastTokens(items: readonly Json[]): number;
}

/** How many items of one response can be referred to: each has rows in the write of its charge. */
const itemsMax = 100;
/**
 * Remembers, with the charge, that a response's ids belong to its user. Returns how many bytes are
 * stored of a turn that the upstream does not keep.
 */
export function rememberResponse(
  services: { texts: KeptTexts },
  tx: AccountTx,
  { ref, kept, usage, upstream, turn }: KeptResponse,
): number {
  const { projectId, user } = ref;
  if (!isKeptId(kept.response)) return 0;
  const response = keptName(kept.response);
  const items = kept.items.slice(0, itemsMax).filter(isKeptId).map(keptName)
    .filter((id, at, all) => id !== response && all.indexOf(id) === at);
  const expiresAt = tx.now + keptResponseLifetimeMs;
  const bounded = (tokens: number) =>
    usage.source === "provider" ? tokens : withTokenizerMargin(tokens);
  const outputTokens = bounded(outputTokensOf(usage));
  const tokens = outputTokens + bounded(inputTokensOf(usage));
  const row: KeptRow = { user, response, tokens, outputTokens, items, expiresAt };
  const turnKey = keptTurnKey(projectId, response);
  const value = turn && addTurn(services, row, { turn, turnKey, output: kept.output?.() ?? [] });
  if (!turn && upstream !== null) row.upstream = upstream;
  const bytes = toBytes(row);
  const add = (kind: ExpiringKind, key: Key, value: Uint8Array) => {
    for (const row of withExpiry(kind, { key, value })) tx.add(row.key, row.value);
  };
  for (const id of [response, ...items]) add(keptIdRows, keptIdKey(projectId, id), bytes);
  if (!value) return 0;
  add(keptTurnRows, turnKey, value);
  const stored = value.length + bytes.length * (1 + items.length);
  const size = toBytes({ user, bytes: stored, expiresAt });
  add(keptByUserRows, keptByUserKey(projectId, user, row), size);
  return stored;
}

/** Notes the turn's size in the row of its ids; null where it is too large to be kept. */
function addTurn(
  { texts }: { texts: KeptTexts },
  row: KeptRow,
  { turn: { previous, input, history, leastTokens }, turnKey, output }: {
    turn: RequestTurn;
    turnKey: Key;
    output: readonly Json[];
  },
): Uint8Array | null {
  const { user, expiresAt } = row;
  const value = encodeTurn(texts, turnKey, { user, expiresAt, previous, input, output });
  const bytes = value.length;
  const tokens = bytes > keptTurnBytesMax ? 0 : leastTokens([...input, ...output]);
  const conversation = sizeWith(history, { bytes, tokens });
  const tooLarge = tooLargeToKeep(bytes, conversation);
  row.hasTurn = true;
  if (tooLarge) row.tooLarge = tooLarge;
  else row.turn = { bytes, conversation };
  return tooLarge ? null : value;
}

/** What the ids in a request stand for. */
interface ResolvedReferences {
  /** The most tokens that they add to the prompt at the upstream. */
  hiddenTokens: number;
  /** What has to be loaded and sent with the request; null where the upstream keeps it. */
  turns: TurnsToLoad | null;
  /** The name of the upstream that keeps it; null for any. */
  upstream: string | null;
}

const noReferences: ResolvedReferences = { hiddenTokens: 0, turns: null, upstream: null };

/**
 * Finds what the ids in a user's request stand for. Throws 400, as OpenAI does, for an id that is
 * unknown or another user's, which cannot be told apart, for what was too large to be kept, and for
 * a turn that the project no longer keeps.
 */
export async function resolveReferences(
  { kv, clock }: Pick<Deps, "kv" | "clock">,
  { project, user }: { project: Pick<Project, "id" | "keepResponses">; user: string },
  references: readonly KeptReference[],
): Promise<ResolvedReferences> {
  if (references.length === 0) return noReferences;
  if (references.length > keptReferencesMax) {
    throw badRequest("input", `'input' refers to more than ${keptReferencesMax} items.`);
  }
  const ids = await readIds(kv, project.id, references.map(({ id }) => id));
  const counted = new Set<string>();
  const items: { reference: KeptReference; response: string }[] = [];
  let previous: KeptReference | null = null;
  let size: ConversationSize | null = null;
  let hiddenTokens = 0;
  let upstream: string | null = null;
  for (const [at, reference] of references.entries()) {
    const found = ids[at];
    const isOwn = found && found.user === user && found.expiresAt > clock.now() &&
      (reference.kind === "response") === (found.response === keptName(reference.id));
    if (!isOwn || (found.hasTurn && !keepsTurns(project))) {
      throw unknownReference(reference, project);
    }
    const { response } = found;
    upstream ??= found.upstream ?? null;
    if (found.tooLarge) throw tooLargeToContinue(reference, found.tooLarge);
    if (found.hasTurn && reference.kind === "item") items.push({ reference, response });
    if (found.hasTurn && reference.param === "previous_response_id") {
      previous = reference;
      size = found.turn?.conversation ?? null;
    }
    // An item's tokens are those of the response that it is a part of.
    const part = `${reference.kind} ${response}`;
    const tokens = reference.kind === "response" ? found.tokens : found.outputTokens;
    if (!found.hasTurn && !counted.has(part)) hiddenTokens += tokens;
    counted.add(part);
  }
  const isKept = previous !== null || items.length > 0;
  return { hiddenTokens, turns: isKept ? { previous, size, items } : null, upstream };
}

/** Whether a project keeps turns for upstreams that keep none. */
export function keepsTurns({ keepResponses }: Pick<Project, "keepResponses">): boolean {
  return keepResponses === "on";
}

/** A response of a user's own; null for one that is unknown or another user's. */
export async function findKeptResponse(
  { kv, clock }: Pick<Deps, "kv" | "clock">,
  { projectId, user }: Pick<AccountRef, "projectId" | "user">,
  id: string,
): Promise<KeptRow | null> {
  const [found] = await readIds(kv, projectId, [id]);
  const isOwn = found?.user === user && found.response === keptName(id) &&
    found.expiresAt > clock.now();
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
  // All of its rows end at the same time.
  const row = { prefix: [], endsAt: () => found.expiresAt };
  const value = new Uint8Array();
  const keys = [
    ...[response, ...found.items].map((id) => keptIdKey(projectId, id)),
    keptTurnKey(projectId, response),
    keptByUserKey(projectId, found.user, found),
  ];
  const deletes = keys.flatMap((key) => keysWithExpiry(row, { key, value }));
  await committer.commit({ ...emptyWrite(), deletes });
}

const turnsPerPage = 100;

/** Creates the removal of the turns of projects that no longer keep any. */
export function createUnkeptRemoval(
  { kv, committer }: Pick<Deps, "kv" | "committer">,
): readonly ProjectRows[] {
  const unkept = (rows: ExpiringKind, prefixOf: (projectId: string) => Key): ProjectRows => ({
    kind: keptKindOf(rows.prefix[0]),
    async removePage(project, now) {
      const settings = decodeProject(project.value);
      if (keepsTurns(settings)) return { count: 0, isMore: false, endedAt: now };
      const found = await kv.list({ prefix: prefixOf(settings.id), limit: turnsPerPage });
      const deletes = found.flatMap(({ key, value }) =>
        value ? keysWithExpiry(rows, { key, value }) : []
      );
      if (deletes.length > 0) await committer.commit({ ...emptyWrite(), deletes });
      return { count: found.length, isMore: found.length === turnsPerPage, endedAt: now };
    },
  });
  return [unkept(keptTurnRows, keptTurnsPrefix), unkept(keptByUserRows, keptByUserPrefix)];
}

/** Erases a user's ids and turns. */
export function createKeptErasers(
  { kv, committer }: Pick<Deps, "kv" | "committer">,
): readonly Eraser[] {
  type Rewrite = Parameters<typeof eraseRows>[0]["rewrite"];
  const removeOwn = (kind: ExpiringKind): Rewrite => ({ key, value }, { user }) =>
    value && keptHead<Pick<KeptRow, "user">>(value).user === user
      ? { sets: [], deletes: keysWithExpiry(kind, { key, value }) }
      : null;
  return [
    eraseRows({
      name: "keptIds",
      kv,
      committer,
      prefix: ({ projectId }) => keptIdsPrefix(projectId),
      rewrite: removeOwn(keptIdRows),
    }),
    eraseRows({
      name: "keptTurns",
      kv,
      committer,
      prefix: ({ projectId }) => keptTurnsPrefix(projectId),
      rewrite: removeOwn(keptTurnRows),
    }),
    eraseRows({
      name: "keptTurnSizes",
      kv,
      committer,
      prefix: ({ projectId, user }) => keptByUserPrefix(projectId, user),
      rewrite: removeOwn(keptByUserRows),
    }),
  ];
}

/** Whether a response or an item with this id is remembered. */
function isKeptId(id: string): boolean {
  return id !== "" && id.length <= keptIdCharsMax;
}

function unknownReference(
  { kind, id, param }: KeptReference,
  project: Pick<Project, "keepResponses">,
) {
  const shown = id.slice(0, 128);
  if (id.length > keptIdCharsMax) {
    const most = `has more than ${keptIdCharsMax} characters: no longer id is remembered.`;
    return badRequest(param, `The id '${shown}…' ${most}`, "string_above_max_length");
  }
  const setting = keepsTurns(project)
    ? ""
    : " This project keeps no responses ('keepResponses' is \"off\"): send the conversation whole.";
  return kind === "response"
    ? badRequest(
      param,
      `Previous response with id '${shown}' not found.${setting}`,
      "previous_response_not_found",
    )
    : badRequest(
      param,
      `Item with id '${shown}' not found.${setting} Items are not persisted when \`store\` is set ` +
        "to false. Try again with `store` set to true, or send the item itself. Of one response, " +
        `the first ${itemsMax} items are remembered.`,
    );
}

async function readIds(
  kv: Kv,
  projectId: string,
  ids: readonly string[],
): Promise<(KeptRow | null)[]> {
  const wanted = [...new Set(ids.filter(isKeptId))];
  const rows = await kv.getMany(wanted.map((id) => keptIdKey(projectId, id)));
  const byId = new Map(wanted.map((id, at) => [id, rows[at]?.value ?? null]));
  return ids.map((id) => {
    const value = byId.get(id);
    return value ? fromBytes<KeptRow>(value) : null;
  });
}

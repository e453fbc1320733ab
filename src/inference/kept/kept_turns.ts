import { badRequest } from "../../base/errors.ts";
import { fromBytesExactly, fromTextExactly, type Json } from "../../base/json.ts";
import { keptConversationBytesMax, keptTurnBytesMax } from "../../base/limits.ts";
import type { ExpiringKind } from "../../store/expiry.ts";
import { keptHead, type KeptTexts } from "../../store/kept_texts.ts";
import { allKeptTurnsPrefix, keptTurnKey } from "../../store/keys.ts";
import type { Key, Kv } from "../../store/kv.ts";
import type { KeptItems, KeptReference } from "../model_request.ts";

/** What a stored turn says of itself; its text follows. */
interface TurnHead {
  user: string;
  /** In milliseconds since 1970. */
  expiresAt: number;
  /** The response before it; null for the first turn. */
  previous: string | null;
}

/** The text of a turn. */
interface TurnText {
  input: readonly Json[];
  output: readonly Json[];
}

/** One turn of a conversation that no upstream keeps. */
type KeptTurn = TurnHead & TurnText;

/** Turns of conversations. */
export const keptTurnRows: ExpiringKind = {
  prefix: allKeptTurnsPrefix,
  endsAt: (value) => keptHead<TurnHead>(value).expiresAt,
};

/** A turn as it is stored at `key`: its text encrypted, where `SECRETS_KEY` is set. */
export function encodeTurn(
  texts: KeptTexts,
  key: Key,
  { input, output, ...head }: KeptTurn,
): Uint8Array {
  return texts.encode(key, head, JSON.stringify({ input, output } satisfies TurnText));
}

/** Reads a stored turn, with every digit of its numbers; null where no key decrypts it. */
function decodeTurn(texts: KeptTexts, key: Key, value: Uint8Array): KeptTurn | null {
  const head = keptHead<TurnHead | KeptTurn>(value);
  // A turn of 0.9.0 has no head of its own. Version 1.1 may drop it.
  if ("output" in head) return fromBytesExactly<KeptTurn>(value);
  const text = texts.textOf(key, value);
  return text === null ? null : { ...head, ...fromTextExactly<TurnText>(text) };
}

/** How large a conversation is, up to and with one of its turns. */
export interface ConversationSize {
  turns: number;
  /** The size of the stored turns, in bytes. */
  bytes: number;
  /** The fewest tokens that its texts have. */
  tokens: number;
}

/** A conversation that is a part of a request's input. */
export interface HistorySize extends ConversationSize {
  /** How many of the input's items it is. */
  items: number;
}

/** What keeps a turn from being kept. */
export type TooLarge = "turn" | "conversation";

/** Turns of one conversation that are put together again. */
const turnsMax = 200;

/** What a turn adds to its conversation; null for the first one's. */
export function sizeWith(
  before: ConversationSize | null,
  turn: Omit<ConversationSize, "turns">,
): ConversationSize {
  const { turns, bytes, tokens } = before ?? { turns: 0, bytes: 0, tokens: 0 };
  return { turns: turns + 1, bytes: bytes + turn.bytes, tokens: tokens + turn.tokens };
}

/** Whether a turn of so many bytes, or the conversation that ends with it, is too large to keep. */
export function tooLargeToKeep(bytes: number, whole: ConversationSize): TooLarge | null {
  if (bytes > keptTurnBytesMax) return "turn";
  return isTooLarge(whole) ? "conversation" : null;
}

function isTooLarge({ turns, bytes }: Pick<ConversationSize, "turns" | "bytes">): boolean {
  return turns > turnsMax || bytes > keptConversationBytesMax;
}

/**
 * 400: the turns are too large to be kept. For a conversation, it is the error of a prompt beyond a
 * model's context window; after one large turn, clients have to send all of it.
 */
export function tooLargeToContinue({ id, kind, param }: KeptReference, what: TooLarge) {
  const shown = id.slice(0, 128);
  const most = what === "turn"
    ? `${keptTurnBytesMax} bytes for a response with its input`
    : `${keptConversationBytesMax} bytes or ${turnsMax} turns for a conversation`;
  const whose = kind === "item" ? `The response of item '${shown}'` : `Response '${shown}'`;
  return badRequest(
    param,
    `${whose} is not kept with its conversation, which is too large: the most is ${most}. ` +
      "Send what the model needs of it in 'input'.",
    what === "turn" && kind === "response"
      ? "previous_response_not_found"
      : "context_length_exceeded",
  );
}

/** Turns that a request refers to, as far as is known before they are read. */
export interface TurnsToLoad {
  /** The response that the request continues; null where it continues none. */
  previous: KeptReference | null;
  /** The conversation up to it; null where 0.9.0 has stored it. Version 1.1 may drop it. */
  size: ConversationSize | null;
  /** Items that it refers to, and the response that each is a part of. */
  items: readonly { reference: KeptReference; response: string }[];
}

/** Called with the bytes of memory that turns take, before they are read into it. Throws 503. */
type ReserveBytes = (bytes: number) => void;

/** Bytes of memory that a stored byte takes: as text, and as values. */
const memoryPerByte = 2;

interface Loading {
  kv: Kv;
  texts: KeptTexts;
  projectId: string;
  reserve: ReserveBytes;
}

/**
 * Reads turns one after the other. Throws 400 where one of them is no longer kept, and where they
 * are larger together than what is kept of a conversation.
 */
export async function loadTurns(
  loading: Loading,
  { previous, size: known, items }: TurnsToLoad,
): Promise<KeptItems & { size: HistorySize | null }> {
  // All at once: of many conversations that are loaded turn by turn, none might get enough.
  if (known) loading.reserve(known.bytes * memoryPerByte);
  const byId = await loadItems(loading, items);
  if (previous === null) return { history: [], historyBytes: 0, items: byId, size: null };
  const reserved = known ? { ...loading, reserve: () => {} } : loading;
  const { history, size } = await loadHistory(reserved, previous);
  const whole = { ...size, tokens: 0, items: history.length };
  return { history, historyBytes: size.bytes, items: byId, size: whole };
}

async function loadItems(
  loading: Loading,
  items: TurnsToLoad["items"],
): Promise<Map<string, Json>> {
  const found = new Map<string, Json>();
  const read = new Set<string>();
  let bytes = 0;
  for (const { reference, response } of items) {
    if (read.has(response)) continue;
    read.add(response);
    const turn = await loadTurn(loading, response);
    if (!turn) throw noLongerKept();
    bytes += turn.bytes;
    if (isTooLarge({ turns: 0, bytes })) throw tooLargeToContinue(reference, "conversation");
    for (const item of turn.output) {
      const id = idOf(item);
      if (id !== null) found.set(id, item);
    }
  }
  return found;
}

async function loadHistory(loading: Loading, previous: KeptReference) {
  const turns: KeptTurn[] = [];
  const size = { turns: 0, bytes: 0 };
  for (let id: string | null = previous.id; id !== null;) {
    const turn = await loadTurn(loading, id);
    if (!turn) throw noLongerKept();
    size.turns++;
    size.bytes += turn.bytes;
    if (isTooLarge(size)) throw tooLargeToContinue(previous, "conversation");
    turns.unshift(turn);
    id = turn.previous;
  }
  return { size, history: turns.flatMap(({ input, output }) => [...input, ...output]) };
}

async function loadTurn(
  { kv, texts, projectId, reserve }: Loading,
  response: string,
): Promise<KeptTurn & { bytes: number } | null> {
  const key = keptTurnKey(projectId, response);
  const { value } = await kv.get(key);
  if (!value) return null;
  reserve(value.length * memoryPerByte);
  const turn = decodeTurn(texts, key, value);
  return turn && { ...turn, bytes: value.length };
}

function noLongerKept() {
  return badRequest(
    "previous_response_id",
    "The conversation before this response is no longer kept. Send it whole.",
    "previous_response_not_found",
  );
}

function idOf(item: Json): string | null {
  const { id } = Object(item);
  return typeof id === "string" ? id : null;
}

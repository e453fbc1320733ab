import { isObject, type Json, type JsonObject, parseJson } from "../../base/json.ts";
import { HeldText } from "../bridges/held_text.ts";

/** What a piece of a tool call says; what it does not say is empty. */
interface CallPiece {
  /** Null where it has no number. */
  index: number | null;
  id: string;
  name: string;
  text: string;
  kind: "function" | "custom";
  /** Members of the piece, and of the object that has its name, that are passed on as they are. */
  outer: JsonObject;
  inner: JsonObject;
}

/** A call of a tool, as far as it has arrived. */
interface OpenCall {
  index: number;
  id: string;
  /** The id that the server has sent; empty before any. */
  givenId: string;
  name: string;
  kind: CallPiece["kind"];
  /** Arguments that wait for the name; null once the call has been passed on. */
  waiting: string | null;
  hasText: boolean;
  /** The arguments, while one piece has had them all. */
  only: string | null;
}

/** Memory that a call takes besides its text, in characters. */
const callChars = 128;

/**
 * Mends the tool calls of one message that streams: each has a number in order, an id of its own, a
 * type, a name and arguments as text, in its first piece; its other pieces have its number. Servers
 * leave any of these out, number every call alike, repeat ids and names, or send new ids for each
 * piece.
 */
export class CallMender {
  readonly #ownId: string;
  readonly #calls: OpenCall[] = [];
  /** The last call of each number, and of each id, that the server has sent. */
  readonly #byIndex = new Map<number, OpenCall>();
  readonly #byId = new Map<string, OpenCall>();
  readonly #ids = new Set<string>();
  readonly #held = new HeldText();

  /** Calls without an id get one that begins with `ownId`. */
  constructor(ownId: string) {
    this.#ownId = ownId;
  }

  /** How many calls have begun. */
  get count(): number {
    return this.#calls.length;
  }

  /** The pieces mended; the same list where they lack nothing. Throws 502 for too many calls. */
  mend(pieces: Json[]): Json[] {
    const mended = pieces.map((piece, position) => {
      if (!isObject(piece)) return null;
      return this.#isContinuation(piece) ? piece : this.#mendPiece(piece, position, pieces.length);
    });
    if (mended.every((piece, at) => piece === pieces[at])) return pieces;
    return mended.filter((piece) => piece !== null);
  }

  /**
   * The pieces that are left when the message has ended: calls that never got a name, and, where
   * the message is whole, the arguments of functions that got none.
   */
  end(isWhole: boolean): JsonObject[] {
    const left: JsonObject[] = [];
    for (const call of this.#calls) {
      const { index, kind, waiting, hasText } = call;
      if (waiting !== null && waiting.trim() !== "") {
        call.waiting = null;
        left.push(firstPiece(call, { text: waiting, outer: {}, inner: {} }));
      } else if (isWhole && waiting === null && !hasText && kind === "function") {
        call.hasText = true;
        left.push({ index, function: { arguments: "{}" } });
      }
    }
    return left;
  }

  /** Whether a piece continues a call as OpenAI's do, so that nothing of it is to be mended. */
  #isContinuation({ index, id, function: called, custom }: JsonObject): boolean {
    if (typeof index !== "number" || (id !== undefined && id !== null)) return false;
    const call = this.#byIndex.get(index);
    if (call?.index !== index || call.waiting !== null) return false;
    const inner = call.kind === "custom" ? custom : called;
    if (!isObject(inner) || (inner.name !== undefined && inner.name !== null)) return false;
    const text = inner[textField(call)];
    if (typeof text !== "string") return false;
    noteText(call, text);
    return true;
  }

  #mendPiece(sent: JsonObject, position: number, count: number): JsonObject | null {
    const piece = readPiece(sent);
    const known = this.#find(piece, count > 1 ? position : null);
    if (known && isRepetition(known, piece)) return null;
    const call = known ?? this.#open(piece);
    call.name ||= piece.name;
    if (call.givenId === "" && piece.id !== "") this.#noteId(call, piece.id);
    const { text, outer, inner } = piece;
    noteText(call, text);
    if (call.waiting === null) {
      return { ...outer, index: call.index, [call.kind]: { ...inner, [textField(call)]: text } };
    }
    call.waiting += text;
    if (call.name === "") {
      this.#held.add(text.length);
      return null;
    }
    const whole = { text: call.waiting, outer, inner };
    call.waiting = null;
    return lacksNothing(sent, call, whole.text) ? sent : firstPiece(call, whole);
  }

  /** The call that a piece continues; null where it begins one. */
  #find(piece: CallPiece, position: number | null): OpenCall | null {
    const { index, id, name } = piece;
    const byId = id === "" ? undefined : this.#byId.get(id);
    const byIndex = index === null ? undefined : this.#byIndex.get(index);
    const isNamed = byId !== undefined && byId !== byIndex && byIndex?.givenId !== id;
    const known = isNamed && (index === null || name === "") ? byId : byIndex;
    if (known) return isOther(known, piece) ? null : known;
    if (index !== null) return null;
    const last = this.#calls.at(-1) ?? null;
    if (name === "" && id === "" && position !== null) return this.#calls[position] ?? last;
    if (name === "") return last;
    return last && id === "" && !isOther(last, piece) ? last : null;
  }

  #open({ index: number, id, kind }: CallPiece): OpenCall {
    this.#held.add(callChars);
    const index = this.#calls.length;
    const isUsable = id !== "" && !this.#ids.has(id);
    const own = isUsable ? id : `${this.#ownId}_${index}`;
    this.#ids.add(own);
    const call: OpenCall = {
      ...{ index, id: own, givenId: "", name: "", kind },
      ...{ waiting: "", hasText: false, only: "" },
    };
    this.#calls.push(call);
    if (number !== null) this.#byIndex.set(number, call);
    return call;
  }

  #noteId(call: OpenCall, id: string): void {
    call.givenId = id;
    this.#byId.set(id, call);
  }
}

/**
 * The calls of a whole message, mended; the same list where they lack nothing. A message that was
 * cut is not whole.
 */
export function mendWholeCalls(
  calls: Json[],
  { ownId, isWhole }: { ownId: string; isWhole: boolean },
): Json[] {
  const ids = new Set<string>();
  const mended = calls.filter(isObject).map((sent, index) => {
    const { id: given, name, kind, text, outer, inner } = readPiece(sent);
    const id = given !== "" && !ids.has(given) ? given : `${ownId}_${index}`;
    ids.add(id);
    const written = isWhole && text.trim() === "" && kind === "function" ? `${text}{}` : text;
    const { type = kind } = outer;
    const whole = {
      ...outer,
      id,
      type,
      [kind]: { ...inner, name, [textField({ kind })]: written },
    };
    return lacksNothing({ ...sent, index }, { index, id, name, kind }, written) ? sent : whole;
  });
  const isSame = mended.length === calls.length && mended.every((call, at) => call === calls[at]);
  return isSame ? calls : mended;
}

function readPiece(piece: JsonObject): CallPiece {
  const { index, id, type, custom, function: called, ...others } = piece;
  const kind = isObject(custom) ? "custom" : "function";
  // Some servers have no object around the name and the arguments.
  const nested = isObject(custom) ? custom : isObject(called) ? called : null;
  const { name, ...written } = nested ?? others;
  const { [textField({ kind })]: text, ...inner } = written;
  const given = typeof type === "string" && type !== "" ? { type } : {};
  return {
    index: callIndex(index),
    id: typeof id === "string" ? id : typeof id === "number" ? String(id) : "",
    name: typeof name === "string" ? name : "",
    text: textOf(text),
    kind,
    outer: nested ? { ...others, ...given } : { ...inner, ...given },
    inner: nested ? inner : {},
  };
}

function textField({ kind }: Pick<OpenCall, "kind">): string {
  return kind === "custom" ? "input" : "arguments";
}

/** Arguments as text; some servers send them as an object. */
function textOf(value: Json | undefined): string {
  if (typeof value === "string") return value;
  return value === undefined || value === null ? "" : JSON.stringify(value);
}

/** A number, also one in a string. */
function callIndex(value: Json | undefined): number | null {
  const index = typeof value === "string" && /^\d{1,9}$/.test(value) ? Number(value) : value;
  return typeof index === "number" && Number.isSafeInteger(index) ? index : null;
}

function firstPiece(
  { index, id, name, kind }: OpenCall,
  { text, outer, inner }: Pick<CallPiece, "text" | "outer" | "inner">,
): JsonObject {
  const { type = kind, ...others } = outer;
  const called = { ...inner, name, [textField({ kind })]: text };
  return { ...others, index, id, type, [kind]: called };
}

/** Whether a call, or the first piece of one, has all that a reader relies on. */
function lacksNothing(
  sent: JsonObject,
  { index, id, name, kind }: Pick<OpenCall, "index" | "id" | "name" | "kind">,
  text: string,
): boolean {
  const called = sent[kind];
  return sent.index === index && sent.id === id && typeof sent.type === "string" &&
    sent.type !== "" && isObject(called) && called.name === name &&
    called[textField({ kind })] === text;
}

function noteText(call: OpenCall, text: string): void {
  if (text.trim() === "") return;
  call.only = call.hasText ? null : text;
  call.hasText = true;
}

/**
 * Whether a piece belongs to another call than the one that its number or its id names. A new id
 * alone does not tell: some servers send one with each piece.
 */
function isOther(
  known: OpenCall,
  { id, name, text }: Pick<CallPiece, "id" | "name" | "text">,
): boolean {
  if (name === "" || known.name === "" || isRepetition(known, { id, name, text })) return false;
  if (id !== "" && known.givenId !== "" && id !== known.givenId) return true;
  if (name !== known.name) return true;
  return text.trim() !== "" && known.only !== null && isWholeJson(known.only);
}

/** Whether a piece says again what a call has said whole. */
function isRepetition(
  { givenId, name, only }: OpenCall,
  piece: Pick<CallPiece, "id" | "name" | "text">,
): boolean {
  return givenId !== "" && piece.id === givenId && piece.name === name && name !== "" &&
    piece.text !== "" && piece.text === only && isWholeJson(only);
}

function isWholeJson(text: string): boolean {
  try {
    return isObject(parseJson(text));
  } catch {
    return false;
  }
}

import { isObject, type Json, type JsonObject } from "../../../base/json.ts";

/** A call of a function, as far as it has arrived. */
export interface ChatCall {
  id: string;
  name: string;
  /** Arguments that have not been passed on yet. */
  written: string;
}

/**
 * Puts the calls of a chat stream together. Servers send a call whole or in pieces, several at
 * once, with an index or without, and some give every call the index 0.
 */
export class CallPieces {
  readonly #byIndex = new Map<number, ChatCall>();
  readonly #byId = new Map<string, ChatCall>();
  #last: ChatCall | null = null;

  /** Adds a piece to its call, and returns that; null for what is no piece of a call. */
  add(piece: Json): ChatCall | null {
    if (!isObject(piece)) return null;
    const called = isObject(piece.function) ? piece.function : piece;
    const id = textOf(piece.id);
    const name = textOf(called.name);
    const call = this.#find(piece.index, { id, name });
    call.id ||= id;
    call.name ||= name;
    call.written += argumentsOf(called);
    if (call.id !== "") this.#byId.set(call.id, call);
    this.#last = call;
    return call;
  }

  #find(index: Json | undefined, { id, name }: { id: string; name: string }): ChatCall {
    if (typeof index === "number") {
      const known = this.#byIndex.get(index);
      // Another id alone is not another call: some servers send a new one with each piece.
      const isOther = known && id !== "" && name !== "" && known.id !== "" && known.id !== id;
      if (known && !isOther) return known;
    } else {
      const known = id === "" ? null : this.#byId.get(id);
      if (known) return known;
      if (this.#last && name === "") return this.#last;
    }
    const call = { id: "", name: "", written: "" };
    if (typeof index === "number") this.#byIndex.set(index, call);
    return call;
  }
}

function textOf(value: Json | undefined): string {
  return typeof value === "string" ? value : "";
}

/** Some servers send the arguments as an object. */
function argumentsOf({ arguments: written }: JsonObject): string {
  if (typeof written === "string") return written;
  return isObject(written) ? JSON.stringify(written) : "";
}

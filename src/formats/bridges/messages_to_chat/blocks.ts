import { type JsonObject, plainNumber, plainText } from "../../../base/json.ts";
import { HeldText } from "../held_text.ts";
import { readCall } from "./written.ts";

interface Block {
  kind: "thinking" | "text" | "tool";
  id: string;
  name: string;
  /** The signature of a block of thinking, which is sent at its end. */
  signature: string;
  /** The text that has not been sent. */
  pending: string;
  isStarted: boolean;
}

/** Memory that a tool call takes besides its text, in characters. */
const blockChars = 128;

/**
 * The content blocks of a message that streams. Anthropic's blocks come one after the other, while
 * the calls of a chat may come at once: the first call is sent as it arrives, and what comes
 * beside it waits for the end of the response.
 */
export class MessageBlocks {
  readonly #send: (type: string, fields: JsonObject) => void;
  /** The call of each number. */
  readonly #calls = new Map<number, Block>();
  #open: Block | null = null;
  #waiting: Block[] = [];
  readonly #held = new HeldText();
  #position = 0;

  constructor(send: (type: string, fields: JsonObject) => void) {
    this.#send = send;
  }

  get hasCalls(): boolean {
    return this.#calls.size > 0;
  }

  /** Adds a text: to the last block where that is one. */
  addText(text: string): void {
    this.#write(this.#lastOf("text"), text);
  }

  /** Adds thinking in the same way. */
  addThinking(text: string, signature: string): void {
    const block = this.#lastOf("thinking");
    block.signature = signature;
    this.#write(block, text);
  }

  #lastOf(kind: "thinking" | "text"): Block {
    const last = this.#waiting.at(-1) ?? this.#open;
    return last?.kind === kind ? last : this.#place(newBlock(kind));
  }

  /** Adds a piece of a call; the first one has its id and its name. */
  addCall(piece: JsonObject): void {
    const { name, text } = readCall(piece);
    const index = plainNumber(piece.index);
    const block = this.#calls.get(index) ?? this.#newCall(index, { id: plainText(piece.id), name });
    this.#write(block, text);
  }

  /** Ends the open block, and sends what has waited. */
  end(): void {
    this.#close();
    for (const block of this.#waiting) {
      this.#open = block;
      this.#write(block, "");
      this.#close();
    }
    this.#waiting = [];
  }

  #newCall(index: number, { id, name }: Pick<Block, "id" | "name">): Block {
    const block = { ...newBlock("tool"), id, name };
    this.#held.add(blockChars);
    this.#calls.set(index, block);
    return this.#place(block);
  }

  #place(block: Block): Block {
    if (this.#open?.kind === "tool") this.#waiting.push(block);
    else {
      this.#close();
      this.#open = block;
    }
    return block;
  }

  #write(block: Block, text: string): void {
    block.pending += text;
    if (block !== this.#open) return this.#held.add(text.length);
    if (!block.isStarted) this.#startBlock(block);
    if (block.pending === "") return;
    this.#sendDelta(deltaOf(block));
    block.pending = "";
  }

  #sendDelta(delta: JsonObject): void {
    this.#send("content_block_delta", { index: this.#position, delta });
  }

  #startBlock(block: Block): void {
    block.isStarted = true;
    this.#send("content_block_start", { index: this.#position, content_block: startOf(block) });
  }

  #close(): void {
    const block = this.#open;
    if (!block) return;
    if (!block.isStarted) this.#startBlock(block);
    if (block.pending !== "") this.#sendDelta(deltaOf(block));
    const { signature } = block;
    if (signature !== "") this.#sendDelta({ type: "signature_delta", signature });
    this.#send("content_block_stop", { index: this.#position });
    this.#position++;
    this.#open = null;
  }
}

function newBlock(kind: Block["kind"]): Block {
  return { kind, id: "", name: "", signature: "", pending: "", isStarted: false };
}

function startOf({ kind, id, name }: Block): JsonObject {
  switch (kind) {
    case "thinking":
      return { type: "thinking", thinking: "", signature: "" };
    case "text":
      return { type: "text", text: "" };
    case "tool":
      return { type: "tool_use", id, name, input: {} };
  }
}

function deltaOf({ kind, pending }: Block): JsonObject {
  switch (kind) {
    case "thinking":
      return { type: "thinking_delta", thinking: pending };
    case "text":
      return { type: "text_delta", text: pending };
    case "tool":
      return { type: "input_json_delta", partial_json: pending };
  }
}

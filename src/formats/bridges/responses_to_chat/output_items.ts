import type { Json, JsonObject } from "../../../base/json.ts";
import { customInput } from "../custom_tool.ts";
import { type ChatReasoning, packReasoning } from "./reasoning.ts";
import type { BridgedTool } from "./tools.ts";

/** Sends an event of the stream; `fields` are those besides its type and number. */
export type EmitEvent = (type: string, fields: JsonObject) => void;

/** The place of an item in the output. */
export interface ItemPlace {
  id: string;
  output_index: number;
  emit: EmitEvent;
}

/** An item of the output, which sends its events as it grows. */
export interface OutputItem {
  /** Ends the item, and returns it whole. */
  close(status: "completed" | "incomplete"): JsonObject;
}

/** A part of a message, of text or of a refusal. */
interface MessagePart {
  type: "output_text" | "refusal";
  text: string;
  logprobs: Json[];
  annotations: Json[];
}

function partObject({ type, text, logprobs, annotations }: MessagePart): JsonObject {
  return type === "refusal"
    ? { type, refusal: text }
    : { type, text, annotations: [...annotations], logprobs: [...logprobs] };
}

/** The message of a response. */
export class MessageItem implements OutputItem {
  readonly #place: ItemPlace;
  readonly #done: JsonObject[] = [];
  #part: MessagePart | null = null;

  constructor(place: ItemPlace) {
    this.#place = place;
    const { id, output_index, emit } = place;
    const item = { id, type: "message", status: "in_progress", role: "assistant", content: [] };
    emit("response.output_item.added", { output_index, item });
  }

  addText(delta: string, logprobs: readonly Json[]): void {
    const part = this.#partOf("output_text");
    part.text += delta;
    part.logprobs.push(...logprobs);
    this.#emit("response.output_text.delta", { delta, logprobs: [...logprobs] });
  }

  addRefusal(delta: string): void {
    this.#partOf("refusal").text += delta;
    this.#emit("response.refusal.delta", { delta });
  }

  addAnnotation(annotation: JsonObject): void {
    const { annotations } = this.#partOf("output_text");
    const annotation_index = annotations.push(annotation) - 1;
    this.#emit("response.output_text.annotation.added", { annotation_index, annotation });
  }

  close(status: "completed" | "incomplete"): JsonObject {
    this.#closePart();
    const { id, output_index, emit } = this.#place;
    const item = { id, type: "message", status, role: "assistant", content: this.#done };
    emit("response.output_item.done", { output_index, item });
    return item;
  }

  #partOf(type: MessagePart["type"]): MessagePart {
    if (this.#part?.type === type) return this.#part;
    this.#closePart();
    const part = { type, text: "", logprobs: [], annotations: [] };
    this.#part = part;
    this.#emit("response.content_part.added", { part: partObject(part) });
    return part;
  }

  #closePart(): void {
    if (!this.#part) return;
    const { type, text, logprobs } = this.#part;
    const part = partObject(this.#part);
    if (type === "refusal") this.#emit("response.refusal.done", { refusal: text });
    else this.#emit("response.output_text.done", { text, logprobs: [...logprobs] });
    this.#emit("response.content_part.done", { part });
    this.#done.push(part);
    this.#part = null;
  }

  #emit(type: string, fields: JsonObject): void {
    const { id: item_id, output_index, emit } = this.#place;
    emit(type, { item_id, output_index, content_index: this.#done.length, ...fields });
  }
}

/**
 * The reasoning of the model. Where the caller asked for a summary, the reasoning is sent as one,
 * for clients that show nothing else.
 */
export class ReasoningItem implements OutputItem {
  readonly #place: ItemPlace;
  readonly #field: ChatReasoning["field"];
  readonly #asSummary: boolean;
  readonly #blocks: Json[] = [];
  #text = "";

  constructor(
    place: ItemPlace,
    { field, asSummary }: { field: ChatReasoning["field"]; asSummary: boolean },
  ) {
    this.#place = place;
    this.#field = field;
    this.#asSummary = asSummary;
    const { id, output_index, emit } = place;
    const item = { id, type: "reasoning", summary: [], encrypted_content: null };
    emit("response.output_item.added", { output_index, item });
    this.#emitPart("added");
  }

  addText(delta: string): void {
    this.#text += delta;
    this.#emitText("delta", { delta });
  }

  addBlocks(blocks: readonly Json[]): void {
    this.#blocks.push(...blocks);
  }

  close(status: "completed" | "incomplete"): JsonObject {
    const text = this.#text;
    this.#emitText("done", { text });
    this.#emitPart("done");
    const { id, output_index, emit } = this.#place;
    const part = this.#part();
    const item = {
      id,
      type: "reasoning",
      status,
      summary: this.#asSummary ? [part] : [],
      ...(this.#asSummary ? {} : { content: [part] }),
      encrypted_content: packReasoning({ field: this.#field, text, blocks: this.#blocks }),
    };
    emit("response.output_item.done", { output_index, item });
    return item;
  }

  #part(): JsonObject {
    return { type: this.#asSummary ? "summary_text" : "reasoning_text", text: this.#text };
  }

  #emitText(step: "delta" | "done", fields: JsonObject): void {
    const kind = this.#asSummary ? "reasoning_summary_text" : "reasoning_text";
    this.#emit(`response.${kind}.${step}`, fields);
  }

  #emitPart(step: "added" | "done"): void {
    const kind = this.#asSummary ? "reasoning_summary_part" : "content_part";
    this.#emit(`response.${kind}.${step}`, { part: this.#part() });
  }

  #emit(type: string, fields: JsonObject): void {
    const { id: item_id, output_index, emit } = this.#place;
    const index = this.#asSummary ? { summary_index: 0 } : { content_index: 0 };
    emit(type, { item_id, output_index, ...index, ...fields });
  }
}

/** A call of a tool, as the upstream began it. */
interface CallHead {
  call_id: string;
  tool: Pick<BridgedTool, "kind" | "name" | "namespace">;
}

/** A call of a tool. The input of a custom tool is known only at its end. */
export class CallItem implements OutputItem {
  readonly #place: ItemPlace;
  readonly #fields: JsonObject;
  readonly #isCustom: boolean;
  #written = "";

  constructor(place: ItemPlace, { call_id, tool: { kind, name, namespace } }: CallHead) {
    const { id, output_index, emit } = place;
    this.#place = place;
    this.#isCustom = kind === "custom";
    this.#fields = {
      id,
      type: this.#isCustom ? "custom_tool_call" : "function_call",
      call_id,
      name,
      ...(namespace === null ? {} : { namespace }),
    };
    const started = this.#isCustom ? { input: "" } : { arguments: "" };
    const item = { ...this.#fields, status: "in_progress", ...started };
    emit("response.output_item.added", { output_index, item });
  }

  addArguments(delta: string): void {
    if (delta === "") return;
    this.#written += delta;
    if (!this.#isCustom) this.#emit("response.function_call_arguments.delta", { delta });
  }

  close(status: "completed" | "incomplete"): JsonObject {
    // Clients parse the arguments, also of a function that takes none.
    if (status === "completed" && this.#written === "") this.addArguments("{}");
    const { output_index, emit } = this.#place;
    const item = { ...this.#fields, status, ...this.#closeArguments() };
    emit("response.output_item.done", { output_index, item });
    return item;
  }

  #closeArguments(): JsonObject {
    if (!this.#isCustom) {
      const { name = "" } = this.#fields;
      const written = { arguments: this.#written };
      this.#emit("response.function_call_arguments.done", { ...written, name });
      return written;
    }
    const input = customInput(this.#written);
    this.#emit("response.custom_tool_call_input.delta", { delta: input });
    this.#emit("response.custom_tool_call_input.done", { input });
    return { input };
  }

  #emit(type: string, fields: JsonObject): void {
    const { id: item_id, output_index, emit } = this.#place;
    emit(type, { item_id, output_index, ...fields });
  }
}

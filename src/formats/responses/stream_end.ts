import { isObject, type JsonObject, plainText } from "../../base/json.ts";
import { endsInText, type ResponseClosing, withPartText, withText } from "./closing.ts";
import type { OpenItem } from "./open_item.ts";
import { isCallersCall } from "./output_items.ts";
import type { OutputState } from "./output_state.ts";
import { type FrameWriter } from "./stream_frames.ts";
import { itemEvents, partEndings, textDelta } from "./stream_events.ts";

/** An event that ends a text or its item, held until it is known whether a notice comes before. */
export interface HeldEvent {
  type: string;
  /** The index of the event's item. */
  index: number;
  event: JsonObject;
  /** The text of the event as it was sent, where nothing in it changed; else null. */
  text: string | null;
}

/** Writes the frames that end the output of a stream. */
export class OutputEnd {
  readonly #state: OutputState;
  readonly #writer: FrameWriter;
  readonly #held: readonly HeldEvent[];

  constructor(state: OutputState, writer: FrameWriter, held: readonly HeldEvent[]) {
    this.#state = state;
    this.#writer = writer;
    this.#held = held;
  }

  /**
   * The frames that end every item, with the closing's notice; `own` makes a message for it where
   * no text is open, and `isCut` tells whether the output bound ended the response.
   */
  write(
    closing: ResponseClosing,
    { isCut, own }: { isCut: boolean; own: (text: string) => JsonObject },
  ): string {
    const target = closing.notice === "" ? null : this.#openText();
    let frames = target ? this.#addNotice(target, closing.notice) : "";
    for (const held of this.#held) {
      const isTarget = target?.index === held.index;
      frames += isTarget ? this.#amended(held, closing) : this.#passOn(held);
    }
    const items = this.#state.items();
    const status = isCut && !closing.isCompleted ? "incomplete" : "completed";
    for (const open of items) {
      for (const event of this.#endings(open, status)) frames += this.#writer.add(event);
    }
    if (closing.notice === "" || target) return frames;
    const index = (items.at(-1)?.index ?? -1) + 1;
    const message = own(closing.notice);
    const added = this.#state.open(index, message);
    added.isDone = true;
    for (const event of itemEvents(message, index)) frames += this.#writer.add(event);
    return frames;
  }

  /** The last item, where it is a message whose last text has not ended for the caller. */
  #openText(): OpenItem | null {
    const last = this.#state.items().at(-1);
    if (!last || !endsInText(last.now())) return null;
    if (!last.isSent) return last;
    const [at, part] = last.lastPart() ?? [0, null];
    const isHeld = (type: string) =>
      this.#held.some((held) =>
        held.type === type && held.index === last.index &&
        (type === "response.output_item.done" || (held.event.content_index ?? 0) === at)
      );
    const isOpen = (!last.isDone || isHeld("response.output_item.done")) &&
      (!part?.isDone || isHeld("response.content_part.done")) &&
      (!part?.isTextDone || isHeld("response.output_text.done"));
    return isOpen && part ? last : null;
  }

  /** The delta with the notice, which the item then has too. */
  #addNotice(open: OpenItem, notice: string): string {
    const [at] = open.lastPart() ?? [0];
    open.append(notice);
    if (open.isDone || !open.isSent) open.item = withText(open.item, notice, false);
    if (!open.isSent) return "";
    const place = { item_id: plainText(open.item.id), output_index: open.index, content_index: at };
    return this.#writer.add(textDelta(notice, place));
  }

  #passOn({ event, text }: HeldEvent): string {
    return this.#writer.passOn(event, text);
  }

  /** A held event with the notice in its text. */
  #amended({ type, event, text }: HeldEvent, { notice, isCompleted }: ResponseClosing): string {
    const { part, item } = event;
    if (type === "response.output_text.done") {
      return this.#writer.passOn(withPartText(event, notice), null);
    }
    if (isObject(part)) {
      return this.#writer.passOn({ ...event, part: withPartText(part, notice) }, null);
    }
    if (!isObject(item)) return this.#writer.passOn(event, text);
    return this.#writer.passOn({ ...event, item: withText(item, notice, isCompleted) }, null);
  }

  /** The events that an item lacks at the end of its stream. */
  *#endings(open: OpenItem, status: string): Generator<JsonObject> {
    if (open.isDone) return;
    const item: JsonObject = { ...open.now() };
    if (item.type !== "reasoning") item.status = status;
    open.item = item;
    if (!open.isSent) {
      open.isDone = true;
      return yield* itemEvents(item, open.index);
    }
    // Clients would run a call whose arguments have been cut.
    if (isCallersCall(item) && status === "incomplete" && !open.isTextDone) return;
    const place = { item_id: plainText(item.id), output_index: open.index };
    for (const [at, part] of open.parts) {
      if (part.isDone) continue;
      const here = { ...place, content_index: at };
      yield* partEndings(open.partNow(at, part), here, part);
    }
    if (item.type === "function_call" && !open.isTextDone) {
      const { arguments: written = "", name = "" } = item;
      yield { type: "response.function_call_arguments.done", ...place, arguments: written, name };
    }
    open.isDone = true;
    yield { type: "response.output_item.done", output_index: open.index, item };
  }
}

import { decodeUtf8 } from "../base/utf8.ts";
import type { Committer } from "../store/commit.ts";
import { isEventKey, isOutboxKey } from "../store/keys.ts";
import type { Write } from "../store/kv.ts";
import { decodeOutbox, type OutboxRow } from "./outbox.ts";

/** An event whose deliveries are not written yet. */
export interface PendingEvent {
  id: string;
  /** The event as it is stored: JSON. */
  text: string;
  row: OutboxRow;
  /** The outbox row's, to check when it is taken away. */
  version: string;
}

/** A committer that tells one listener of every event that lands through it. */
export interface OutboxNotifier {
  committer: Committer;
  /** Who wants to know; before that nobody is told, and the events wait in the store. */
  listen(wake: (events: PendingEvent[]) => void): void;
}

/** Saves the dispatcher from asking: the store stays the truth, and finds what is not told. */
export function createOutboxNotifier(inner: Committer): OutboxNotifier {
  let wake = (_: PendingEvent[]) => {};
  const committer: Committer = {
    ...inner,
    async commit(write) {
      const version = await inner.commit(write);
      if (version === null) return null;
      const events = eventsOf(write, version);
      if (events.length > 0) wake(events);
      return version;
    },
  };
  return { committer, listen: (listener) => void (wake = listener) };
}

/** The events that have landed with a write. What is left of a wide event is not one of them. */
function eventsOf({ sets }: Write, version: string): PendingEvent[] {
  return sets.flatMap(({ key, value }) => {
    if (!isOutboxKey(key)) return [];
    const id = String(key[1]);
    const event = sets.find((set) => isEventKey(set.key) && set.key[2] === id);
    const text = event && decodeUtf8(event.value);
    return text ? [{ id, text, row: decodeOutbox(value), version }] : [];
  });
}

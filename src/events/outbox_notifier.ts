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
  /** The version of the outbox row, checked when the row is deleted. */
  version: string;
}

/** A committer that notifies one listener of every event that it commits. */
interface OutboxNotifier {
  committer: Committer;
  /** Registers the listener. Events committed before wait in the store. */
  listen(wake: (events: PendingEvent[]) => void): void;
}

/**
 * Saves the dispatcher from polling. The store stays authoritative: what is not notified is found
 * there.
 */
export function createOutboxNotifier(inner: Committer): OutboxNotifier {
  let wake = (_: PendingEvent[]) => {};
  const committer: Committer = {
    ...inner,
    commit(write) {
      const committed = inner.commit(write);
      if (!write.sets.some(({ key }) => isOutboxKey(key))) return committed;
      return committed.then((version) => {
        if (version !== null) wake(eventsOf(write, version));
        return version;
      });
    },
  };
  return { committer, listen: (listener) => void (wake = listener) };
}

/** Returns the events that were committed with a write, not the remainder of a wide event. */
function eventsOf({ sets }: Write, version: string): PendingEvent[] {
  return sets.flatMap(({ key, value }) => {
    if (!isOutboxKey(key)) return [];
    const id = String(key[1]);
    const event = sets.find((set) => isEventKey(set.key) && set.key[2] === id);
    const text = event && decodeUtf8(event.value);
    return text ? [{ id, text, row: decodeOutbox(value), version }] : [];
  });
}

import type { EventSourceMessage } from "eventsource-parser";

/** An event as a stream's parser gives it. Absent names are written out: readers compare shapes. */
export function sentEvent(value: unknown, event?: string): EventSourceMessage {
  return { data: JSON.stringify(value), event, id: undefined };
}

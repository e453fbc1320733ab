import type { EventSourceMessage } from "eventsource-parser";

/** An event with this value as its data, as a parser of streams gives it. */
export function sentEvent(value: unknown, event?: string): EventSourceMessage {
  return { data: JSON.stringify(value), event, id: undefined };
}

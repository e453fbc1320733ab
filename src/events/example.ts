import { z } from "zod";
import type { Subject } from "./event.ts";
import { catalogue, type EventType, eventTypes } from "./catalogue.ts";

/** Whether a text is the name of an event. */
export function isEventType(text: string): text is EventType {
  return eventTypes.includes(text);
}

/** Returns the examples of an event's own fields, as its catalogue has them. */
export function exampleData(data: z.ZodObject): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(data.shape).map(([name, field]) => [name, exampleIn(field)]),
  );
}

/** Returns an example of an event's data, valid for its type. */
export function exampleOfType<T extends EventType>(type: T) {
  const data = catalogue[type];
  return data.parse(exampleData(data));
}

/** The kind of subject that an event of a type is about. */
export function subjectTypeOf(type: string): Subject["type"] {
  const [family = ""] = type.split(".");
  const known = ["balance", "usage", "request", "authorization", "integration"] as const;
  return known.find((one) => one === family) ?? (family === "proxy" ? "request" : "project");
}

function exampleIn(field: unknown): unknown {
  if (!(field instanceof z.ZodType)) return undefined;
  const own = field.meta();
  if (own && "example" in own) return own.example;
  return field instanceof z.ZodNullable ? exampleIn(field.unwrap()) : undefined;
}

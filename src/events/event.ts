import { z } from "zod";
import { idOf, metadata, time } from "../base/fields.ts";
import type { JsonObject } from "../base/json.ts";
import type { EventData, EventType } from "./catalogue.ts";

const triggerSchema = z.object({
  source: z.enum(["api", "proxy", "console", "checkout", "system"]),
  actorType: z.enum(["paywall-owner", "end-user", "system"]),
  actorId: z.string().meta({ description: "The id of an API key, of an owner or of an end user." }),
}).meta({ id: "Trigger", description: "What caused the event." });
/** What caused an event. */
export type Trigger = z.output<typeof triggerSchema>;

const subjectSchema = z.object({
  type: z.enum(["project", "balance", "usage", "request", "authorization", "integration"]),
  id: z.string(),
  externalId: z.string().meta({
    description: "The user, as the caller names them; a subject without a user has its own id.",
  }),
}).meta({ id: "Subject", description: "What the event is about." });
/** What an event is about. */
export type Subject = z.output<typeof subjectSchema>;

/** An event before it has an id and a time. */
export interface NewEvent<T extends EventType = EventType> {
  type: T;
  trigger: Trigger;
  subject: Subject;
  data: EventData<T>;
  /** The operation's own metadata. */
  metadata: JsonObject;
}

const whose = {
  paywallId: idOf("pw", "The project that the event happened in."),
  ownerUserId: z.string().meta({ description: "The project's owner." }),
};

/** The schema of an event as subscribers receive it, with the `data` of its type. */
export const eventSchemaOf = <S extends z.ZodObject>(type: z.ZodType<string>, data: S) =>
  z.object({
    id: idOf("evt", "The event's id, the same in every delivery."),
    ...whose,
    type,
    version: z.string().meta({ description: "The version of the event's shape." }),
    status: z.literal("pending"),
    createdAt: time,
    trigger: triggerSchema,
    subject: subjectSchema,
    data,
    metadata: metadata.meta({ description: "The operation's own `metadata`." }),
  });
/** Any event. */
export const eventSchema = eventSchemaOf(z.string(), z.looseObject(whose)).meta({ id: "Event" });
/** An event as subscribers receive it. */
export type Event = z.output<typeof eventSchema>;

/** The fields of every event's data. */
export const commonData = whose;

/** Creates an event; the compiler checks its data against its type. */
export function newEvent<T extends EventType>(
  type: T,
  about: { trigger: Trigger; subject: Subject; metadata?: JsonObject | null },
  data: EventData<T>,
): NewEvent<T> {
  const { trigger, subject, metadata } = about;
  return { type, trigger, subject, data, metadata: metadata ?? {} };
}

/** The trigger of what the service does by itself. */
export const bySystem: Trigger = { source: "system", actorType: "system", actorId: "farebox" };

import { z } from "zod";
import { idOf, metadata, time } from "../base/fields.ts";
import type { JsonObject } from "../base/json.ts";
import type { EventData, EventType } from "./catalogue.ts";

const triggerSchema = z.object({
  source: z.enum(["api", "proxy", "console", "checkout", "system"]),
  actorType: z.enum(["paywall-owner", "end-user", "system"]),
  actorId: z.string().meta({ description: "An API key's id, an owner's or an end user's." }),
}).meta({ id: "Trigger", description: "What made it happen." });
/** What made it happen. */
export type Trigger = z.output<typeof triggerSchema>;

const subjectSchema = z.object({
  type: z.enum(["project", "balance", "usage", "request", "authorization", "integration"]),
  id: z.string(),
  externalId: z.string().meta({
    description: "The user as the caller names them; what has no user is named by its own id.",
  }),
}).meta({ id: "Subject", description: "What it is about." });
/** What it is about. */
export type Subject = z.output<typeof subjectSchema>;

/** Something that happened, before it has a name and a time. */
export interface NewEvent<T extends EventType = EventType> {
  type: T;
  trigger: Trigger;
  subject: Subject;
  data: EventData<T>;
  /** The operation's own metadata. */
  metadata: JsonObject;
}

const whose = {
  paywallId: idOf("pw", "The project that it happened in."),
  ownerUserId: z.string().meta({ description: "The project's owner." }),
};

/** An event as subscribers get it, with what its type says in `data`. */
export const eventSchemaOf = <S extends z.ZodObject>(type: z.ZodType<string>, data: S) =>
  z.object({
    id: idOf("evt", "The event: the same in every delivery of it."),
    ...whose,
    type,
    version: z.string().meta({ description: "Of the event's shape." }),
    status: z.literal("pending"),
    createdAt: time,
    trigger: triggerSchema,
    subject: subjectSchema,
    data,
    metadata: metadata.meta({ description: "The operation's own `metadata`." }),
  });
/** Any event. */
export const eventSchema = eventSchemaOf(z.string(), z.looseObject(whose)).meta({ id: "Event" });
/** An event as subscribers get it. */
export type Event = z.output<typeof eventSchema>;

/** What every event's data says. */
export const commonData = whose;

/** An event, its data checked against its type by the compiler. */
export function newEvent<T extends EventType>(
  type: T,
  about: { trigger: Trigger; subject: Subject; metadata?: JsonObject | null },
  data: EventData<T>,
): NewEvent<T> {
  const { trigger, subject, metadata } = about;
  return { type, trigger, subject, data, metadata: metadata ?? {} };
}

/** Nobody's doing: what the service ends by itself. */
export const bySystem: Trigger = { source: "system", actorType: "system", actorId: "farebox" };

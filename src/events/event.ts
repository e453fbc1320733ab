import type { JsonObject } from "../base/json.ts";
import type { EventData, EventType } from "./catalogue.ts";

/** What made it happen. */
export interface Trigger {
  source: "api" | "proxy" | "console" | "checkout" | "system";
  actorType: "paywall-owner" | "end-user" | "system";
  actorId: string;
}

/** What it is about. */
export interface Subject {
  type: "project" | "balance" | "usage" | "request" | "authorization" | "integration";
  id: string;
  /** The caller's name of the user; null where none is concerned. */
  externalId: string | null;
}

/** Something that happened, before it has a name and a time. */
export interface NewEvent<T extends EventType = EventType> {
  type: T;
  trigger: Trigger;
  subject: Subject;
  data: EventData<T>;
  /** The operation's own metadata. */
  metadata: JsonObject;
}

/** An event as subscribers get it. */
export interface Event {
  id: string;
  paywallId: string;
  ownerUserId: string;
  type: string;
  version: string;
  status: "pending";
  /** ISO 8601. */
  createdAt: string;
  trigger: Trigger;
  subject: Subject;
  data: { paywallId: string; ownerUserId: string } & Record<string, unknown>;
  metadata: JsonObject;
}

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

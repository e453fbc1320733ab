import type { z } from "zod";

/** A chapter of the API document. */
export type Tag =
  | "Chat"
  | "Money"
  | "Authorization"
  | "Webhooks"
  | "Projects"
  | "Users"
  | "Operations"
  | "Health";

/** Whose key opens an operation: a project's with that scope, the operator's, Prometheus' token, or none is needed. */
export type Access = "chat" | "money" | "webhooks" | "operator" | "metrics" | "anyone";

/** Real values, by what they show. */
export type Examples = Readonly<Record<string, unknown>>;

/** A body in one media type. For a stream of events: the schema of one event's data. */
export interface Content {
  schema: z.ZodType;
  examples: Examples;
}

/** An answer that is no error. */
export interface Answer {
  description: string;
  /** By media type. */
  content: Readonly<Record<string, Content>>;
  headers?: z.ZodObject;
}

/** An error that an operation can give, and when. */
export interface ErrorCase {
  status: number;
  /** `anyCode` where another server chooses it. */
  code: string | null | typeof anyCode;
  when: string;
  /** That it has; the others of its status may have them or not, where they are optional. */
  headers?: z.ZodObject;
}
/** The code is not ours to say. */
export const anyCode: unique symbol = Symbol("any code");

/** What one method of one address does: everything that the API document says of it. */
export interface Operation {
  /** Its name in generated clients. */
  operationId: string;
  tag: Tag;
  summary: string;
  description?: string;
  access: Access;
  path?: z.ZodObject;
  query?: z.ZodObject;
  headers?: z.ZodObject;
  /** The schema that the route parses the body with, and whether it may be left out. */
  body?: Content & { optional?: boolean };
  answers: Readonly<Record<number, Answer>>;
  /** Its own; those that every operation with such a body or key can give are added. */
  errors?: readonly ErrorCase[];
}

/** The methods that operations have. */
export type Method = "GET" | "POST" | "PATCH" | "DELETE";

/** Operations by address, written as in the route map, and method. */
export type Operations = Readonly<Record<string, Partial<Record<Method, Operation>>>>;

/** An answer in JSON alone. */
export function answers(
  description: string,
  schema: z.ZodType,
  examples: Examples,
  headers?: z.ZodObject,
): Answer {
  const content = { "application/json": { schema, examples } };
  return { description, content, ...(headers ? { headers } : {}) };
}

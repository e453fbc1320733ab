import type { z } from "zod";

/** A chapter of the API document. */
export type DocTag =
  | "Chat"
  | "Money"
  | "Authorization"
  | "Webhooks"
  | "Projects"
  | "Users"
  | "Operations"
  | "Health";

/**
 * Whose key opens an operation: a project's with that scope, the operator's, Prometheus' token, or
 * none is needed.
 */
export type EndpointAuth = "chat" | "money" | "webhooks" | "operator" | "metrics" | "anyone";

/** Real values, by what they show. */
export type DocExamples = Readonly<Record<string, unknown>>;

/** A body in one media type. For a stream of events: the schema of one event's data. */
export interface DocContent {
  schema: z.ZodType;
  examples: DocExamples;
}

/** An answer that is no error. */
export interface ResponseDoc {
  description: string;
  /** By media type. */
  content: Readonly<Record<string, DocContent>>;
  headers?: z.ZodObject;
}

/** An error that an operation can give, and when. */
export interface ErrorDoc {
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
export interface EndpointDoc {
  /** Its name in generated clients. */
  operationId: string;
  tag: DocTag;
  summary: string;
  description?: string;
  access: EndpointAuth;
  path?: z.ZodObject;
  query?: z.ZodObject;
  headers?: z.ZodObject;
  /** The schema that the route parses the body with, and whether it may be left out. */
  body?: DocContent & { optional?: boolean };
  answers: Readonly<Record<number, ResponseDoc>>;
  /** Its own; those that every operation with such a body or key can give are added. */
  errors?: readonly ErrorDoc[];
}

/** The methods that operations have. */
export type HttpMethod = "GET" | "POST" | "PATCH" | "DELETE";

/** Operations by address, written as in the route map, and method. */
export type EndpointDocs = Readonly<Record<string, Partial<Record<HttpMethod, EndpointDoc>>>>;

/** An answer in JSON alone. */
export function responseDocs(
  description: string,
  schema: z.ZodType,
  examples: DocExamples,
  headers?: z.ZodObject,
): ResponseDoc {
  const content = { "application/json": { schema, examples } };
  return { description, content, ...(headers ? { headers } : {}) };
}

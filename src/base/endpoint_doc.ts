import type { z } from "zod";

/** A tag of the API document. */
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
 * Which key an endpoint needs: a project's with that scope, the operator's, Prometheus' token, or
 * none.
 */
export type EndpointAuth = "chat" | "money" | "webhooks" | "operator" | "metrics" | "anyone";

/** Example values, by what they show. */
type DocExamples = Readonly<Record<string, unknown>>;

/** A body in one media type. For a stream of events: the schema of one event's data. */
export interface DocContent {
  schema: z.ZodType;
  examples: DocExamples;
}

/** A successful response. */
export interface ResponseDoc {
  description: string;
  /** By media type. */
  content: Readonly<Record<string, DocContent>>;
  headers?: z.ZodObject;
}

/** An error that an endpoint can return, and when. */
export interface ErrorDoc {
  status: number;
  /** `anyCode` where another server chooses it. */
  code: string | null | typeof anyCode;
  when: string;
  /**
   * Headers of this error; other errors of the same status may have them or not, if they are
   * optional.
   */
  headers?: z.ZodObject;
}
/** The code is another server's. */
export const anyCode: unique symbol = Symbol("any code");

/** The documentation of one method of one path. */
export interface EndpointDoc {
  /** Its name in generated clients. */
  operationId: string;
  tag: DocTag;
  /** The operation that it is the same as, but for its path and key. */
  variantOf?: string;
  summary: string;
  description?: string;
  access: EndpointAuth;
  path?: z.ZodObject;
  query?: z.ZodObject;
  headers?: z.ZodObject;
  /** The schema that the route validates the body with, and whether the body is optional. */
  body?: DocContent & {
    optional?: boolean;
    /** Absent: JSON. */
    type?: "multipart/form-data";
  };
  answers: Readonly<Record<number, ResponseDoc>>;
  /**
   * The endpoint's own errors; those common to every endpoint with such a body or key are added.
   */
  errors?: readonly ErrorDoc[];
  /** The schema of error bodies, where it is not OpenAI's. */
  errorSchema?: z.ZodType;
}

/** The methods that endpoints have. */
export type HttpMethod = "GET" | "POST" | "PATCH" | "DELETE";

/** Endpoints by path, as in the route map, and method. */
export type EndpointDocs = Readonly<Record<string, Partial<Record<HttpMethod, EndpointDoc>>>>;

/** Documents a response in JSON. */
export function responseDocs(
  description: string,
  schema: z.ZodType,
  examples: DocExamples,
  headers?: z.ZodObject,
): ResponseDoc {
  const content = { "application/json": { schema, examples } };
  return { description, content, ...(headers ? { headers } : {}) };
}

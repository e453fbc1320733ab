import { ApiError, badRequest } from "../base/errors.ts";
import { headerText } from "../base/response.ts";
import { checkUserId, isNoUser } from "../base/user_id.ts";
import type { Caller } from "./auth.ts";
import { z } from "zod";
import { userIdCharsMax } from "../base/limits.ts";
import type { ErrorDoc } from "../base/endpoint_doc.ts";

/** A path segment that names the user, as sent: percent-encoded. */
export interface PathUser {
  segment: string;
  /** Words that are part of a path, so they cannot name a user there. */
  reserved: ReadonlySet<string>;
}

/** Where a request may name its end user, besides the header. */
interface UserSources {
  /** Absent where no field of the body does. */
  body?: unknown;
  path?: PathUser | undefined;
  query?: string | undefined;
}

/**
 * Returns the end user of a request: from the body, else a header, else the path, else the query,
 * else the key's default. Throws 400 `user_required` when there is none, 400 when it is malformed,
 * 403 when the key is bound to a different user. An empty name is none.
 */
export function endUser(caller: Caller, request: Request, sources: UserSources): string {
  const { key, snapshot } = caller;
  const { userSource, userHeader } = snapshot.project;
  const onlyHeader = userSource === "header";
  const named = onlyHeader
    ? fromHeaders(request, userHeader)
    : namedAnywhere(request, { ...sources, userHeader });
  const user = named ?? (onlyHeader ? null : key.user ?? key.defaultUser);
  if (user === null) {
    const message = onlyHeader
      ? "This project takes the user from the header 'X-Service-User', which is missing."
      : `A user is required: send ${waysToName(request, sources)}.`;
    throw badRequest("user", message, "user_required");
  }
  if (key.user !== null && user !== key.user) {
    throw new ApiError(403, {
      message: "This API key is bound to a different user.",
      type: "permission_error",
      code: "user_not_allowed",
      param: "user",
    });
  }
  return user;
}

/** Returns the end user of a request that needs none, or null. Throws else as `endUser` does. */
export function endUserIfAny(
  caller: Caller,
  request: Request,
  sources: UserSources,
): string | null {
  try {
    return endUser(caller, request, sources);
  } catch (error) {
    if (error instanceof ApiError && error.code === "user_required") return null;
    throw error;
  }
}

/**
 * Returns the user whom the key, the header or the path names, before a body is read; null where
 * none does, or not validly: the body may still name one.
 */
export function userBeforeBody(
  { key, snapshot: { project } }: Caller,
  request: Request,
  path: PathUser | undefined,
): string | null {
  if (key.user !== null) return key.user;
  try {
    const { userSource, userHeader } = project;
    return userSource === "header"
      ? fromHeaders(request, userHeader)
      : namedAnywhere(request, { path, userHeader });
  } catch {
    return null;
  }
}

/**
 * Returns how such a request may name its user. Many chat clients can only set a base URL and a
 * key.
 */
function waysToName({ method }: Request, sources: UserSources): string {
  const header = "the header 'X-Service-User'";
  if (method === "GET" || method === "HEAD") return `'user' in the query, or ${header}`;
  if (!("path" in sources)) return `'user' in the body, or ${header}`;
  const inBody = "body" in sources ? "'user' in the body, " : "";
  return `${inBody}${header}, a base URL that ends in /v1/USER, or a key with a default user`;
}

function namedAnywhere(
  request: Request,
  { body, path, query, userHeader }: UserSources & { userHeader: string | null },
): string | null {
  if (!isNoUser(body)) return checkUserId(body, "user");
  const header = fromHeaders(request, userHeader);
  if (header !== null) return header;
  if (path !== undefined) return fromPath(path);
  if (!isNoUser(query)) return checkUserId(query, "user");
  return null;
}

/** From `X-Service-User`, else from the project's own header. */
function fromHeaders(request: Request, userHeader: string | null): string | null {
  return fromHeader(request, "X-Service-User") ?? (userHeader && fromHeader(request, userHeader));
}

function fromHeader({ headers }: Request, name: string): string | null {
  const value = headers.get(name);
  if (!value) return null;
  const text = headerText(value);
  if (text === null) throw badRequest(name, `'${name}' is not well-formed UTF-8.`);
  return checkUserId(text, name);
}

function fromPath({ segment, reserved }: PathUser): string {
  let user: string;
  try {
    user = decodeURIComponent(segment);
  } catch {
    throw badRequest("user", "The user in the path is not well-formed UTF-8.");
  }
  if (reserved.has(user)) {
    const doubled = user === "v1" ? " The base URL may contain /v1 twice." : "";
    throw badRequest(
      "user",
      `'${user}' is a reserved word, and cannot be a user in a path.${doubled}`,
    );
  }
  return checkUserId(user, "user");
}

// How a request names its end user, for the API documentation; `endUser` reads it.

const user = z.string().min(1).max(userIdCharsMax).optional();

/** The header that names the end user. */
export const userHeader = z.object({
  "X-Service-User": user.meta({
    description: "The end user, in UTF-8, if `user` is not given. In a project whose " +
      "`userSource` is `header`, only this header counts.",
    example: "ada",
    param: { id: "ServiceUser" },
  }),
});

/** The query that names the end user of a GET. */
export const userQuery = z.object({
  user: user.meta({
    description: "The end user. May be omitted if the header `X-Service-User` or the key's " +
      "default names one.",
    example: "ada",
    param: { id: "User" },
  }),
});

/** The errors that concern the user of a request. */
export const userErrors: readonly ErrorDoc[] = [
  { status: 400, code: "user_required", when: "No end user is given." },
  {
    status: 400,
    code: "invalid_value",
    when: `The user is not 1 to ${userIdCharsMax} characters of well-formed Unicode without ` +
      "control characters.",
  },
  { status: 403, code: "user_not_allowed", when: "The key is bound to a different user." },
  {
    status: 403,
    code: "user_being_forgotten",
    when: "The user is being forgotten: until that completes, nothing can be recorded for them.",
  },
];

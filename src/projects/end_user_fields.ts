import { z } from "zod";
import { userIdCharsMax } from "../base/limits.ts";
import type { ErrorCase } from "../base/operation.ts";

// How a request names its end user, as the API document tells it; `endUser` reads it.

const user = z.string().min(1).max(userIdCharsMax).optional();

/** The header that names the end user. */
export const userHeader = z.object({
  "X-Service-User": user.meta({
    description: "The end user, in UTF-8, where `user` is not given. In a project whose " +
      "`userSource` is `header` nothing else counts.",
    example: "ada",
    param: { id: "ServiceUser" },
  }),
});

/** The query that names the end user of a GET. */
export const userQuery = z.object({
  user: user.meta({
    description: "The end user. May be left out where the header `X-Service-User` or the key's " +
      "default names one.",
    example: "ada",
    param: { id: "User" },
  }),
});

/** What can be wrong with the user of a request. */
export const userErrors: readonly ErrorCase[] = [
  { status: 400, code: "user_required", when: "No end user is named." },
  {
    status: 400,
    code: "invalid_value",
    when: `The user is not 1 to ${userIdCharsMax} characters of well-formed Unicode without ` +
      "control characters.",
  },
  { status: 403, code: "user_not_allowed", when: "The key is bound to another user." },
  {
    status: 403,
    code: "user_being_forgotten",
    when: "The user is being forgotten: until that is done, nothing moves for them.",
  },
];

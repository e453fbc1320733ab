import { badRequest } from "./errors.ts";
import { userIdCharsMax, userIdUnitsMax } from "./limits.ts";

// deno-lint-ignore no-control-regex -- control characters are what is refused
const controls = /[\u0000-\u001f\u007f-\u009f]/;

function isShort(value: string): boolean {
  return value.length <= userIdUnitsMax && [...value].length <= userIdCharsMax;
}

/** Whether a text can be the id of an end user: see `checkUserId`. */
export function isUserId(value: string): boolean {
  return value !== "" && isShort(value) && !controls.test(value) && value.isWellFormed();
}

/**
 * Checks a caller's id of an end user and keeps it exactly: 1 to 128 characters, well-formed
 * Unicode, no control characters. Throws 400 naming `param`.
 */
export function checkUserId(value: unknown, param: string): string {
  if (typeof value !== "string") throw badRequest(param, `'${param}' must be a string.`);
  if (value.length === 0) throw badRequest(param, `'${param}' must not be empty.`);
  if (value.length > userIdCharsMax && !isShort(value)) {
    throw badRequest(param, `'${param}' must have at most ${userIdCharsMax} characters.`);
  }
  if (controls.test(value)) throw badRequest(param, `'${param}' contains a control character.`);
  if (!value.isWellFormed()) throw badRequest(param, `'${param}' is not well-formed Unicode.`);
  return value;
}

/** The user of a body, unchecked: `user`, else `safety_identifier`. An empty one is none. */
export function userIn(
  { user, safety_identifier: identifier }: { user?: unknown; safety_identifier?: unknown },
): unknown {
  return isNoUser(user) ? identifier : user;
}

/** Whether a field names no user; some clients always send an empty text. */
export function isNoUser(user: unknown): boolean {
  return user === undefined || user === null || user === "";
}

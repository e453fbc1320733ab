import { isObject, type JsonObject } from "../base/json.ts";

/**
 * A request's body without empty names of its user, also in `metadata`: clients that have none send
 * an empty text, and some upstreams refuse it. The same object where there is none.
 */
export function withoutEmptyUsers(body: JsonObject): JsonObject {
  const { user, safety_identifier: identifier, metadata } = body;
  const hasEmptyId = isObject(metadata) && metadata.user_id === "";
  if (user !== "" && identifier !== "" && !hasEmptyId) return body;
  const whole = { ...body };
  if (user === "") delete whole.user;
  if (identifier === "") delete whole.safety_identifier;
  if (hasEmptyId) {
    const { user_id: _empty, ...others } = metadata;
    whole.metadata = others;
  }
  return whole;
}

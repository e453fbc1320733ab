import { badRequest } from "../../base/errors.ts";
import { keptIdCharsMax } from "../../base/limits.ts";
import { isObject, type Json, type JsonObject } from "../../base/json.ts";
import type { ModelRequest } from "../../inference/model_request.ts";
import type { ResponseHead } from "../../inference/upstream_response.ts";

// The upstream has never seen our messages in place of the model's. Clients send their ids back,
// so an id tells that it is ours, and which response came before: nothing has to be stored.

/** The prefix of a response's id. */
export const responseIdPrefix = "resp_";
const ownResponse = "resp_paywall_";
const ownMessage = "msg_paywall_";
const ulidChars = 26;

/** The ids of our own message, in a response that continues the one that the request continues. */
export function ownIds(
  { id }: ResponseHead,
  { continues, body }: Pick<ModelRequest, "body" | "continues">,
): { response: string; message: string } {
  const previous = continues ?? body.previous_response_id;
  const unique = id.slice(responseIdPrefix.length);
  const before = typeof previous === "string" ? `_${previous}` : "";
  return { response: `${ownResponse}${unique}${before}`, message: `${ownMessage}${unique}` };
}

/** Whether an id is one of a message of ours. */
function isOwnMessageId(id: Json | undefined): boolean {
  return typeof id === "string" && id.startsWith(ownMessage);
}

/**
 * A body without our ids: our messages and references to them are left out, and the response that
 * came before ours takes its place. Throws 400 where nothing else is left of the input.
 */
export function withoutOwnIds(body: JsonObject): JsonObject {
  const { input, previous_response_id: previous } = body;
  const items = Array.isArray(input) ? input.filter((item) => !isOwnItem(item)) : null;
  const isSame = items === null || (Array.isArray(input) && items.length === input.length);
  const before = typeof previous === "string" ? responseBefore(previous) : previous;
  if (isSame && before === previous) return body;
  if (!isSame && items?.length === 0) {
    throw badRequest(
      "input",
      "'input' has only a message of this service about payment. Add what the user says to it.",
    );
  }
  const { previous_response_id: _ours, ...rest } = body;
  return {
    ...rest,
    ...(items ? { input: items } : {}),
    ...(before === undefined ? {} : { previous_response_id: before }),
  };
}

/** The response that came before one of ours, which may be ours too; undefined where none did. */
function responseBefore(id: string): string | undefined {
  let before = id;
  while (before.startsWith(ownResponse)) before = before.slice(ownResponse.length + ulidChars + 1);
  if (before.length <= keptIdCharsMax) return before || undefined;
  throw badRequest(
    "previous_response_id",
    `'previous_response_id' must have at most ${keptIdCharsMax} characters.`,
  );
}

function isOwnItem(item: Json): boolean {
  if (!isObject(item) || !isOwnMessageId(item.id)) return false;
  const { type } = item;
  return type === undefined || type === null || type === "message" || type === "item_reference";
}

import { badRequest } from "../../base/errors.ts";
import { isObject, type Json, type JsonObject, plainText } from "../../base/json.ts";

// What a provider keeps, it keeps under the operator's key, for all users alike. So a caller who
// names a file, a container or a conversation there by its id may reach another's.

/** Names of members that hold such an id, in lower case and without `_`: some servers fold them. */
const storedNames = new Set(
  [
    "fileid fileids inputfileid trainingfile container containerid containerids",
    "vectorstoreid vectorstoreids collectionid collectionids knowledgebaseid knowledgebaseids",
    "libraryid libraryids documentlibraryids memorystoreid memorystoreids",
    "assistantid agentid thread threadid runid conversation conversationid batchid",
    "previousresponseid cachedcontent skillid skillids connectorid promptid",
  ].join(" ").split(" "),
);

/** Fields of requests that are texts, or the caller's own data, or are looked at by themselves. */
const otherFields = new Set(
  [
    "model messages input system instructions prompt tools functions tool_choice function_call",
    "user metadata client_metadata response_format text output_config output_format stop",
    "guided_json json_schema structured_outputs documents reasoning thinking logit_bias",
    "max_tokens max_completion_tokens max_output_tokens temperature top_p top_k n seed",
    "presence_penalty frequency_penalty",
  ].join(" ").split(" "),
);

/** Addresses that a provider opens with its customer's rights, not with anybody's. */
const ownersAddress = /^(gs|s3):\/\/|^https:\/\/generativelanguage\.googleapis\.com\/.*\/files\//i;

const none: ReadonlySet<string> = new Set();
const addressField = "file_uri";
const idCharsShown = 128;

/** The place of a value in a request, and the members that the project opens, with all in them. */
interface Place {
  at: string;
  allowed: readonly string[];
  /** The name for errors, where it is another. */
  param?: string | undefined;
}

/**
 * Throws 400 where a field of a request names what is stored at the upstream, unless the name of
 * the member is in `allowed`. Messages, input and tools are not looked at, nor fields in `except`.
 */
export function requireNoStoredFields(
  body: JsonObject,
  allowed: readonly string[],
  except: readonly string[] = [],
): void {
  for (const name in body) {
    if (otherFields.has(name) || except.includes(name)) continue;
    requireNotStored(name, body[name] ?? null, { at: name, allowed });
  }
  // A prompt that is no text is a stored one.
  const { prompt } = body;
  if (isObject(prompt) && typeof prompt.id === "string" && !allowed.includes("prompt")) {
    throw storedElsewhere(prompt.id, { at: "prompt.id", opens: "prompt" });
  }
}

/**
 * Throws 400 where a part of a prompt, or a tool, names what is stored at the upstream. All of its
 * members are looked at but those in `except`.
 */
export function requireNothingStored(
  value: JsonObject,
  place: Place,
  except: ReadonlySet<string> = none,
): void {
  for (const name in value) {
    if (except.has(name)) continue;
    // Anthropic's own skills are everybody's.
    if (name === "skill_id" && value.type === "anthropic") continue;
    requireNotStored(name, value[name] ?? null, { ...place, at: `${place.at}.${name}` });
  }
}

function requireNotStored(name: string, value: Json, place: Place): void {
  const { at, allowed, param } = place;
  if (allowed.includes(name)) return;
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      // A list has the name of its ids: `file_ids`.
      if (isObject(item)) requireNothingStored(item, { ...place, at: `${at}.${index}` });
      else requireNotStored(name, item, place);
    }
    return;
  }
  const id = isObject(value) ? value.id : value;
  const isId = (typeof id === "string" && id !== "") || typeof id === "number";
  if (isId && isStoredName(name)) {
    const inside = isObject(value) ? `${at}.id` : at;
    throw storedElsewhere(plainText(id), { at: inside, opens: name, param });
  }
  if (isObject(value)) return requireNothingStored(value, place);
  if (typeof value !== "string" || !ownersAddress.test(value)) return;
  if (!allowed.includes(addressField)) {
    throw storedElsewhere(value, { at, opens: addressField, param });
  }
}

function isStoredName(name: string): boolean {
  return storedNames.has(name.replaceAll("_", "").toLowerCase());
}

/** 400: what has this id is kept at the provider; `opens` is the setting that passes it on. */
export function storedElsewhere(
  id: string,
  { at, opens, param = at }: { at: string; opens: string; param?: string | undefined },
) {
  return badRequest(
    param,
    `'${
      id.slice(0, idCharsShown)
    }' in '${at}' was not found: what a provider keeps is not served ` +
      "here, because it is not kept for each user. Send the data of a file as 'file_data' or its " +
      `address as 'file_url', and an image as 'image_url'. The setting 'allowedFields' opens '${opens}'.`,
    "not_found",
  );
}

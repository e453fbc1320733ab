import type { ApiDocument } from "../../src/docs/document.ts";
import { isObject, type Json, type JsonObject } from "../../src/base/json.ts";

/**
 * What a document says, as facts: each place, such as `POST /v1/user/charge body.amount`, with the
 * types that it can have there. Words of an enumeration are places of their own.
 */
export type ApiFacts = Map<string, string>;

/** Deeper schemas say nothing new. */
const depthMax = 12;
const methods = ["get", "put", "post", "delete", "patch"];

/** The facts of an API document. */
export function factsOf(document: ApiDocument): ApiFacts {
  const whole = JSON.parse(JSON.stringify(document)) as JsonObject;
  const facts: ApiFacts = new Map();
  const note = (place: string, type: string | null) => {
    const types = new Set(facts.get(place)?.split("|").filter(Boolean));
    if (type !== null) types.add(type === "integer" ? "number" : type);
    facts.set(place, [...types].sort().join("|"));
  };

  function resolved(part: Json | undefined): JsonObject {
    if (!isObject(part)) return {};
    if (typeof part.$ref !== "string") return part;
    const names = part.$ref.slice(2).split("/");
    return resolved(names.reduce<Json | undefined>((at, name) => membersOf(at)[name], whole));
  }

  function noteSchema(place: string, given: Json | undefined, depth = 0): void {
    if (depth > depthMax) return;
    const schema = resolved(given);
    for (const type of typesOf(schema)) note(place, type);
    for (const word of listOf(schema.enum)) {
      if (typeof word === "string") note(`${place}=${word}`, null);
    }
    for (const kind of ["allOf", "anyOf", "oneOf"]) {
      for (const part of listOf(schema[kind])) noteSchema(place, part, depth + 1);
    }
    for (const [name, field] of Object.entries(membersOf(schema.properties))) {
      noteSchema(`${place}.${name}`, field, depth + 1);
    }
    if (isObject(schema.items)) noteSchema(`${place}[]`, schema.items, depth + 1);
    if (isObject(schema.additionalProperties)) {
      noteSchema(`${place}.*`, schema.additionalProperties, depth + 1);
    }
  }

  function noteContent(place: string, content: Json | undefined): void {
    for (const part of Object.values(membersOf(content))) {
      noteSchema(place, membersOf(part).schema);
    }
  }

  function noteOperation(place: string, operation: JsonObject): void {
    note(place, null);
    for (const parameter of listOf(operation.parameters).map(resolved)) {
      noteSchema(`${place} ${parameter.in}:${parameter.name}`, parameter.schema);
    }
    noteContent(`${place} body`, resolved(operation.requestBody).content);
    for (const [status, given] of Object.entries(membersOf(operation.responses))) {
      const response = resolved(given);
      note(`${place} ${status}`, null);
      for (const name of Object.keys(membersOf(response.headers))) {
        note(`${place} header:${name}`, null);
      }
      noteContent(`${place} ${status}`, response.content);
    }
  }

  for (const [path, item] of Object.entries(membersOf(whole.paths))) {
    for (const [method, operation] of Object.entries(membersOf(item))) {
      if (!methods.includes(method) || !isObject(operation)) continue;
      noteOperation(`${method.toUpperCase()} ${path}`, operation);
    }
  }
  for (const [event, item] of Object.entries(membersOf(whole.webhooks))) {
    noteOperation(`EVENT ${event}`, resolved(membersOf(item).post));
  }
  return facts;
}

function typesOf({ type, const: only, enum: words }: JsonObject): string[] {
  if (only !== undefined) return [only === null ? "null" : typeof only];
  if (Array.isArray(words)) return words.map((word) => word === null ? "null" : typeof word);
  return (Array.isArray(type) ? type : [type]).filter((one) => typeof one === "string");
}

const listOf = (value: Json | undefined): Json[] => Array.isArray(value) ? value : [];
const membersOf = (value: Json | undefined): JsonObject => isObject(value) ? value : {};

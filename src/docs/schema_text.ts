import { isObject, type Json, type JsonObject } from "../base/json.ts";

/** A part of a type's name: text, or the name of a schema that is shown elsewhere. */
export type TypePart = { text: string } | { schema: string };

/** A field of an object, as people read it. */
export interface SchemaField {
  name: string;
  type: TypePart[];
  required: boolean;
  /** The allowed values, each a short phrase. */
  bounds: string[];
  description: string;
  /** The fields of an object without a name of its own, or of a list of such objects. */
  fields: SchemaField[];
}

/** Returns the fields of an object's schema; none for anything else. */
export function schemaFields(schema: Json | undefined): SchemaField[] {
  if (!isObject(schema) || !isObject(schema.properties)) return [];
  const required = Array.isArray(schema.required) ? schema.required : [];
  return Object.entries(schema.properties).flatMap(([name, property]) => {
    if (!isObject(property)) return [];
    const described = { ...nonNullVariant(property), ...property };
    return [{
      name,
      type: schemaType(property),
      required: required.includes(name),
      bounds: boundsOf(described),
      description: text(described.description),
      fields: [property, property.items, ...variantsOf(property)].flatMap(schemaFields),
    }];
  });
}

/** Describes a schema's values in words; named schemas by their names. */
export function schemaType(schema: Json | undefined): TypePart[] {
  if (!isObject(schema)) return [{ text: "anything" }];
  const name = schemaName(schema.$ref);
  if (name !== null) return [{ schema: name }];
  const variants = variantsOf(schema);
  if (variants.length > 0) {
    return variants.flatMap((
      one,
      at,
    ) => [...(at > 0 ? [{ text: " or " }] : []), ...schemaType(one)]);
  }
  if (schema.type === "array") return [{ text: "list of " }, ...schemaType(schema.items)];
  if (schema.type === "object" && isObject(schema.additionalProperties) && !schema.properties) {
    const { additionalProperties: values } = schema;
    if (Object.keys(values).length > 0) return [{ text: "object of " }, ...schemaType(values)];
  }
  const types = Array.isArray(schema.type) ? schema.type : [schema.type ?? "anything"];
  return [{ text: types.map(String).join(" or ") }];
}

/** Returns the name of the component that a reference names; null for anything else. */
export function schemaName(ref: Json | undefined): string | null {
  return typeof ref === "string" ? ref.slice(ref.lastIndexOf("/") + 1) : null;
}

function variantsOf({ anyOf, oneOf }: JsonObject): Json[] {
  const variants = anyOf ?? oneOf;
  return Array.isArray(variants) ? variants : [];
}

/** For "this, or null", returns this, with the field's description. */
function nonNullVariant(schema: JsonObject): JsonObject {
  const [first, second] = variantsOf(schema);
  return isObject(first) && isObject(second) && second.type === "null" ? first : {};
}

const phrases: Record<string, (value: string) => string> = {
  minimum: (value) => `at least ${value}`,
  exclusiveMinimum: (value) => `more than ${value}`,
  maximum: (value) => `at most ${value}`,
  minLength: (value) => `at least ${pluralize(value, "character")}`,
  maxLength: (value) => `at most ${pluralize(value, "character")}`,
  minItems: (value) => `at least ${pluralize(value, "item")}`,
  maxItems: (value) => `at most ${pluralize(value, "item")}`,
  maxProperties: (value) => `at most ${pluralize(value, "key")}`,
  format: (value) => value,
  pattern: (value) => `matches \`${value}\``,
};

function pluralize(value: string, what: string): string {
  return `${value} ${what}${value === "1" ? "" : "s"}`;
}

function boundsOf(schema: JsonObject): string[] {
  const shown = (value: Json | undefined) => `\`${JSON.stringify(value)}\``;
  const bounds = Object.entries(phrases).flatMap(([name, phrase]) => {
    const value = schema[name];
    // The range of all JSON integers is not a bound.
    if (value === undefined || Math.abs(Number(value)) === Number.MAX_SAFE_INTEGER) return [];
    return [phrase(String(value))];
  });
  if (Array.isArray(schema.enum)) bounds.unshift(`one of ${schema.enum.map(shown).join(", ")}`);
  if (schema.const !== undefined) bounds.unshift(`always ${shown(schema.const)}`);
  if (schema.default !== undefined && !isObject(schema.default)) {
    bounds.push(`default ${shown(schema.default)}`);
  }
  return bounds;
}

function text(value: Json | undefined): string {
  return typeof value === "string" ? value : "";
}

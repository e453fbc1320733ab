import { z } from "zod";

/**
 * The schema of a merge patch (RFC 7396) of what `schema` describes, for the API document: every
 * member of an object may be left out, and null removes it.
 */
export function mergePatchSchema(schema: z.core.$ZodType): z.ZodType {
  const inner = unwrapped(schema);
  const described = describe(schema, inner);
  if (inner instanceof z.ZodObject) {
    const members = Object.entries<z.core.$ZodType>(inner.shape).map(([name, member]) =>
      [name, mergePatchSchema(member).nullable().optional()] as const
    );
    return z.strictObject(Object.fromEntries(members)).meta(described);
  }
  if (inner instanceof z.ZodRecord) {
    const value = mergePatchSchema(inner.valueType).nullable();
    return z.record(z.string(), value).meta(described);
  }
  return inner instanceof z.ZodType ? inner.meta({ ...described }) : z.unknown();
}

/** The schema without the defaults and the absence that it allows. */
function unwrapped(schema: z.core.$ZodType): z.core.$ZodType {
  const isWrapper = schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault ||
    schema instanceof z.ZodNullable || schema instanceof z.ZodOptional;
  return isWrapper ? unwrapped(schema.def.innerType) : schema;
}

/** The description of a schema in the document, without its name: the patch is another schema. */
function describe(...schemas: z.core.$ZodType[]) {
  const { id: _, ...described } = Object.assign(
    {},
    ...schemas.toReversed().map((schema) => z.globalRegistry.get(schema)),
  );
  return described;
}

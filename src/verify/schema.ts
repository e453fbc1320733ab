import { Buffer } from "node:buffer";
import { z } from "zod";
import { badCursor } from "../base/errors.ts";
import { idOf } from "../base/fields.ts";
import { type Json } from "../base/json.ts";
import { decodeUtf8 } from "../base/utf8.ts";
import type { LedgerRange } from "../ledger/verify/verify.ts";

const cursorCharsMax = 32 * 1024;
const partsMax = 64;

const part = z.string().regex(/^[1-9]\d?$/, { error: `must be a number from 1 to ${partsMax}` })
  .transform(Number).refine((number) => number <= partsMax, {
    error: `must be a number from 1 to ${partsMax}`,
  });

/** The query of `GET /v1/admin/verify`: what is verified, or with `cursor` the next page of it. */
export const verifyQuerySchema = z.strictObject({
  cursor: z.string().min(1).optional().meta({
    description: "`nextCursor` of the page before, without other parameters.",
  }),
  since: z.enum(["true", "false"], { error: "must be true or false" }).default("false").meta({
    description: "Only what came since each account was last verified without a fault. Entries " +
      "before that are not read, and entries that no account leads to are not looked for.",
  }),
  part: part.default(1).meta({
    description: "Which of `parts`.",
    override: { type: "integer", minimum: 1, maximum: partsMax, default: 1 },
  }),
  parts: part.default(1).meta({
    description: "In how many parts the database is verified, at the same time or not.",
    override: { type: "integer", minimum: 1, maximum: partsMax, default: 1 },
  }),
  owner: idOf("(pw|per)", "Only the accounts and entries of this project or wallet owner.")
    .optional(),
  until: z.iso.datetime({ error: "must be an ISO 8601 time in UTC" }).optional().meta({
    description: "`until` of the first page: the same for all parts.",
  }),
}).refine(({ part, parts }) => part <= parts, {
  path: ["part"],
  error: "must not be greater than 'parts'",
});
/** The validated query. */
type VerifyQuery = z.output<typeof verifyQuerySchema>;

/** What is verified, in the form of the ledger's scan. */
export function rangeOf({ since, part, parts, owner, until }: VerifyQuery): LedgerRange {
  return {
    since: since === "true",
    part,
    parts,
    owner: owner ?? null,
    until: until === undefined ? null : Date.parse(until),
  };
}

/** What is verified, the current scan, and its position. */
const positionSchema = z.strictObject({
  range: z.strictObject({
    since: z.boolean(),
    part: z.int().min(1).max(partsMax),
    parts: z.int().min(1).max(partsMax),
    owner: z.string().max(64).nullable(),
    until: z.number(),
  }),
  scan: z.string(),
  place: z.json().nullable(),
});
/** What is verified, the current scan, and its position. */
export interface VerifyPosition {
  range: LedgerRange & { until: number };
  scan: string;
  place: Json | null;
}

/** Encodes a position as a cursor. */
export function encodeVerifyCursor(position: VerifyPosition): string {
  return Buffer.from(JSON.stringify(position)).toString("base64url");
}

/** Decodes a cursor. Throws 400 for an invalid one. */
export function decodeVerifyCursor(cursor: string): VerifyPosition {
  try {
    if (cursor.length > cursorCharsMax) throw new RangeError("too long");
    const text = decodeUtf8(Buffer.from(cursor, "base64url"));
    return positionSchema.parse(JSON.parse(text ?? "")) as VerifyPosition;
  } catch {
    throw badCursor();
  }
}

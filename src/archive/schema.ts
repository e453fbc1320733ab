import { z } from "zod";
import { idOf } from "../base/fields.ts";

/** Entries that are younger are not archived: they may still be refunded, or recorded late. */
export const ageMinMs = 31 * 24 * 60 * 60 * 1000;

/** How many entries one call removes at most. */
export const removedPerCall = 500;

const before = z.iso.datetime({ error: "must be an ISO 8601 time in UTC" }).meta({
  description: "Only entries that were created before. At least 31 days ago.",
  example: "2025-11-01T00:00:00.000Z",
});
const act = idOf("act", "An entry.");

/** The query of `GET …/archive/entries`. */
export const archiveQuerySchema = z.strictObject({
  before,
  after: act.optional().meta({ description: "Continue after this entry." }),
});

/** The body of `POST …/archive/entries`. */
export const archiveBodySchema = z.strictObject({
  before,
  sha256: z.string().regex(/^[0-9a-f]{64}$/, { error: "must be a SHA-256 in hex" }).meta({
    description: "The sealed file that has the entries: the SHA-256 that it states.",
  }),
  entries: z.array(z.tuple([act, z.string().regex(/^[0-9a-f]{32}$/)])).min(1).max(removedPerCall)
    .meta({
      description: "The entries, each with the first half of the SHA-256 of its line in the file.",
    }),
}).meta({ id: "ArchivedEntries" });
/** The validated body. */
export type ArchiveBody = z.output<typeof archiveBodySchema>;

/** What became of the entries of one call. */
export const archivedSchema = z.object({
  removed: z.int().min(0).meta({ description: "Removed now, and carried forward." }),
  gone: z.int().min(0).meta({ description: "Were removed by an earlier call." }),
  left: z.array(act).meta({
    description: "Stay for now, because an older entry of the account does: send them again with " +
      "the next ones.",
  }),
  changed: z.array(act).meta({
    description: "Stay, because they differ from the file: their user has been erased.",
  }),
});
/** What became of the entries of one call. */
export type Archived = z.output<typeof archivedSchema>;

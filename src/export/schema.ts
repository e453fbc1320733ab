import { z } from "zod";
import { exportKinds } from "./kinds.ts";

const time = z.union([z.iso.datetime({ offset: true }), z.iso.date()], {
  error: "must be an ISO 8601 time, or a date (UTC)",
}).transform((text) => Date.parse(text));

/** The query of `GET …/export`. A date stands for its first moment in UTC. */
export const exportQuerySchema = z.strictObject({
  what: z.enum(exportKinds, { error: `must be one of ${exportKinds.join(", ")}` })
    .meta({ example: "entries" }),
  format: z.enum(["jsonl", "csv"], { error: "must be jsonl or csv" }).default("jsonl"),
  from: time.optional(),
  to: time.optional(),
  after: z.string().min(1).max(200).optional(),
}).refine(({ what, from, to }) => what !== "users" || (from === undefined && to === undefined), {
  path: ["from"],
  error: "cannot be combined with users, who have no time",
}).refine(({ from, to }) => from === undefined || to === undefined || from < to, {
  path: ["to"],
  error: "must be later than 'from'",
});

/** The validated query of an export. */
export type ExportQuery = z.output<typeof exportQuerySchema>;

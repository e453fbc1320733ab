import { z } from "zod";
import { isRange, moment } from "../base/moment.ts";
import { exportKinds } from "./kinds.ts";

/** The query of `GET …/export`. A date stands for its first moment in UTC. */
export const exportQuerySchema = z.strictObject({
  what: z.enum(exportKinds, { error: `must be one of ${exportKinds.join(", ")}` })
    .meta({ example: "entries" }),
  format: z.enum(["jsonl", "csv"], { error: "must be jsonl or csv" }).default("jsonl"),
  from: moment.optional(),
  to: moment.optional(),
  after: z.string().min(1).max(200).optional(),
}).refine(({ what, from, to }) => what !== "users" || (from === undefined && to === undefined), {
  path: ["from"],
  error: "cannot be combined with users, who have no time",
}).refine(isRange, {
  path: ["to"],
  error: "must be later than 'from'",
});

/** The validated query of an export. */
export type ExportQuery = z.output<typeof exportQuerySchema>;

import { z } from "zod";
import { statementGroups } from "./statement.ts";

const text = z.string().max(64).optional();

/** The query of a statement. The texts of its period are read by `readSpan`. */
export const statementQuerySchema = z.strictObject({
  from: text.meta({
    description: "The begin: a month, a day, or a time with an offset. Default: this month.",
    example: "2026-10",
  }),
  to: text.meta({
    description: "The end, exclusive. Default: the end of the day or month that `from` names.",
  }),
  tz: text.meta({
    description: "The time zone of days and months, by its IANA name. Default: UTC.",
    example: "Europe/Berlin",
  }),
  group: z.enum(statementGroups, { error: `must be one of ${statementGroups.join(", ")}` })
    .default("day").meta({ description: "By what the rows are." }),
  format: z.enum(["json", "csv"], { error: "must be json or csv" }).default("json"),
});

/** The query of the balances at an instant. */
export const balancesQuerySchema = z.strictObject({
  at: z.string().max(64).optional().meta({
    description: "The instant, exclusive: a time, or the first moment of a day or month. " +
      "Default: now.",
    example: "2026-11-01",
  }),
  tz: text.meta({ description: "The time zone of a day or month. Default: UTC." }),
  format: z.enum(["json", "csv"], { error: "must be json or csv" }).default("json"),
});

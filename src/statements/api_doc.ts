import { z } from "zod";
import type { EndpointDocs, ErrorDoc } from "../base/endpoint_doc.ts";
import { currency, decimal, idOf, time, userId } from "../base/fields.ts";
import { movementColumns } from "../base/entry_reasons.ts";
import { balancesQuerySchema, statementQuerySchema } from "./schema.ts";
import { statementGroups } from "./statement.ts";

const amount = (description: string) => decimal.meta({ description });
const known = (description: string) => decimal.nullable().meta({ description });

const rowSchema = z.object({
  group: z.string().meta({
    description: "The day, model, user, key or reason; empty where an entry has none.",
  }),
  opening: amount("Of days, users and the total: the balance before.").optional(),
  movements: z.record(z.string(), decimal).meta({
    description: "What each reason added to balances, with its sign: " +
      `${movementColumns.map(({ name }) => `\`${name}\``).join(", ")}.`,
  }),
  closing: amount("Of days, users and the total: the balance after.").optional(),
  revenue: amount("Responses and charges, less what was given back for them."),
  calls: z.int().min(0).meta({ description: "Responses that were charged, or free." }),
  callsWithUnknownCost: z.int().min(0).meta({
    description: "Those among them that are in neither `cost` nor `margin`.",
  }),
  cost: known("What the calls cost by the provider's price list; null where none is known."),
  margin: known("What these calls were charged, less `cost`; null where none is known."),
}).meta({ id: "StatementRow" });

const statementSchema = z.object({
  currency,
  from: time,
  to: time.meta({ description: "Exclusive." }),
  timeZone: z.string(),
  group: z.enum(statementGroups),
  rounding: z.literal("none").meta({ description: "Amounts are exact." }),
  rows: z.array(rowSchema),
  total: rowSchema,
  check: z.object({
    opening: decimal,
    movements: amount("The sum of all movements."),
    closing: amount("The sum of what users' last entries state as their balances."),
    difference: amount("Closing, less opening and movements: zero in sound books."),
  }).nullable().meta({ description: "Null in the shared mode, where balances are in wallets." }),
}).meta({ id: "Statement" });

const balancesSchema = z.object({
  currency,
  at: time.meta({ description: "Entries before it count." }),
  balances: z.array(z.object({ user: userId, balance: decimal })).meta({
    description: "Every user who had an entry, in the order of their ids.",
  }),
  total: amount("What the project owes its users."),
}).meta({ id: "BalancesAt" });

const movements = Object.fromEntries(
  movementColumns.map(({ name }) => [name, { payment: "50", usage: "-12.5" }[name] ?? "0"]),
);
const figures = {
  movements,
  revenue: "12.5",
  calls: 1042,
  callsWithUnknownCost: 2,
  cost: "10",
  margin: "2.49",
};
const statement = {
  currency: "usd",
  from: "2026-09-30T22:00:00.000Z",
  to: "2026-10-31T23:00:00.000Z",
  timeZone: "Europe/Berlin",
  group: "day",
  rounding: "none",
  rows: [{ group: "2026-10-01", opening: "100", closing: "137.5", ...figures }],
  total: { group: "", opening: "100", closing: "137.5", ...figures },
  check: { opening: "100", movements: "37.5", closing: "137.5", difference: "0" },
};

const common = {
  tag: "Operations",
  access: "operator",
  path: z.object({ projectId: idOf("pw", "The project.") }),
} as const;
const errors: ErrorDoc[] = [
  { status: 400, code: "unknown_parameter", when: "The parameter does not exist." },
  {
    status: 400,
    code: "invalid_value",
    when: "A parameter is not valid, is given twice, or names a time that is archived.",
  },
  { status: 404, code: "not_found", when: "The project does not exist." },
];

/** The API documentation of statements. */
export const statementApiDoc: EndpointDocs = {
  "/v1/admin/projects/:projectId/statement": {
    GET: {
      ...common,
      operationId: "getStatement",
      summary: "Retrieve a statement",
      description: "What moved balances in a period, by reason, from the opening to the closing " +
        "balance. It is summed from all entries: for any period, to the last digit.",
      query: z.object(statementQuerySchema.shape),
      answers: {
        200: {
          description: "The statement.",
          content: {
            "application/json": { schema: statementSchema, examples: { october: statement } },
            "text/csv": {
              schema: z.string(),
              examples: { october: "day,opening,usage\r\n2026-10-01,100,-12.5\r\n" },
            },
          },
        },
      },
      errors,
    },
  },
  "/v1/admin/projects/:projectId/balances": {
    GET: {
      ...common,
      operationId: "getBalancesAt",
      summary: "Retrieve the balances at an instant",
      description: "What the project owed each of its users, and in all.",
      query: z.object(balancesQuerySchema.shape),
      answers: {
        200: {
          description: "The balances.",
          content: {
            "application/json": {
              schema: balancesSchema,
              examples: {
                november: {
                  currency: "usd",
                  at: "2026-11-01T00:00:00.000Z",
                  balances: [{ user: "ada", balance: "12.5" }],
                  total: "12.5",
                },
              },
            },
            "text/csv": {
              schema: z.string(),
              examples: { november: "row,user,balance\r\nuser,ada,12.5\r\ntotal,,12.5\r\n" },
            },
          },
        },
      },
      errors: [...errors, {
        status: 400,
        code: "mode_conflict",
        when: "The project is in the shared mode, where balances are in wallets.",
      }],
    },
  },
};

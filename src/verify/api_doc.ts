import { z } from "zod";
import { nextCursor, time } from "../base/fields.ts";
import { type EndpointDocs, responseDocs } from "../base/endpoint_doc.ts";
import { verifyQuerySchema } from "./schema.ts";

const pageSchema = z.object({
  scan: z.string().meta({ description: "What was verified." }),
  checked: z.record(z.string(), z.int()).meta({
    description: "How many records of each kind were verified.",
  }),
  faults: z.array(z.string()).meta({ description: "The faults, one sentence each." }),
  tallies: z.record(z.string(), z.int()).meta({
    description: "With `parts`, by owner: how many more entries are stored than accounts lead " +
      "to, in this part. Each owner's sum over all parts must be 0; otherwise verify the owner " +
      "alone, with `owner`.",
  }),
  until: time.meta({ description: "Entries created later are not counted." }),
  nextCursor,
});
/** The result of one page of a verification. */
export type VerifiedPage = z.output<typeof pageSchema>;

/** The API documentation of the verification. */
export const verifyApiDoc: EndpointDocs = {
  "/v1/admin/verify": {
    GET: {
      tag: "Operations",
      access: "operator",
      operationId: "verify",
      summary: "Verify the database",
      description:
        "Checks that entries, prices, holds, refunds, idempotency keys, Stripe payments and " +
        "deliveries agree. Call it until `nextCursor` is null; `deno task farebox verify` does so. " +
        "An account that is verified without a fault gets a mark, which `since` begins at and " +
        "a later whole verification compares with.",
      query: z.object(verifyQuerySchema.shape),
      answers: {
        200: responseDocs("The result of this page.", pageSchema, {
          page: {
            scan: "ledger",
            checked: { entries: 1200 },
            faults: [],
            tallies: {},
            until: "2026-01-01T00:00:00.000Z",
            nextCursor: null,
          },
        }),
      },
      errors: [
        {
          status: 400,
          code: "invalid_value",
          when: "A parameter is not valid, or is given twice.",
        },
        { status: 400, code: "unknown_parameter", when: "The parameter does not exist." },
      ],
    },
  },
};

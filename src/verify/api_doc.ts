import { z } from "zod";
import { cursor, nextCursor } from "../base/fields.ts";
import { type EndpointDocs, responseDocs } from "../base/endpoint_doc.ts";

const pageSchema = z.object({
  scan: z.string().meta({ description: "What was verified." }),
  checked: z.record(z.string(), z.int()).meta({
    description: "How many records of each kind were verified.",
  }),
  faults: z.array(z.string()).meta({ description: "The faults, one sentence each." }),
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
        "deliveries agree. Call it until `nextCursor` is null; `deno task farebox verify` does so.",
      query: z.object({ cursor }),
      answers: {
        200: responseDocs("The result of this page.", pageSchema, {
          page: { scan: "ledger", checked: { entries: 1200 }, faults: [], nextCursor: null },
        }),
      },
      errors: [{ status: 400, code: "invalid_value", when: "`cursor` is not valid." }],
    },
  },
};

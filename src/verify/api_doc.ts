import { z } from "zod";
import { cursor, nextCursor } from "../base/fields.ts";
import { type EndpointDocs, responseDocs } from "../base/endpoint_doc.ts";

const pageSchema = z.object({
  scan: z.string().meta({ description: "What was looked through." }),
  checked: z.record(z.string(), z.int()).meta({ description: "How many of each were looked at." }),
  faults: z.array(z.string()).meta({ description: "What is wrong, one sentence each." }),
  nextCursor,
});
/** What one page of a verification has found. */
export type VerifiedPage = z.output<typeof pageSchema>;

/** The operation of whoever checks the books. */
export const verifyApiDoc: EndpointDocs = {
  "/v1/admin/verify": {
    GET: {
      tag: "Operations",
      access: "operator",
      operationId: "verify",
      summary: "Check a page of the database",
      description:
        "That entries, prices, holds, refunds, idempotency keys, payments at Stripe and " +
        "deliveries agree. Call it until `nextCursor` is null; `deno task verify-ledger` does.",
      query: z.object({ cursor }),
      answers: {
        200: responseDocs("What this page has found.", pageSchema, {
          page: { scan: "ledger", checked: { entries: 1200 }, faults: [], nextCursor: null },
        }),
      },
      errors: [{ status: 400, code: "invalid_value", when: "`cursor` is not valid." }],
    },
  },
};

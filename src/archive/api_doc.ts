import { z } from "zod";
import { idOf } from "../base/fields.ts";
import { type EndpointDocs, responseDocs } from "../base/endpoint_doc.ts";
import { archiveBodySchema, archivedSchema, archiveQuerySchema } from "./schema.ts";

const path = z.object({ projectId: idOf("pw", "The project.") });
const errors = [
  {
    status: 400,
    code: "invalid_value",
    when: "A parameter is not valid, or `before` is less than 31 days ago.",
  },
  { status: 400, code: "mode_conflict", when: "The project is in the shared mode." },
  { status: 404, code: "not_found", when: "The project does not exist." },
];
const before = "2025-11-01T00:00:00.000Z";
const act = "act_01KDVDNA0047C4FEZDQK8YZG0Y";

/** The API documentation of archiving. */
export const archiveApiDoc: EndpointDocs = {
  "/v1/admin/projects/:projectId/archive/entries": {
    GET: {
      tag: "Operations",
      access: "operator",
      operationId: "listArchivable",
      summary: "Stream entries to archive",
      description: "Streams the charges of responses that can move to a sealed file, as they are " +
        "stored, oldest first. `deno task farebox archive` writes them to files. Deposits, " +
        "charges and refunds by request stay in the database. A response that ends early is " +
        "incomplete: continue with `after`.",
      path,
      query: z.object(archiveQuerySchema.shape),
      answers: {
        200: {
          description: "One entry a line.",
          content: { "application/jsonl": { schema: z.string(), examples: { one: "{…}\n" } } },
        },
      },
      errors: [
        ...errors,
        { status: 400, code: "missing_required_parameter", when: "`before` is missing." },
        { status: 400, code: "unknown_parameter", when: "The parameter does not exist." },
      ],
    },
    POST: {
      tag: "Operations",
      access: "operator",
      operationId: "removeArchived",
      summary: "Remove archived entries",
      description: "Removes entries that a sealed file has. Each account keeps one entry of the " +
        "kind `carried` in their place, with their sum, so that balances and exports stay exact. " +
        "An entry that differs from the file stays. A call can be repeated.",
      path,
      body: {
        schema: archiveBodySchema,
        examples: { one: { before, sha256: "0".repeat(64), entries: [[act, "0".repeat(32)]] } },
      },
      answers: {
        200: responseDocs("What became of the entries.", archivedSchema, {
          one: { removed: 1, gone: 0, left: [], changed: [] },
        }),
      },
      errors: [
        ...errors,
        { status: 400, code: "missing_required_parameter", when: "A field is missing." },
        { status: 400, code: "unknown_parameter", when: "The field does not exist." },
        { status: 400, code: "invalid_type", when: "A field has the wrong type." },
      ],
    },
  },
};

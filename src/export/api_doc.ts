import { z } from "zod";
import { idOf } from "../base/fields.ts";
import type { EndpointDocs } from "../base/endpoint_doc.ts";
import { exportQuerySchema } from "./schema.ts";

/** The API documentation of exports. */
export const exportApiDoc: EndpointDocs = {
  "/v1/admin/projects/:projectId/export": {
    GET: {
      tag: "Operations",
      access: "operator",
      operationId: "exportRecords",
      summary: "Export records",
      description: "Streams all records, however many. A response that ends early is incomplete: " +
        "continue with `after`, the position of the last record that arrived.",
      path: z.object({ projectId: idOf("pw", "The project.") }),
      query: z.object(exportQuerySchema.shape),
      answers: {
        200: {
          description: "The records, oldest first; users in order of their ids.",
          content: {
            "application/jsonl": {
              schema: z.string(),
              examples: { users: '{"user":"ada","balance":"12.5"}\n' },
            },
            "text/csv": { schema: z.string(), examples: { users: "user,balance\r\nada,12.5\r\n" } },
          },
        },
      },
      errors: [
        { status: 400, code: "missing_required_parameter", when: "`what` is missing." },
        { status: 400, code: "unknown_parameter", when: "The parameter does not exist." },
        { status: 400, code: "invalid_type", when: "A parameter has the wrong type." },
        {
          status: 400,
          code: "invalid_value",
          when: "A parameter is not valid, or is given twice.",
        },
        { status: 404, code: "not_found", when: "The project does not exist." },
      ],
    },
  },
};

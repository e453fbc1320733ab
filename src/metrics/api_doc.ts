import { z } from "zod";
import type { EndpointDocs } from "../base/endpoint_doc.ts";

const example = `# HELP farebox_answers_running Chats of this process that hold money
# TYPE farebox_answers_running gauge
farebox_answers_running 3
`;

/** The API documentation of the metrics. */
export const metricsApiDoc: EndpointDocs = {
  "/metrics": {
    GET: {
      tag: "Health",
      access: "metrics",
      operationId: "getMetrics",
      summary: "Retrieve metrics",
      description: "For Prometheus, in text format 0.0.4.",
      answers: {
        200: {
          description: "All metrics.",
          content: { "text/plain": { schema: z.string(), examples: { page: example } } },
        },
      },
      errors: [
        { status: 404, code: "unknown_url", when: "The server has no `METRICS_TOKEN`." },
      ],
    },
  },
};

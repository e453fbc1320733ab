import { z } from "zod";
import { retryAfterHeader } from "../base/fields.ts";
import type { EndpointDocs } from "../base/endpoint_doc.ts";

/** The API documentation of backups. */
export const backupApiDoc: EndpointDocs = {
  "/v1/admin/backup": {
    GET: {
      tag: "Operations",
      access: "operator",
      operationId: "backup",
      summary: "Create a backup",
      description:
        "The whole database at one moment, taken while the service runs, and a last line " +
        "with its length, its SHA-256 and, where `SECRETS_KEY` is set, a proof by that key. " +
        "`deno task farebox backup` verifies it, and `deno task farebox restore` restores it.",
      answers: {
        200: {
          description: "The backup.",
          content: { "application/octet-stream": { schema: z.string(), examples: { some: "…" } } },
          headers: z.object({
            "Content-Length": z.string().meta({ description: "In bytes." }),
            "Content-Disposition": z.string().meta({
              description: "A file name that includes the time.",
            }),
          }),
        },
      },
      errors: [
        {
          status: 400,
          code: "backup_not_here",
          when: "The database is not a file on this server.",
        },
        {
          status: 429,
          code: "backup_running",
          when: "Another backup is under way.",
          headers: retryAfterHeader,
        },
        { status: 503, code: "backup_failed", when: "The disk has no space for a second copy." },
      ],
    },
  },
};

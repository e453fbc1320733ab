import { z } from "zod";
import { serverStopping, storeUnavailable } from "./base/errors.ts";
import type { Handler } from "./base/handler.ts";
import { toBytes } from "./base/json.ts";
import { type EndpointDocs, responseDocs } from "./base/endpoint_doc.ts";
import { jsonResponse } from "./base/response.ts";
import { serviceName, version } from "./base/version.ts";
import type { Deps } from "./deps.ts";
import type { Fleet } from "./fleet/fleet.ts";
import type { SealingMark } from "./store/sealed_with.ts";
import { readinessKey } from "./store/keys.ts";

/** For monitoring: `/healthz` reports that the process runs, `/readyz` that it can work. */
export function healthRoutes(
  { deps, sealingMark, fleet, load }: {
    deps: Deps;
    /** Set once the process is about to stop. */
    load: { readonly stopping: object | null };
    sealingMark: Pick<SealingMark, "warning">;
    fleet: Pick<Fleet, "warnings">;
  },
): { healthz: Handler; readyz: Handler } {
  let proving: Promise<void> | null = null;
  return {
    healthz: ({ requestId }) => jsonResponse(200, lives, requestId),
    /**
     * Throws 503 where the store does not work, and where the process is about to stop. Concurrent
     * requests share one check.
     */
    async readyz({ requestId }) {
      if (load.stopping) throw serverStopping();
      proving ??= proveStore(deps).finally(() => (proving = null));
      await proving;
      const warning = await sealingMark.warning();
      const found = warning === null ? fleet.warnings() : [warning, ...fleet.warnings()];
      const more = found.length > 0 ? { warnings: found } : {};
      return jsonResponse(200, { status: "ready", ...more }, requestId);
    },
  };
}

/** Throws 503 unless a write to the store succeeds and can be read back. */
async function proveStore({ kv, committer }: Deps): Promise<void> {
  const before = await kv.get(readinessKey);
  const set = { key: readinessKey, value: toBytes({}) };
  await committer.commit({ checks: [], sets: [set], deletes: [] });
  const after = await kv.get(readinessKey);
  // A concurrent write by another process is proof as well.
  if (after.version === before.version) {
    throw storeUnavailable("the written row could not be read back");
  }
}

const probe = { tag: "Health", access: "anyone" } as const;
const lives = { status: "ok", service: serviceName, version } as const;
const livesSchema = z.object({
  status: z.literal("ok"),
  service: z.literal(serviceName).meta({
    description: "What answers: the commands send no key before they have seen this.",
  }),
  version: z.string().meta({ description: "The version of Farebox." }),
});
const works = z.object({
  status: z.literal("ready"),
  warnings: z.array(z.string()).optional().meta({
    description: "What an operator should do; absent where nothing.",
  }),
});

/** The API documentation of the health endpoints. */
export const healthApiDoc: EndpointDocs = {
  "/healthz": {
    GET: {
      ...probe,
      operationId: "isAlive",
      summary: "Check whether the process is alive",
      answers: {
        200: responseDocs("The process is alive.", livesSchema, { alive: lives }),
      },
    },
  },
  "/readyz": {
    GET: {
      ...probe,
      operationId: "isReady",
      summary: "Check whether the service can work",
      description:
        "Writes to the database and reads it back. A process that is about to stop is not " +
        "ready: send it no more requests.",
      answers: {
        200: responseDocs("The service can work.", works, { ready: { status: "ready" } }),
      },
      errors: [{ status: 503, code: "server_shutdown", when: "The process is about to stop." }],
    },
  },
};

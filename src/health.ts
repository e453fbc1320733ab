import { z } from "zod";
import { storeUnavailable } from "./base/errors.ts";
import type { Handler } from "./base/handler.ts";
import { toBytes } from "./base/json.ts";
import { type EndpointDocs, responseDocs } from "./base/endpoint_doc.ts";
import { jsonResponse } from "./base/response.ts";
import type { Deps } from "./deps.ts";
import { readinessKey } from "./store/keys.ts";

/** For those who watch the process: `/healthz` says that it lives, `/readyz` that it can work. */
export function healthRoutes(deps: Deps): { healthz: Handler; readyz: Handler } {
  let proving: Promise<void> | null = null;
  return {
    healthz: ({ requestId }) => jsonResponse(200, { status: "ok" }, requestId),
    /** Throws 503 where the store does not work. Those who ask at the same time share one proof. */
    async readyz({ requestId }) {
      proving ??= proveStore(deps).finally(() => (proving = null));
      await proving;
      return jsonResponse(200, { status: "ready" }, requestId);
    },
  };
}

/** A write to the store succeeds and is read back. Throws 503 otherwise. */
async function proveStore({ kv, committer }: Deps): Promise<void> {
  const before = await kv.get(readinessKey);
  const set = { key: readinessKey, value: toBytes({}) };
  await committer.commit({ checks: [], sets: [set], deletes: [] });
  const after = await kv.get(readinessKey);
  // Written by another process meanwhile, it is proof all the same.
  if (after.version === before.version) {
    throw storeUnavailable("what was written could not be read");
  }
}

const probe = { tag: "Health", access: "anyone" } as const;
const lives = z.object({ status: z.literal("ok") });
const works = z.object({ status: z.literal("ready") });

/** The operations of those who watch. */
export const healthApiDoc: EndpointDocs = {
  "/healthz": {
    GET: {
      ...probe,
      operationId: "isAlive",
      summary: "Ask whether the process lives",
      answers: { 200: responseDocs("It does.", lives, { alive: { status: "ok" } }) },
    },
  },
  "/readyz": {
    GET: {
      ...probe,
      operationId: "isReady",
      summary: "Ask whether the service can work",
      description: "A write to the database succeeds and is read back.",
      answers: { 200: responseDocs("It can.", works, { ready: { status: "ready" } }) },
    },
  },
};

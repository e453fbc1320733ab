import { storeUnavailable } from "./base/errors.ts";
import type { Handler } from "./base/handler.ts";
import { toBytes } from "./base/json.ts";
import { jsonResponse } from "./base/response.ts";
import type { Deps } from "./deps.ts";
import { readinessKey } from "./store/keys.ts";

/** For those who watch the process: `/healthz` says that it lives, `/readyz` that it can work. */
export function healthRoutes({ kv, committer }: Deps): { healthz: Handler; readyz: Handler } {
  return {
    healthz: ({ requestId }) => jsonResponse(200, { status: "ok" }, requestId),
    /** A write to the store succeeds and is read back. Throws 503 otherwise. */
    async readyz({ requestId }) {
      const before = await kv.get(readinessKey);
      const set = { key: readinessKey, value: toBytes({}) };
      await committer.commit({ checks: [], sets: [set], deletes: [] });
      const after = await kv.get(readinessKey);
      // Written by another probe meanwhile, it is proof all the same.
      if (after.version === before.version) {
        throw storeUnavailable("what was written could not be read");
      }
      return jsonResponse(200, { status: "ready" }, requestId);
    },
  };
}

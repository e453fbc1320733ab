import { storeUnavailable } from "./base/errors.ts";
import type { Handler } from "./base/handler.ts";
import { fromBytes, toBytes } from "./base/json.ts";
import { jsonResponse } from "./base/response.ts";
import type { Deps } from "./deps.ts";
import { readinessKey } from "./store/keys.ts";

/** `GET /healthz`: the process lives. */
export const healthz: Handler = ({ requestId }) => jsonResponse(200, { status: "ok" }, requestId);

/** `GET /readyz`: a write to the store succeeds, and is read back. Throws 503 otherwise. */
export function readyz({ kv, committer, id }: Deps): Handler {
  return async ({ requestId }) => {
    const probe = id("batch");
    const set = { key: readinessKey, value: toBytes({ probe }) };
    await committer.commit({ checks: [], sets: [set], deletes: [] });
    const { value } = await kv.get(readinessKey);
    if (!value || !fromBytes<{ probe?: string }>(value).probe) {
      throw storeUnavailable("what was written could not be read");
    }
    return jsonResponse(200, { status: "ready" }, requestId);
  };
}

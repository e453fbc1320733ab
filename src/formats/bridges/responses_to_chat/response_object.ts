import type { JsonObject } from "../../../base/json.ts";
import type { ModelRequest } from "../../../inference/model_request.ts";
import type { ResponseHead } from "../../../inference/upstream_response.ts";
import { ownMembers } from "../../responses/own_members.ts";

/** A response before it has any output. */
export function responseObject(
  request: ModelRequest,
  { id, created, model }: ResponseHead,
): JsonObject {
  return {
    id,
    object: "response",
    created_at: created,
    model,
    ...ownMembers(request),
    status: "in_progress",
    output: [],
    usage: null,
  };
}

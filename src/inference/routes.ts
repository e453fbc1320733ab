import { memoizeByObject } from "../base/memoize_by_object.ts";
import type { Handler } from "../base/handler.ts";
import { corsHeaders, jsonResponse, jsonTextResponse } from "../base/response.ts";
import { allowsModel } from "../projects/key_models.ts";
import { modelNotFound } from "../upstreams/errors.ts";
import type { ModelView } from "../upstreams/model_schema.ts";
import type { Models } from "../upstreams/models.ts";
import { createCountHandler } from "./count_tokens.ts";
import { createKeptHandler, type KeptOperation } from "./kept/kept_routes.ts";
import { createFreeCallHandler } from "./free_call.ts";
import { createCallHandler } from "./handle_call.ts";
import type { ServedEndpoint } from "./served_endpoint.ts";
import type { InferenceServices } from "./services.ts";

/** The endpoints that OpenAI clients call. All need the scope `chat`. */
export function inferenceRoutes(services: InferenceServices, models: Models) {
  return {
    /** An endpoint that calls models; with `reservedUsers`, the one below `/v1/{user}`. */
    serve: (format: ServedEndpoint["format"], options?: { reservedUsers: ReadonlySet<string> }) =>
      createHandler(services, format, options),
    /** An operation on a response that the upstream keeps, likewise. */
    kept: (operation: KeptOperation, options?: { reservedUsers: ReadonlySet<string> }) =>
      createKeptHandler(services, operation, options),
    models: listModels(services, models),
    model: getModel(services, models),
  };
}

function createHandler(
  services: InferenceServices,
  format: ServedEndpoint["format"],
  options?: { reservedUsers: ReadonlySet<string> },
): Handler {
  switch (format.kind) {
    case "free":
      return createFreeCallHandler(services, format, options);
    case "count":
      return createCountHandler(services, format, options);
    default:
      return createCallHandler(services, format, options);
  }
}

function listModels({ auth }: Pick<InferenceServices, "auth">, models: Models): Handler {
  return async ({ request, requestId }) => {
    const { key, snapshot } = await auth.caller(request, "chat");
    const all = await models.list(snapshot.project);
    const text = key.models
      ? writeList(all.filter(({ id }) => allowsModel(key, id)))
      : writtenList(all);
    return jsonTextResponse(200, text, requestId, corsHeaders);
  };
}

const writeList = (data: readonly ModelView[]) => JSON.stringify({ object: "list", data });
const writtenList = memoizeByObject(writeList);

function getModel({ auth }: Pick<InferenceServices, "auth">, models: Models): Handler {
  return async ({ request, requestId, path }) => {
    const { key, snapshot } = await auth.caller(request, "chat");
    // The slash of a name such as `vendor/model:tag` may be escaped or not.
    const id = decodeModel(path.slice(path.indexOf("/models/") + "/models/".length));
    const model = await models.find(snapshot.project, id);
    if (!model || !allowsModel(key, id)) throw modelNotFound(id);
    return jsonResponse(200, model, requestId, corsHeaders);
  };
}

function decodeModel(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

import { ApiError } from "../base/errors.ts";
import type { ApiKey } from "./schema.ts";

/** Whether a key may call a model: by its name, or by a beginning that ends in `*`. */
export function allowsModel({ models }: Pick<ApiKey, "models">, model: string): boolean {
  return models === null ||
    models.some((name) =>
      name.endsWith("*") ? model.startsWith(name.slice(0, -1)) : model === name
    );
}

/** Throws 403 where a key may not call a model. */
export function requireModel(key: Pick<ApiKey, "models">, model: string): void {
  if (allowsModel(key, model)) return;
  throw new ApiError(403, {
    message: `This API key may not call the model '${model}'.`,
    type: "permission_error",
    code: "model_not_allowed",
    param: "model",
  });
}

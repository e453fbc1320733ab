import { ApiError } from "../base/errors.ts";
import type { Project } from "./schema.ts";

/** Throws 403 `project_archived` for a project that takes no new money and no new calls. */
export function requireActive({ status }: Pick<Project, "status">): void {
  if (status === "active") return;
  throw new ApiError(403, {
    message: "This project is archived.",
    type: "permission_error",
    code: "project_archived",
  });
}

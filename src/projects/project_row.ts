import { fromBytes } from "../base/json.ts";
import type { Project } from "./schema.ts";

/**
 * Decodes a project's row. In rows of 0.9.0, turns are kept, the paywall is always a message, and
 * no address waits for its confirmation. Version 1.1 may drop it.
 */
export function decodeProject(bytes: Uint8Array): Project {
  const project = fromBytes<Project>(bytes);
  project.keepResponses ??= "on";
  project.paywallOnJson ??= "message";
  project.unconfirmedEmails ??= [];
  return project;
}

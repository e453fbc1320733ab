import { fromBytes, toBytes } from "../base/json.ts";
import {
  apiKeyHashKey,
  apiKeyKey,
  apiKeysPrefix,
  projectKey,
  projectsPrefix,
} from "../store/keys.ts";
import type { Kv, Row, Write } from "../store/kv.ts";
import { pagesUnder } from "../store/scan.ts";
import { decodeProject } from "./project_row.ts";
import type { ApiKey, Project } from "./schema.ts";

/** A project at one version of its row. */
export interface ProjectSnapshot {
  readonly project: Project;
  readonly version: string;
}

/** Reads the project, or null when there is none. */
export async function readProject(kv: Kv, projectId: string): Promise<ProjectSnapshot | null> {
  return toSnapshot(await kv.get(projectKey(projectId)));
}

/** Lists projects in order of creation, from `cursor` (an id, inclusive). */
export async function listProjects(kv: Kv, limit: number, cursor?: string): Promise<Project[]> {
  const start = cursor ? { start: projectKey(cursor) } : {};
  const rows = await kv.list({ prefix: projectsPrefix, ...start, limit });
  return rows.flatMap((row) => toSnapshot(row)?.project ?? []);
}

const keysPerRead = 500;

/** Lists all of the project's keys, in order of creation. */
export async function listApiKeys(kv: Kv, projectId: string): Promise<ApiKey[]> {
  const keys: ApiKey[] = [];
  for await (const rows of pagesUnder(kv, apiKeysPrefix(projectId), keysPerRead)) {
    keys.push(...rows.flatMap(({ value }) => (value ? [fromBytes<ApiKey>(value)] : [])));
  }
  return keys;
}

/** Reads one key's record, or null. */
export async function readApiKey(
  kv: Kv,
  projectId: string,
  keyId: string,
): Promise<ApiKey | null> {
  const { value } = await kv.get(apiKeyKey(projectId, keyId));
  return value && fromBytes<ApiKey>(value);
}

/** Finds the key with this hash and its project, or null when either is missing. */
export async function findByHash(
  kv: Kv,
  hash: string,
): Promise<{ key: ApiKey; snapshot: ProjectSnapshot } | null> {
  const pointer = await kv.get(apiKeyHashKey(hash));
  if (!pointer.value) return null;
  const { projectId, keyId } = fromBytes<{ projectId: string; keyId: string }>(pointer.value);
  const [keyRow, projectRow] = await kv.getMany([
    apiKeyKey(projectId, keyId),
    projectKey(projectId),
  ]);
  const snapshot = projectRow && toSnapshot(projectRow);
  if (!keyRow?.value || !snapshot) return null;
  return { key: fromBytes<ApiKey>(keyRow.value), snapshot };
}

/**
 * Adds the project's row to `write`; a null `version` creates it, otherwise it must be unchanged.
 */
export function putProject(write: Write, project: Project, version: string | null): void {
  const key = projectKey(project.id);
  write.checks.push({ key, version });
  write.sets.push({ key, value: toBytes(project) });
}

/** Adds a key's row to `write` and, when it is new, the index row of its hash. */
export function putApiKey(write: Write, key: ApiKey, hash: string | null): void {
  write.sets.push({ key: apiKeyKey(key.projectId, key.id), value: toBytes(key) });
  if (!hash) return;
  const pointer = { projectId: key.projectId, keyId: key.id };
  write.checks.push({ key: apiKeyHashKey(hash), version: null });
  write.sets.push({ key: apiKeyHashKey(hash), value: toBytes(pointer) });
}

function toSnapshot({ value, version }: Row): ProjectSnapshot | null {
  return value && version ? { project: decodeProject(value), version } : null;
}

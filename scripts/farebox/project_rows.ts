import { fromBytes, isObject } from "../../src/base/json.ts";
import type { Project } from "../../src/projects/schema.ts";
import { linksPrefix, projectKey, subscriptionsPrefix } from "../../src/store/keys.ts";
import type { Kv, Row } from "../../src/store/kv.ts";
import { pagesUnder } from "../../src/store/scan.ts";
import { refused } from "./failure.ts";

/** Which rows of a store belong to one project. */
export interface ProjectRows {
  id: string;
  owns(row: Row): boolean;
}

const rowsPerRead = 500;

/**
 * Finds what belongs to a project: rows whose key names it, one of its subscriptions or its links,
 * and rows whose value says so. Throws `Failure` for a project that is not there, or whose
 * users pay from wallets.
 */
export async function findProjectRows(kv: Kv, id: string): Promise<ProjectRows> {
  const { value } = await kv.get(projectKey(id));
  if (!value) throw refused(`The source has no project ${id}.`);
  if (fromBytes<Project>(value).mode === "shared") {
    throw refused(
      `${id} is in the shared mode: its users' wallets serve other projects too. Copy the whole ` +
        "database instead.",
    );
  }
  const names = new Set([id]);
  for await (const rows of pagesUnder(kv, subscriptionsPrefix(id), rowsPerRead)) {
    for (const { key } of rows) names.add(String(key[2]));
  }
  for await (const rows of pagesUnder(kv, linksPrefix, rowsPerRead)) {
    for (const { key, value } of rows) if (value && saysSo(value, id)) names.add(String(key[1]));
  }
  return {
    id,
    owns: ({ key, value }) =>
      key.some((part) => names.has(String(part))) || (value !== null && saysSo(value, id)),
  };
}

/** Whether a value names the project as its own. */
function saysSo(value: Uint8Array, id: string): boolean {
  const found = parse(value);
  if (!isObject(found)) return false;
  const { projectId, paywallId, ref } = found;
  return projectId === id || paywallId === id || (isObject(ref) && ref.projectId === id);
}

function parse(value: Uint8Array): unknown {
  // JSON objects only: most rows are told by their keys.
  if (value[0] !== 0x7b) return null;
  try {
    return fromBytes<unknown>(value);
  } catch {
    return null;
  }
}

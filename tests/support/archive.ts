import assert from "node:assert/strict";
import { lineHash } from "../../src/archive/line.ts";
import type { Entry } from "../../src/ledger/entry.ts";
import { adminKey, type Body, type World } from "./world.ts";

export const dayMs = 24 * 60 * 60 * 1000;

/** The lines of what can be archived of the world's project, before some days ago. */
export async function archivable(world: World, days = 40): Promise<string[]> {
  const before = new Date(world.clock.now() - days * dayMs).toISOString();
  const path = `/v1/admin/projects/${world.projectId}/archive/entries?before=${before}`;
  const response = await world.call(path, { key: adminKey });
  assert.equal(response.status, 200);
  return (await response.text()).split("\n").filter((line) => line !== "");
}

/** Removes the entries of these lines, as the command does once they are in a file. */
export async function removeLines(
  world: World,
  lines: readonly string[],
  days = 40,
): Promise<Body> {
  const { status, body } = await world.json(
    `/v1/admin/projects/${world.projectId}/archive/entries`,
    {
      key: adminKey,
      body: {
        before: new Date(world.clock.now() - days * dayMs).toISOString(),
        sha256: lineHash(lines.join("\n")).repeat(2),
        entries: lines.map((line) => [(JSON.parse(line) as Entry).id, lineHash(line)]),
      },
    },
  );
  assert.equal(status, 200, JSON.stringify(body));
  return body;
}

/** All exported entries of the world's project. */
export async function exportEntries(world: World): Promise<Body[]> {
  const path = `/v1/admin/projects/${world.projectId}/export?what=entries`;
  const text = await (await world.call(path, { key: adminKey })).text();
  return text.split("\n").filter((line) => line !== "").map((line) => JSON.parse(line));
}

/// <reference lib="deno.worker" />
import { backup, DatabaseSync } from "node:sqlite";

/** More than any database has, and so all in one step, within one read transaction. */
const allPages = 2 ** 31 - 1;

self.onmessage = async ({ data: { from, to } }: MessageEvent<{ from: string; to: string }>) => {
  let error: string | null = null;
  const database = new DatabaseSync(from, { readOnly: true });
  try {
    await backup(database, to, { rate: allPages });
  } catch (fault) {
    error = String(fault);
  }
  database.close();
  self.postMessage({ error });
};

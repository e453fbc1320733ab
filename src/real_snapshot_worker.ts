/// <reference lib="deno.worker" />
import { backup, DatabaseSync } from "node:sqlite";

/** More than any database has, and so all in one step, within one read transaction. */
const allPages = 2 ** 31 - 1;

self.onmessage = async ({ data: { from, to } }: MessageEvent<{ from: string; to: string }>) => {
  try {
    await copy(from, to);
    self.postMessage({ error: null });
  } catch (error) {
    self.postMessage({ error: String(error) });
  }
};

async function copy(from: string, to: string): Promise<void> {
  const database = new DatabaseSync(from, { readOnly: true });
  try {
    await backup(database, to, { rate: allPages });
  } finally {
    database.close();
  }
  // The copy says of itself, as its source does, that it has a WAL file, which it has not.
  const copied = new DatabaseSync(to);
  copied.exec("PRAGMA journal_mode = DELETE");
  copied.close();
}

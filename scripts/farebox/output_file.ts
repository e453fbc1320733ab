import { dirname } from "node:path";
import { type Failure, refused } from "./failure.ts";

/** A long result's destination: a file that exists only once it is complete, or standard output. */
export interface OutputFile {
  isStdout: boolean;
  /** Bytes written so far. */
  bytes: number;
  /** The path of the incomplete file. */
  partPath: string;
  write(data: string | Uint8Array): Promise<void>;
  /**
   * Runs the work that writes; afterwards the file is on the disk, under its name, or does not
   * exist.
   */
  fill<T>(work: () => Promise<T>): Promise<T>;
}

/**
 * Opens the file at `path`, or standard output for `-`. Throws `Failure` where it cannot be
 * written.
 */
export async function openOutput(path: string): Promise<OutputFile> {
  const isStdout = path === "-";
  // Unique for each run: two runs with one path must not write into one file.
  const partPath = `${path}.${crypto.randomUUID().slice(0, 8)}.part`;
  const file = isStdout ? Deno.stdout : await createFile(partPath);
  const putInPlace = async (whole: Deno.FsFile) => {
    await whole.sync();
    await Deno.rename(partPath, path);
    await syncFolder(path);
  };
  const output: OutputFile = {
    isStdout,
    bytes: 0,
    partPath,
    async write(data) {
      const bytes = typeof data === "string" ? new TextEncoder().encode(data) : data;
      await writeAll(file, bytes, isStdout ? "Standard output" : partPath);
      output.bytes += bytes.length;
    },
    async fill(work) {
      if (!(file instanceof Deno.FsFile)) return await work();
      try {
        const result = await work();
        await putInPlace(file).catch((error) => {
          throw cannotWrite(path, error);
        });
        return result;
      } catch (error) {
        await Deno.remove(partPath).catch(() => {});
        throw error;
      } finally {
        file.close();
      }
    },
  };
  return output;
}

/** Writes everything. Throws `Failure` where the disk is full, or the reader is gone. */
export async function writeAll(
  file: { write(bytes: Uint8Array): Promise<number> },
  bytes: Uint8Array,
  name: string,
): Promise<void> {
  try {
    for (let at = 0; at < bytes.length;) at += await file.write(bytes.subarray(at));
  } catch (error) {
    throw cannotWrite(name, error);
  }
}

/** Makes a rename durable: it is an entry of the folder. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await Deno.open(dirname(path));
  await folder.sync();
  folder.close();
}

/**
 * Creates a new file that only its owner can read. Throws `Failure` where it exists, or cannot be
 * created.
 */
export async function createFile(path: string): Promise<Deno.FsFile> {
  try {
    return await Deno.open(path, { createNew: true, write: true, mode: 0o600 });
  } catch (error) {
    throw cannotWrite(path, error);
  }
}

function cannotWrite(name: string, error: unknown): Failure {
  return refused(`${name} cannot be written: ${error instanceof Error ? error.message : error}`);
}

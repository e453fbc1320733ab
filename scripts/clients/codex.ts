import { isObject } from "../../src/base/json.ts";
import { linesOfJson, runCommand } from "./command.ts";
import { installNpm } from "./install.ts";
import { clientConfig, type Conversation, type Program } from "./program.ts";

const turnMs = 60_000;
/** It neither reports home nor looks for a newer version. */
const quiet = ["-c", "analytics.enabled=false", "-c", "check_for_update_on_startup=false"];
// The model is our own: what it runs is known, and the sandbox needs rights that containers lack.
const open = ["--sandbox", "danger-full-access", "--skip-git-repo-check"];

/** OpenAI's Codex, `codex exec` and `codex exec resume`. */
export const codex: Program = {
  name: "codex",
  format: "responses",
  install: (cache) => installNpm(cache, ["@openai/codex@0.169.0"]),
  async begin(place, installed): Promise<Conversation> {
    const home = `${place.folder}/.codex`;
    await Deno.mkdir(home);
    await Deno.writeTextFile(`${home}/config.toml`, await clientConfig("codex", "toml", place));
    let started = false;
    return {
      async ask(prompt, { stream }) {
        const how = started ? ["resume", "--last"] : [];
        started = true;
        const args = ["exec", ...quiet, ...open, ...(stream ? ["--json"] : []), ...how, prompt];
        const env = { CODEX_HOME: home, FAREBOX_API_KEY: place.key };
        const options = { cwd: place.folder, home: place.folder, env, withinMs: turnMs };
        const { stdout } = await runCommand(
          [`${installed}/node_modules/.bin/codex`, ...args],
          options,
        );
        return stream ? lastMessage(stdout) : stdout;
      },
    };
  },
};

function lastMessage(stdout: string): string {
  const texts = linesOfJson(stdout).flatMap(({ item }) =>
    isObject(item) && item.type === "agent_message" ? [String(item.text)] : []
  );
  return texts.at(-1) ?? stdout;
}

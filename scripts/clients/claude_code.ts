import { linesOfJson, runCommand } from "./command.ts";
import { installNpm } from "./install.ts";
import { clientConfig, type Conversation, type Program } from "./program.ts";

const turnMs = 60_000;
const quiet = {
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
  DISABLE_AUTOUPDATER: "1",
  DISABLE_ERROR_REPORTING: "1",
  DISABLE_TELEMETRY: "1",
};

/** Anthropic's Claude Code, `claude -p` and `claude -p --continue`. */
export const claudeCode: Program = {
  name: "claude-code",
  format: "messages",
  install: (cache) => installNpm(cache, ["@anthropic-ai/claude-code@2.1.332"]),
  async begin(place, installed): Promise<Conversation> {
    const exports = await clientConfig("claude-code", "sh", place);
    const claude = `${installed}/node_modules/.bin/claude`;
    const env = { ...quiet, CLAUDE_CONFIG_DIR: `${place.folder}/.claude` };
    const options = { cwd: place.folder, home: place.folder, env, withinMs: turnMs };
    let started = false;
    return {
      async ask(prompt, { stream }) {
        const events = [
          "--output-format",
          "stream-json",
          "--include-partial-messages",
          "--verbose",
        ];
        const args = [
          "-p",
          "--allowedTools",
          "Bash",
          ...(started ? ["--continue"] : []),
          ...(stream ? events : []),
          "--",
          prompt,
        ];
        started = true;
        const script = `${exports}\nexec "$0" "$@"`;
        const { stdout } = await runCommand(["sh", "-c", script, claude, ...args], options);
        return stream ? resultOf(stdout) : stdout;
      },
    };
  },
};

function resultOf(stdout: string): string {
  const result = linesOfJson(stdout).find(({ type }) => type === "result")?.result;
  return typeof result === "string" ? result : stdout;
}

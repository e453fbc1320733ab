import { fileURLToPath } from "node:url";
import { runCommand } from "./command.ts";
import { installNpm } from "./install.ts";
import { clientConfig, type Program } from "./program.ts";

const turnMs = 60_000;
const driver = fileURLToPath(new URL("./agents_sdk.mjs", import.meta.url));

/**
 * OpenAI's Agents SDK for JavaScript in Node; each turn sends the history that it returned. Its
 * packages are not in deno.json: with them come other types of Node than Deno's own.
 */
export const agentsSdk: Program = {
  name: "agents-sdk",
  format: "responses",
  install: (cache) => installNpm(cache, ["@openai/agents@0.20.0", "openai@7.57.0", "zod@4.6.7"]),
  async begin(place, installed) {
    const { folder } = place;
    await Deno.symlink(`${installed}/node_modules`, `${folder}/node_modules`);
    const config = await clientConfig("agents-sdk", "ts", place);
    await Deno.writeTextFile(`${folder}/client.mjs`, config);
    const options = { cwd: folder, home: folder, env: {}, withinMs: turnMs };
    return {
      async ask(prompt, { stream }) {
        const args = [driver, stream ? "stream" : "whole", prompt];
        return (await runCommand(["node", ...args], options)).stdout;
      },
    };
  },
};

import { fileURLToPath } from "node:url";
import { runCommand } from "./command.ts";
import { installPypi } from "./install.ts";
import { clientConfig, type Program } from "./program.ts";

const turnMs = 60_000;
const driver = fileURLToPath(new URL("./openai_python.py", import.meta.url));

function openaiPythonWith(format: "responses" | "chat", name: string): Program {
  return {
    name,
    format,
    install: (cache) => installPypi(cache, ["openai==3.57.0"]),
    async begin(place, installed) {
      const { folder } = place;
      const config = await clientConfig("openai-sdk", "python", place);
      await Deno.writeTextFile(`${folder}/client.py`, config);
      const python = `${installed}/bin/python`;
      const options = { cwd: folder, home: folder, env: {}, withinMs: turnMs };
      return {
        async ask(prompt, { stream }) {
          const args = [driver, format, stream ? "stream" : "whole", prompt];
          return (await runCommand([python, ...args], options)).stdout;
        },
      };
    },
  };
}

/** OpenAI's SDK for Python with responses; each turn names the response before. */
export const openaiPython = openaiPythonWith("responses", "openai-python");
/** OpenAI's SDK for Python with chat completions; each turn sends all messages. */
export const openaiPythonChat = openaiPythonWith("chat", "openai-python-chat");

// One turn of a conversation with OpenAI's Agents SDK: STREAM PROMPT, in client.mjs's folder.
// What the next turn needs is kept in turn.json.
import { readFile, writeFile } from "node:fs/promises";
import { argv, cwd } from "node:process";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const here = pathToFileURL(`${cwd()}/`);
const { Agent, tool } = createRequire(here)("@openai/agents");
const { runner } = await import(new URL("client.mjs", here).href);

const [, , how, prompt] = argv;
const weather = tool({
  name: "weather",
  description: "Tells the weather of a city",
  parameters: {
    type: "object",
    properties: { city: { type: "string" } },
    required: ["city"],
    additionalProperties: false,
  },
  strict: true,
  execute: () => "tool-ran",
});
const agent = new Agent({ name: "Assistant", model: "gpt-4o-mini", tools: [weather] });

const kept = new URL("turn.json", here);
const history = await readFile(kept, "utf8").then(JSON.parse, () => []);
const stream = how === "stream";
const result = await runner.run(agent, [...history, { role: "user", content: prompt }], { stream });
if (stream) await result.completed;
await writeFile(kept, JSON.stringify(result.history));
console.log(result.finalOutput);

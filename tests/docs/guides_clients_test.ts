import { guideContents } from "../../src/guides/contents.ts";
import { makeFolder, startFarebox } from "../support/process.ts";
import { runSnippet, snippetsOf } from "../support/snippets.ts";
import { findCommand, installPython, testWith, type Toolchain } from "../support/toolchains.ts";

const scratch = await makeFolder();
addEventListener("unload", () => Deno.removeSync(scratch.path, { recursive: true }));

const snake = await installPython(`${scratch.path}/python`, [
  "openai==3.54.0",
  "langchain-openai==1.7.3",
]);
const python = "path" in snake ? snake.path : "";
const tools: Record<string, Toolchain> = {
  sh: await findCommand("curl"),
  ts: { path: Deno.execPath() },
  python: snake,
};

for (const guide of guideContents.flatMap(({ guides }) => guides)) {
  const snippets = (await snippetsOf(guide)).filter(({ mark }) => mark === "run");
  for (const language of new Set(snippets.map((snippet) => snippet.language))) {
    const tool = tools[language] ?? { missing: `nothing runs ${language}` };
    const name = `guides: what ${guide} shows in ${language} prints what it says`;
    testWith(tool, name, async () => {
      await using folder = await makeFolder();
      await using service = await startFarebox({ folder: folder.path, dev: true });
      // The first guide deposits; the others start from where it ended.
      if (guide !== "first-five-minutes") {
        const body = { user: "ada", amount: "5" };
        await service.json("/v1/user/balance/deposit", { body });
      }
      for (const snippet of snippets) {
        if (snippet.language !== language) continue;
        await runSnippet(snippet, { url: service.url, folder: folder.path, python });
      }
    });
  }
}

import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";

const root = new URL("../../", import.meta.url);

const row = `  {
    name: "videoInput",
    field: "videoInputTokens",
    metric: "video_input",
    label: "Video input",
    description: "Prompt tokens of film.",
    side: "input",
    price: "videoInput",
    priceElse: "input",
    position: 18,
    always: true,
  },
] as const satisfies`;

/** A source file with one text replaced, and its imports made absolute: they are still remapped. */
async function changed(path: string, text: string, by: string): Promise<string> {
  const source = await Deno.readTextFile(new URL(path, root));
  assert.ok(source.includes(text), `${path} has ${text}`);
  return source.replace(text, by).replace(
    /from "(\.[^"]+)"/g,
    (_, specifier) => `from "${new URL(specifier, new URL(path, root))}"`,
  );
}

Deno.test("token classes: one row, and one line where usage is read and where it is verified, add a class everywhere", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const files: Record<string, string> = {
      "src/base/token_classes.ts": await changed(
        "src/base/token_classes.ts",
        "] as const satisfies",
        row,
      ),
      "src/pricing/usage.ts": await changed(
        "src/pricing/usage.ts",
        "tokenCounts({ citation",
        'tokenCounts({ ["videoInput"]: Number(raw.video_tokens ?? 0), citation',
      ),
    };
    files["src/verify/recompute_cost.ts"] = await changed(
      "src/verify/recompute_cost.ts",
      "  outputTokens: [",
      '  videoInputTokens: ["videoInput", "input"],\n  outputTokens: [',
    );
    const { imports } = JSON.parse(await Deno.readTextFile(new URL("imports.json", root)));
    for (const [path, text] of Object.entries(files)) {
      const copy = `${folder}/${path.replaceAll("/", "_")}`;
      await Deno.writeTextFile(copy, text);
      imports[String(new URL(path, root))] = `file://${copy}`;
    }
    await Deno.writeTextFile(`${folder}/imports.json`, JSON.stringify({ imports }));
    const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
      args: [
        ...["run", "-A", "--no-check", "--no-lock", "--no-prompt", "--quiet"],
        ...["--unstable-kv", "--unstable-cron", `--import-map=${folder}/imports.json`],
        fileURLToPath(new URL("new_token_class_program.ts", import.meta.url)),
      ],
      cwd: fileURLToPath(root),
    }).output();
    const decoder = new TextDecoder();
    assert.equal(code, 0, decoder.decode(stderr));
    assert.equal(decoder.decode(stdout).trim(), "everywhere");
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

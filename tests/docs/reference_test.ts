import assert from "node:assert/strict";
import { apiDoc } from "../../src/api_doc.ts";
import { readConfig } from "../../src/config/config.ts";
import { createDocument } from "../../src/docs/document.ts";
import { requestExamples } from "../../src/docs/examples.ts";
import { createReference } from "../../src/docs/reference.tsx";
import { createWorld, type World } from "../support/world.ts";

const config = readConfig({}, { dev: true });
const reference = createReference(apiDoc, createDocument(apiDoc, config));
const operations = reference.groups.flatMap(({ operations }) => operations);

async function textOf(world: World, path: string, status = 200): Promise<string> {
  const response = await world.app.fetch(new Request(`http://localhost${path}`));
  assert.equal(response.status, status, path);
  return await response.text();
}

async function found(world: World, query: string): Promise<string[]> {
  const html = await textOf(world, `/docs/search?${new URLSearchParams({ q: query })}`);
  return [...html.matchAll(/<li><a href="([^"]+)">/g)].map(([, href]) => href ?? "")
    .filter((href) =>
      href.includes("/docs/api/") && href.includes("#") || href.includes("guides/")
    );
}

Deno.test("reference: every operation is on exactly one page, at its anchor", async () => {
  using world = await createWorld();
  const ids = operations.map(({ operation: { operationId } }) => operationId);
  const all = Object.values(apiDoc).flatMap((methods) => Object.values(methods));
  assert.deepEqual(ids.toSorted(), all.map(({ operationId }) => operationId).toSorted());
  for (const { name, operations } of reference.groups) {
    const html = await textOf(world, `/docs/api/${name}`);
    for (const { operation } of operations) {
      assert.ok(html.includes(`id="${operation.operationId}"`), operation.operationId);
    }
  }
  assert.match(await textOf(world, "/docs/api/none", 404), /The reference has no page/);
});

Deno.test("reference: the examples of every operation are valid JavaScript", async () => {
  const folder = await Deno.makeTempDir();
  for (const given of operations) {
    const { text = "" } = requestExamples(given).find(({ language }) =>
      language === "JavaScript"
    ) ?? {};
    await Deno.writeTextFile(`${folder}/${given.operation.operationId}.mjs`, text);
  }
  const { success, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["fmt", "--check", "--no-config", "--line-width=1000", folder],
    stdout: "null",
    stderr: "piped",
  }).output();
  const text = new TextDecoder().decode(stderr);
  // It formats otherwise, but it parses every file.
  assert.ok(success || !/SyntaxError|Error formatting/.test(text), text);
  await Deno.remove(folder, { recursive: true });
});

Deno.test("reference: the examples of every operation are valid Python", async () => {
  const sources = operations.map((given) =>
    requestExamples(given).find(({ language }) => language === "Python")?.text ?? ""
  );
  const script = "import ast, json, sys\n[ast.parse(text) for text in json.load(sys.stdin)]";
  let child: Deno.ChildProcess;
  try {
    child = new Deno.Command("python3", {
      args: ["-c", script],
      stdin: "piped",
      stdout: "null",
      stderr: "piped",
    }).spawn();
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return;
    throw error;
  }
  const writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode(JSON.stringify(sources)));
  await writer.close();
  const { success, stderr } = await child.output();
  assert.ok(success, new TextDecoder().decode(stderr));
});

Deno.test("search: finds operations by path, field and error code, events, and guides", async () => {
  using world = await createWorld();
  const [byPath] = await found(world, "/v1/user/balance/deposit");
  assert.equal(byPath, "/docs/api/balances#deposit");
  const [byTitle] = await found(world, "create a chat completion");
  assert.equal(byTitle, "/docs/api/chat#createChatCompletion");
  assert.ok(
    (await found(world, "mail_not_configured")).includes("/docs/api/operations#sendTestEmail"),
  );
  assert.equal(
    (await found(world, "request.blocked"))[0],
    "/docs/api/events#event-request.blocked",
  );
  assert.equal((await found(world, "LangChain"))[0], "/docs/guides/langchain");
  assert.deepEqual(await found(world, "zzzzqqq"), []);
  const most = await found(world, "openai python zzzzqqq");
  assert.ok(
    most.includes("/docs/guides/openai-sdk#python"),
    `where nothing has all words: ${most}`,
  );
});

Deno.test("search: nothing, and too much, are said in words", async () => {
  using world = await createWorld();
  assert.match(await textOf(world, "/docs/search"), /Enter a word/);
  assert.match(await textOf(world, `/docs/search?q=${"a".repeat(101)}`, 400), /At most 100/);
  const html = await textOf(world, "/docs/search?q=%3Cscript%3Ealert(1)%3C/script%3E");
  assert.ok(!html.includes("<script>alert"));
});

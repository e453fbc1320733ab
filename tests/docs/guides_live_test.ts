import assert from "node:assert/strict";
import { matches } from "../../scripts/snippets.ts";
import { runFarebox } from "../support/command.ts";
import { makeFolder, serviceEnv, startFarebox } from "../support/process.ts";
import { snippetOf, snippetsOf, textOf } from "../support/snippets.ts";
import { findCommand, testWith } from "../support/toolchains.ts";
import { makeProject } from "../support/traffic.ts";

const curl = await findCommand("curl");

async function shell(command: string): Promise<string> {
  const { ADMIN_KEY } = serviceEnv;
  const output = await new Deno.Command("sh", { args: ["-c", command], env: { ADMIN_KEY } })
    .output();
  assert.ok(output.success, textOf(output));
  return textOf(output);
}

testWith(
  curl,
  "going live: the first project is made as it is shown, and serves what it has prices for",
  async () => {
    await using folder = await makeFolder();
    await using service = await startFarebox({ folder: folder.path, env: serviceEnv });
    const [snippet] = (await snippetsOf("going-live")).filter(({ mark }) => mark === "live");
    assert.ok(snippet);
    const answer = await shell(snippet.code.replace("https://farebox.example", service.url));
    assert.ok(matches(answer, snippet.expected), answer);
    const { data } = await service.json("/v1/models", { key: JSON.parse(answer).apiKey });
    assert.deepEqual(data.map(({ id }: { id: string }) => id), ["gpt-4o-mini"]);
  },
);

Deno.test("going live: the backup of a running service starts with everything recorded before it", async () => {
  await using folder = await makeFolder();
  await using elsewhere = await makeFolder();
  await using service = await startFarebox({ folder: folder.path, env: serviceEnv });
  const key = await makeProject(service);
  const deposit = { key, body: { user: "ada", amount: "5" } };
  await service.json("/v1/user/balance/deposit", deposit);
  const run = async (mark: string) => {
    const command = (await snippetOf("going-live", mark)).trim()
      .replaceAll("/var/lib/farebox", elsewhere.path);
    const [, args = ""] = /^deno task farebox (.+)$/.exec(command) ?? [];
    const ran = await runFarebox(args.split(" "), { folder: folder.path, url: service.url });
    assert.equal(ran.code, 0, ran.complaint);
  };
  await run("backup");
  await service.json("/v1/user/balance/deposit", deposit);
  await run("restore");
  await using restored = await startFarebox({ folder: elsewhere.path, env: serviceEnv });
  const { balance } = await restored.json("/v1/user/balance?user=ada", { key });
  assert.equal(balance, "5");
});

import assert from "node:assert/strict";
import { eventually, type Farebox, makeFolder, startFarebox } from "../support/process.ts";

const ignore = Deno.build.os !== "linux";
const filesMax = 100;

/** Opens connections until the service accepts no more, and closes them once it has logged that. */
async function exhaust(farebox: Farebox): Promise<void> {
  const { hostname, port } = new URL(farebox.url);
  const connections: Deno.Conn[] = [];
  try {
    for (let n = 0; n < filesMax; n++) {
      connections.push(await Deno.connect({ hostname, port: Number(port) }));
    }
  } catch {
    // It takes no more.
  }
  await eventually(() => farebox.output().includes('"listening_failed"'));
  for (const connection of connections) connection.close();
}

Deno.test("listen: with too many open files it continues existing connections, and listens again", {
  ignore,
}, async () => {
  await using folder = await makeFolder();
  await using farebox = await startFarebox({ folder: folder.path, dev: true, filesMax });
  await farebox.json("/v1/user/balance/deposit", { body: { user: "ada", amount: "9" } });
  const content = "word ".repeat(150);
  const body = {
    model: "sandbox/echo",
    user: "ada",
    stream: true,
    messages: [{ role: "user", content }],
  };
  const { body: stream } = await farebox.call("/v1/chat/completions", { body });
  const text = new Response(stream).text();
  await exhaust(farebox);
  assert.match(farebox.output(), /"listening_failed".*"cause":".*Too many open files/);
  const isBack = async () => (await farebox.call("/healthz").catch(() => null))?.status === 200;
  await eventually(isBack, { what: "a new listener" });
  farebox.signal("SIGTERM");
  const said = [...(await text).matchAll(/^data: (\{.*)$/gm)]
    .map(([, data = ""]) => JSON.parse(data).choices[0]?.delta.content ?? "").join("");
  assert.equal(said, `You said: ${content}`, "begun before, ended after it, also by a stop");
  assert.equal((await farebox.ended).code, 0);
  assert.equal(farebox.errors(), "");
});

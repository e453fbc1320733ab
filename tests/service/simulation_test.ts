import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { prepare, runSeed } from "../simulation/simulation.ts";

// The short form of `deno task simulate`: a few seeds, each of at least 200 calls and 3 crashes.
const seeds = 60;

Deno.test("simulation: whatever crashes, fails, comes late or twice, every promise holds", async () => {
  const restore = await prepare();
  for (let seed = 1; seed <= seeds; seed++) {
    const { violation, trace } = await runSeed(seed);
    const told = `deno task simulate --seed ${seed}: ${violation?.detail}\n${trace.join("\n")}`;
    assert.equal(violation?.invariant, undefined, told);
  }
  restore();
});

Deno.test("simulation: a seed always runs the same way, and differently from others", async () => {
  const restore = await prepare();
  const [first, again, other] = [await runSeed(7), await runSeed(7), await runSeed(8)];
  assert.deepEqual(again, first);
  assert.notEqual(other.hash, first.hash);
  restore();
});

Deno.test("simulate: the task distributes seeds among its workers, and reports the results", async () => {
  const args = ["task", "simulate", "--seeds", "10", "--from", "501"];
  const child = new Deno.Command(Deno.execPath(), {
    args,
    cwd: fileURLToPath(new URL("../../", import.meta.url)),
    signal: AbortSignal.timeout(60_000),
    stdout: "piped",
    stderr: "null",
  }).spawn();
  const { success, stdout } = await child.output();
  const text = new TextDecoder().decode(stdout);
  assert.ok(success, text);
  assert.match(text, /simulate: 10 seeds, 0 broken/);
});

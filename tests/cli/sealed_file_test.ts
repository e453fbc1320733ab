import assert from "node:assert/strict";
import type { Entry } from "../../src/ledger/entry.ts";
import { Failure } from "../../scripts/farebox/failure.ts";
import { type SealedHead, verifySealed, writeSealed } from "../../scripts/farebox/sealed_file.ts";
import { runFarebox } from "../support/command.ts";
import { makeFolder } from "../support/process.ts";

const head: SealedHead = {
  farebox: "sealed entries",
  version: 1,
  project: "pw_1",
  currency: "usd",
  before: "2026-06-01T00:00:00.000Z",
};

const ids = ["0A", "0B", "0C"].map((end) => `act_01KDVDNA0047C4FEZDQK8YZG${end}`);
const chat = (n: number, user = "ada"): Entry => ({
  id: ids[n] ?? "",
  seq: n + 2,
  prev: n === 0 ? "act_FIRST" : ids[n - 1] ?? null,
  kind: "usage",
  user,
  delta: "-0.00002",
  balanceAfter: "4",
  heldAfter: "0",
  shortfall: "0",
  createdAt: Date.parse("2026-05-01"),
  idempotencyKey: null,
  metadata: { mail: "ada@example.com" },
  usage: {
    model: "m",
    requestId: "chosen-by-ada",
    source: "provider",
    uncachedInputTokens: 10,
    cachedInputTokens: 0,
    cacheWriteTokens: 0,
    outputTokens: 5,
    reasoningTokens: 0,
    price: { input: "1", output: "2", markupPercent: "0", requestFee: "0" },
  },
  refundedActivityId: null,
});
const sealed = (entries: readonly Entry[]) =>
  entries.map((entry) => ({ line: JSON.stringify(entry), entry }));

const textOf = async (path: string): Promise<string> => {
  const file = await Deno.open(path);
  return await new Response(file.readable.pipeThrough(new DecompressionStream("gzip"))).text();
};
const writeText = async (path: string, text: string): Promise<void> => {
  const packed = new Blob([text]).stream().pipeThrough(new CompressionStream("gzip"));
  await Deno.writeFile(path, packed);
};

Deno.test("sealed file: every change, cut and addition is found, and nothing else", async () => {
  await using folder = await makeFolder();
  const path = `${folder.path}/whole.jsonl.gz`;
  const seal = await writeSealed(path, head, sealed([chat(0), chat(1), chat(2)]));
  assert.deepEqual([seal.entries, seal.delta, seal.shortfall], [3, "-0.00006", "0"]);
  assert.deepEqual(await verifySealed(path), { head, seal });
  const text = await textOf(path);
  const lines = text.split("\n");
  const damaged: [string, RegExp][] = [
    [text.replace('"user":"ada"', '"user":"bob"'), /its seal states/],
    [text.replace('"outputTokens":5', '"outputTokens":6'), /not what its tokens cost/],
    [lines.toSpliced(2, 1).join("\n"), /its seal states/],
    [lines.toSpliced(2, 0, lines[1] ?? "").join("\n"), /comes before it/],
    [lines.toSpliced(1, 2, lines[2] ?? "", lines[1] ?? "").join("\n"), /comes before it/],
    [lines.slice(0, -2).join("\n") + "\n", /its seal is missing/],
    [lines.slice(1).join("\n"), /is not a sealed file/],
    [`${text}more\n`, /and more/],
    [text.replace('"kind":"usage"', '"kind":"gift"'), /cannot be read/],
    [text.replace('"before":"2026-06', '"before":"2026-04'), /was created after/],
  ];
  for (const [harmed, wanted] of damaged) {
    const other = `${folder.path}/harmed.jsonl.gz`;
    await writeText(other, harmed);
    await assert.rejects(verifySealed(other), (error: Error) => {
      assert.ok(error instanceof Failure);
      assert.match(error.message, wanted);
      return true;
    });
  }
  const bytes = Deno.readFileSync(path);
  Deno.writeFileSync(path, bytes.subarray(0, bytes.length - 20));
  await assert.rejects(verifySealed(path), Failure);
});

Deno.test("sealed file: an erasure replaces the user, and what they have chosen", async () => {
  await using folder = await makeFolder();
  const path = `${folder.path}/old.jsonl.gz`;
  await writeSealed(path, head, sealed([chat(0), chat(1, "bob"), chat(2)]));
  const args = ["archive", "erase", path, "--user", "ada", "--pseudonym", "forgotten_1"];
  const { code, printed, complaint } = await runFarebox(args, { folder: folder.path });
  assert.equal(code, 0, complaint);
  assert.match(printed, /^2 entries of .* name forgotten_1 now/);
  const text = await textOf(path);
  assert.doesNotMatch(text.replace(/^.*"bob".*$/m, ""), /"ada"|ada@|chosen-by-ada/);
  assert.match(text, /"bob"/);
  assert.equal((await verifySealed(path)).seal.entries, 3);
});

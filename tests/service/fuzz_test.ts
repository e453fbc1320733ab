import assert from "node:assert/strict";
import { fuzz } from "../fuzz/fuzz.ts";

const seed = Number(Deno.env.get("FUZZ_SEED") ?? 1);

Deno.test("fuzz: no spoiled request is answered by a fault of ours", async () => {
  const findings = await fuzz({ seed, bodies: 2_000 });
  const shown = findings.map(({ at, what, request }) =>
    `deno task fuzz --seed ${seed} --from ${at} --bodies 1: ${what}\n${request.slice(0, 2_000)}`
  );
  assert.deepEqual(shown, []);
});

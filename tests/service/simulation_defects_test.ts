import assert from "node:assert/strict";
import type { Defect } from "../simulation/defect_seams.ts";
import { defects } from "../simulation/defects.ts";
import { prepare, runSeed } from "../simulation/simulation.ts";

// A simulation that finds nothing may check nothing: planted defects must be found, within a few
// seeds.

/** Whether a broken promise is found within its seeds. */
async function isFound({ seams, install, seedsMax }: Defect): Promise<boolean> {
  const takeBack = install?.();
  try {
    for (let seed = 1; seed <= seedsMax; seed++) {
      const { violation } = await runSeed(seed, seams);
      if (violation) return true;
    }
    return false;
  } finally {
    takeBack?.();
  }
}

for (const defect of defects) {
  Deno.test(`simulation: finds that ${defect.name}`, async () => {
    const restore = await prepare();
    const found = await isFound(defect);
    restore();
    assert.ok(found, `not found in ${defect.seedsMax} seeds`);
  });
}

import { usageBounds } from "../../src/pricing/usage_bounds.ts";

/** Options of a meter whose call has these bounds; every token costs the same. */
export function meterBounds(prompt: number, output: number) {
  return { bounds: usageBounds({ prompt, output }), heldOutput: output, rateOf: () => 1n };
}

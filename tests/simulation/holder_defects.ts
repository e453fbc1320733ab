import { Peers } from "../../src/fleet/peers.ts";
import type { Defect } from "./defect_seams.ts";

/** Replaces the judgement whether another process is gone. */
const isGone = (judge: (id: string) => boolean) => () => {
  const inner = Peers.prototype.isGone;
  const replace = (value: unknown) =>
    Object.defineProperty(Peers.prototype, "isGone", { value, configurable: true });
  replace(judge);
  return () => void replace(inner);
};

/** Defects in who may take what processes hold. */
export const holderDefects: readonly Defect[] = [
  {
    name: "a process that lives is taken for dead",
    install: isGone(() => true),
    seedsMax: 20,
  },
  {
    name: "the holds of a dead process are left until they expire",
    install: isGone(() => false),
    seedsMax: 90,
  },
];

/** @jsxImportSource @hono/hono/jsx */
import { Badge } from "../../pages/parts.tsx";
import type { RequestRecord } from "../../requests/record.ts";

/** The outcomes of requests, for people. */
export const outcomeLabels = {
  completed: "Completed",
  failed: "Failed",
  canceled: "Canceled",
  refused: "Refused",
} as const;
const tones = { completed: "good", failed: "bad", canceled: "", refused: "late" } as const;

/** A time for people: `412 ms`, `1.8 s`. */
export function msText(ms: number | null): string {
  if (ms === null) return "–";
  return ms < 1_000 ? `${ms} ms` : `${(ms / 1_000).toFixed(1)} s`;
}

/** How a request ended, as a word and a color. */
export function OutcomeBadge({ outcome }: Pick<RequestRecord, "outcome">) {
  return <Badge tone={tones[outcome]}>{outcomeLabels[outcome]}</Badge>;
}

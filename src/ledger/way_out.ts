import type { Trigger } from "../events/event.ts";
import type { Project } from "../projects/schema.ts";
import type { Obstacle } from "./obstacle.ts";

/** Where a user whose money is not taken is sent, and the sentence that says so. */
export type WayOut = (
  project: Project,
  user: string,
  asked: {
    obstacle: Obstacle;
    trigger: Trigger;
    amount?: string;
    balance: string;
    languages: string | null;
  },
) => Promise<{ url: string; message: string }>;

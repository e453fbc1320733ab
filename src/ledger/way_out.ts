import type { Project } from "../projects/schema.ts";
import type { Refusal } from "./posting.ts";

/** Where a user whose money is not taken is sent, and the sentence that says so. */
export type WayOut = (
  project: Project,
  user: string,
  asked: { refusal: Refusal; amount?: string; balance: string; languages: string | null },
) => Promise<{ url: string; message: string }>;

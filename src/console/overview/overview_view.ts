import type { UserStats } from "../../ledger/user_stats.ts";
import type { ApiKey } from "../../projects/schema.ts";
import type { RanOut } from "../../requests/ran_out.ts";
import type { Summary } from "../../summaries/summary.ts";
import type { TopSpender } from "../../summaries/top_users.ts";
import type { ProjectVisit } from "../guard.tsx";
import type { Period } from "../shown_period.ts";

/** What the overview shows. */
export interface OverviewView {
  visit: ProjectVisit;
  period: Period;
  summary: Summary;
  /** The period of the same length before. */
  before: Summary;
  /** Null where it is not known. */
  users: UserStats | null;
  /** Of the period, the highest spending first. */
  topSpenders: readonly TopSpender[];
  keys: readonly ApiKey[];
  /** Who was refused for lack of money, the last first. */
  ranOut: readonly RanOut[];
}

import type { Deps } from "./deps.ts";
import type { Fleet } from "./fleet/fleet.ts";
import { createLease } from "./fleet/lease.ts";
import type { RefusalReports } from "./inference/admit/refusal_reports.ts";
import type { HoldSweep } from "./ledger/hold_sweep.ts";
import type { CatalogueRefresh } from "./pricing/refresh.ts";
import type { RefusedKeys } from "./projects/refused_keys.ts";
import type { SealingMark } from "./store/sealed_with.ts";
import type { Removal } from "./store/removal.ts";
import type { TopUsers } from "./summaries/top_users.ts";
import { createSweep } from "./sweeps.ts";
import type { Reclaim } from "./webhooks/delivery/reclaim.ts";

/** What a process does besides handling requests. */
export interface Upkeep {
  /**
   * Cleans up after dead processes, as one for all of a store, and removes what has ended, each
   * process its part; a bounded part at each call.
   */
  sweep(): Promise<void>;
  /** Tells the other processes of this store what they count together, and hears it from them. */
  beat(): Promise<void>;
  /** Leaves the others: they take over at once. */
  leave(): Promise<void>;
  /** Loads refreshed list prices: before the first request, and then with each sweep. */
  loadCatalogue(): Promise<void>;
  /** Writes increments that are only counted so far: the sweep does, and a clean stop. */
  flush(): Promise<void>;
}

interface UpkeepServices {
  topUsers: TopUsers;
  refusalReports: RefusalReports;
  refusedKeys: RefusedKeys;
  catalogueRefresh: CatalogueRefresh;
  fleet: Fleet;
  holdSweep: HoldSweep;
  reclaim: Reclaim;
  removal: Removal;
  sealingMark: Pick<SealingMark, "note">;
}

/** Creates the upkeep; `sweepers` are what cleans up, in this order. */
export function createUpkeep(
  deps: Deps,
  services: UpkeepServices,
  sweepers: readonly { sweep(): Promise<void> }[],
): Upkeep {
  const { topUsers, refusalReports, refusedKeys, fleet, holdSweep, reclaim } = services;
  const { removal, sealingMark } = services;
  const { load: loadCatalogue } = services.catalogueRefresh;
  const flushCounters = () =>
    topUsers.flush().then(refusedKeys.flush).then(() => deps.committer.flush());
  const lease = createLease(deps, "sweep");
  const sweepAll = createSweep(deps, sweepers);
  // What a process held is free when it dies, not only at the next sweep.
  fleet.onUpset(async () => {
    reclaim.expectLost();
    holdSweep.startOver();
    await holdSweep.sweep();
    await reclaim.sweep();
  });
  return {
    async sweep() {
      await flushCounters();
      await loadCatalogue();
      try {
        if (await lease.take()) await sweepAll();
        else holdSweep.rest();
      } finally {
        await removal.run();
      }
      await sealingMark.note();
    },
    beat: fleet.beat,
    async leave() {
      removal.stop();
      await fleet.leave();
      await lease.release();
    },
    loadCatalogue,
    flush: () => refusalReports.flush().then(flushCounters),
  };
}

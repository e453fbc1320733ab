import type { Alerts } from "../alerts/alerts.ts";
import type { Confirmations } from "../alerts/confirmations.ts";
import type { RunningCalls } from "../inference/running.ts";
import type { Deps } from "../deps.ts";
import type { Fleet } from "../fleet/fleet.ts";
import type { Catalogue } from "../pricing/catalogue.ts";
import type { CatalogueRefresh } from "../pricing/refresh.ts";
import type { Prices } from "../pricing/terms.ts";
import type { Links } from "../paywall/links.ts";
import type { RequestLog } from "../requests/request_log.ts";
import type { ConnectStripe } from "../payments/connect_stripe.ts";
import type { MoneyRecorder } from "../ledger/record.ts";
import type { ProjectAdmin, RevokeWithMade } from "../projects/admin.ts";
import type { CommitWithEvents } from "../projects/commit_with_events.ts";
import type { ProjectCache } from "../projects/project_cache.ts";
import type { RefusedKeys } from "../projects/refused_keys.ts";
import type { TargetHealth } from "../upstreams/target_health.ts";
import type { Dispatcher } from "../webhooks/delivery/dispatcher.ts";
import type { Redelivery } from "../webhooks/delivery/redelivery.ts";
import type { Subscriptions } from "../webhooks/subscriptions/subscriptions.ts";
import type { WalletJoins } from "../wallets/joins.ts";
import type { ConsoleSessions } from "./sign_in/session.ts";

/** What the console depends on. */
export interface ConsoleDeps {
  deps: Deps;
  projectCache: ProjectCache;
  admin: ProjectAdmin;
  revokeWithMade: RevokeWithMade;
  recorder: MoneyRecorder;
  links: Pick<Links, "topUpUrl">;
  alerts: Pick<Alerts, "read" | "sendSample">;
  confirmations: Pick<Confirmations, "sendAgain">;
  connectStripe: ConnectStripe;
  requestLog: Pick<RequestLog, "flush">;
  commit: CommitWithEvents;
  running: RunningCalls;
  subscriptions: Subscriptions;
  redelivery: Redelivery;
  dispatcher: Pick<Dispatcher, "stateOf">;
  sessions: ConsoleSessions;
  prices: Prices;
  catalogue: Pick<Catalogue, "date">;
  catalogueRefresh: Pick<CatalogueRefresh, "diff" | "refresh" | "last">;
  targetHealth: Pick<TargetHealth, "view">;
  fleet: Pick<Fleet, "join">;
  joins: Pick<WalletJoins, "ask" | "withdraw">;
  refusedKeys: Pick<RefusedKeys, "note">;
}

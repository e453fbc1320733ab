import type { Deps } from "../deps.ts";
import { type Eraser, eraseRows } from "../store/erase.ts";
import { alertsPrefix } from "../store/keys.ts";
import { decodeAlerts, encodeAlerts } from "./alert.ts";

/** Deletes a user's alerts. No event says that they are resolved. */
export function createAlertEraser({ kv, committer }: Pick<Deps, "kv" | "committer">): Eraser {
  return eraseRows({
    name: "alerts",
    kv,
    committer,
    prefix: () => alertsPrefix,
    rewrite({ key, value }, { projectId, user }) {
      if (key[1] !== projectId) return null;
      const state = decodeAlerts(value);
      const alerts = state.alerts.filter(({ about }) => about.user !== user);
      if (alerts.length === state.alerts.length) return null;
      return { sets: [{ key, value: encodeAlerts({ ...state, alerts }) }], deletes: [] };
    },
  });
}

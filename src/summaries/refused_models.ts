import type { Clock } from "../base/clock.ts";
import { startOfHour } from "./hourly_counters.ts";

/** Names of models that callers made up, as far as they are counted by name. */
export interface RefusedModels {
  /** The name under which a refused request is counted: its model's, or one for all others. */
  nameOf(projectId: string, model: string): string;
}

/** How many models of a project are counted by name in an hour: each is a value in the store. */
const namesMax = 50;
/** The name under which all further models are counted. */
const otherModels = "other models";

/** Creates the names of one process. */
export function createRefusedModels({ now }: Pick<Clock, "now">): RefusedModels {
  const names = new Map<string, Set<string>>();
  let hour = 0;
  return {
    nameOf(projectId, model) {
      const current = startOfHour(now());
      if (current !== hour) names.clear();
      hour = current;
      const ofProject = names.get(projectId) ?? new Set();
      names.set(projectId, ofProject);
      if (!ofProject.has(model) && ofProject.size >= namesMax) return otherModels;
      ofProject.add(model);
      return model;
    },
  };
}

import { type Defect, listing } from "./defect_seams.ts";
import type { Key, ListOptions } from "../../src/store/kv.ts";

/** Whether this is a listing of the trim: up to an end, from the first row on. */
const isTrims = ({ prefix, start, end }: ListOptions, name: string) =>
  prefix[0] === name && end !== undefined && start === undefined;

/** The end of a listing, moved behind everything. */
const behindAll = (end: Key = []): Key => [...end.slice(0, -1), "~"];

/** Defects in the removal of old records. */
export const trimDefects: readonly Defect[] = [
  {
    name: "old records are not removed",
    seams: listing((options, kv) =>
      isTrims(options, "log") ? Promise.resolve([]) : kv.list(options)
    ),
    seedsMax: 80,
  },
  {
    name: "ended deliveries are removed at once",
    seams: listing((options, kv) =>
      kv.list(isTrims(options, "log") ? { ...options, end: behindAll(options.end) } : options)
    ),
    seedsMax: 5,
  },
  {
    name: "events are removed before their deliveries",
    seams: listing((options, kv) =>
      kv.list(isTrims(options, "event") ? { ...options, end: behindAll(options.end) } : options)
    ),
    seedsMax: 5,
  },
];

import type { ApiFacts } from "./facts.ts";

/** One change of the API, in all places that it has. */
export interface ApiChange {
  /** The path, field, parameter, header, event or word that changed. */
  name: string;
  what: "new" | "gone" | "of another type";
  places: string[];
}

/**
 * What differs between two documents. Of what is new or gone, only the outermost place counts: a
 * new endpoint is one change.
 */
export function changesBetween(before: ApiFacts, after: ApiFacts): ApiChange[] {
  const changes = new Map<string, ApiChange>();
  for (const place of new Set([...before.keys(), ...after.keys()])) {
    const what = differenceAt(place, before, after);
    if (what === null) continue;
    const isPart = (around: string) => differenceAt(around, before, after) === what;
    if (what !== "of another type" && placesAround(place).some(isPart)) continue;
    // Errors are told by their codes.
    if (after.has(`${place}.error.code`) || before.has(`${place}.error.code`)) continue;
    const name = nameOf(place);
    const known = changes.get(`${name} ${what}`);
    if (known) known.places.push(place);
    else changes.set(`${name} ${what}`, { name, what, places: [place] });
  }
  return [...changes.values()];
}

function differenceAt(place: string, before: ApiFacts, after: ApiFacts): ApiChange["what"] | null {
  const [old, now] = [before.get(place), after.get(place)];
  if (old === now) return null;
  if (old === undefined) return "new";
  return now === undefined ? "gone" : "of another type";
}

/**
 * The places that a place is a part of: its endpoint, its status, the fields around it. An error's
 * code is a part of its endpoint alone.
 */
function placesAround(place: string): string[] {
  const [operation = ""] = /^\S+ \S+/.exec(place) ?? [];
  if (/\.code=[^=]+$/.test(place)) return [operation];
  const ends = [...place.matchAll(/(?<=\S)(?= \S+$)|(?=[.=[])/g)].map(({ index }) => index);
  return [operation, ...ends.map((end) => place.slice(0, end))].filter((one) => one !== place);
}

/** By what a change is known: a place's last word. */
function nameOf(place: string): string {
  if (place.includes("=")) return place.slice(place.lastIndexOf("=") + 1);
  const [, path = "", rest] = /^\S+ (\S+)(?: (.+))?$/.exec(place) ?? [];
  if (rest === undefined) return path;
  const last = rest.split(/[.[\]: ]+/).findLast((part) => part !== "" && part !== "*") ?? "";
  // The whole body of an endpoint.
  return last === "body" && !rest.includes(".") ? path : last;
}

/** The changes that a text does not name in code, such as `amount` or `POST /v1/user/charge`. */
export function unnamedIn(text: string, changes: readonly ApiChange[]): ApiChange[] {
  const code = [...text.matchAll(/`([^`]+)`/g)].map(([, span = ""]) => withoutNames(span));
  const paths = changes.map(({ name }) => name).filter((name) => name.startsWith("/"));
  const isNamed = (name: string) => {
    const quoted = withoutNames(name).replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
    return code.some((span) => new RegExp(`(?<![\\w/-])${quoted}(?![\\w-])`, "i").test(span));
  };
  return changes.filter(({ name }) =>
    // New endpoints below a new one that is named are told with it.
    !isNamed(name) && !paths.some((path) => name.startsWith(`${path}/`) && isNamed(path))
  );
}

/** A path whose parameters have no names. */
const withoutNames = (path: string) => path.replaceAll(/\{\w+\}/g, "{}");

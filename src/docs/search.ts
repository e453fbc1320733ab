import type { JsonObject } from "../base/json.ts";
import { objectIn } from "./described.ts";
import { endpointErrors } from "./errors.ts";
import { type Reference, referencePath } from "./reference.tsx";

/** Something that a search can find. */
interface SearchEntry {
  title: string;
  /** Where it is, in words. */
  place: string;
  href: string;
  /** Words that name it, such as its path and its fields. */
  names: string;
  /** Words that it explains, each in a row of a table. */
  explains?: string;
  text: string;
}

/** A result of a search, with the text around the first word. */
export interface SearchResult extends Pick<SearchEntry, "title" | "place" | "href"> {
  snippet: string;
}

/** The longest text that may be searched for, in characters. */
export const searchCharsMax = 100;
const resultsMax = 20;
const termsMax = 8;
const snippetChars = 160;
const schemasPlace = "Schemas";

/** Returns what fits all words of a text, or else most of them, the best first. */
export function searchDocs(entries: readonly SearchEntry[], query: string): SearchResult[] {
  const terms = [...new Set(query.toLowerCase().split(/[\s,]+/).filter(Boolean))].slice(
    0,
    termsMax,
  );
  if (terms.length === 0) return [];
  const found = entries.flatMap((entry) => {
    const points = terms.map((term) => pointsOf(entry, term));
    const fits = points.filter((one) => one > 0).length;
    if (fits === 0) return [];
    const all = points.reduce((sum, one) => sum + one, 0);
    // Whoever searches wants to do something: a schema is a part of that.
    return [{ entry, fits, points: entry.place === schemasPlace ? all / 2 : all }];
  });
  // Where nothing has all words, what has most of them is better than nothing.
  const most = Math.max(0, ...found.map(({ fits }) => fits));
  if (most < Math.ceil(terms.length / 2)) return [];
  return found.filter(({ fits }) => fits === most)
    .sort((one, other) => other.points - one.points).slice(0, resultsMax)
    .map(({ entry: { title, place, href, text } }) => ({
      title,
      place,
      href,
      snippet: snippetOf(text, terms),
    }));
}

/** How well a word fits an entry; 0: not at all. */
function pointsOf({ title, names, explains = "", text }: SearchEntry, term: string): number {
  const lowTitle = title.toLowerCase();
  if (lowTitle === term) return 100;
  const words = names.toLowerCase().split(/\s+/);
  let points = 0;
  if (lowTitle.split(/[^a-z0-9._]+/).includes(term)) points += 20;
  else if (lowTitle.includes(term)) points += 10;
  if (words.includes(term)) points += 15;
  else if (words.some((word) => word.includes(term))) points += 4;
  if (explains.toLowerCase().split(" ").includes(term)) points += 30;
  if (text.toLowerCase().includes(term)) points += 1;
  return points;
}

function snippetOf(text: string, terms: readonly string[]): string {
  const plain = text.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1").replaceAll(/```[^\n]*|-{3,}/g, " ")
    .replaceAll(/[`*#|]+/g, "").replaceAll(/\s+/g, " ").trim();
  const low = plain.toLowerCase();
  const at = Math.max(
    0,
    Math.min(...terms.map((term) => low.indexOf(term)).filter((one) => one >= 0)),
  );
  const from = Number.isFinite(at) ? Math.max(0, at - snippetChars / 3) : 0;
  const start = from === 0 ? 0 : low.indexOf(" ", from) + 1;
  const cut = plain.slice(start, start + snippetChars);
  return `${start > 0 ? "…" : ""}${cut}${start + snippetChars < plain.length ? "…" : ""}`;
}

/** Returns what a search finds in the reference. */
export function referenceEntries(
  { groups, events, schemas }: Reference,
  base: string,
): SearchEntry[] {
  return [
    ...groups.flatMap(({ name, title: place, operations }) =>
      operations.filter(({ operation: { variantOf } }) => variantOf === undefined)
        .map(({ operation, method, path, body, parameters }): SearchEntry => ({
          title: operation.summary,
          place,
          href: `${referencePath(base, name)}#${operation.operationId}`,
          names: [
            `${method} ${path} ${operation.operationId}`,
            ...parameters.map((parameter) => String(parameter.name)),
            ...Object.keys(objectIn(body?.properties)),
            ...endpointErrors(operation).map(({ code }) => typeof code === "string" ? code : ""),
          ].join(" "),
          text: `${operation.description ?? ""} ${method} ${path}`,
        }))
    ),
    ...events.map(([type, item]): SearchEntry => ({
      title: type,
      place: "Events",
      href: `${referencePath(base, "events")}#event-${type}`,
      names: type.replaceAll(".", " "),
      text: String(objectIn(item.post).summary),
    })),
    ...schemas.map(([name, schema]): SearchEntry => ({
      title: name,
      place: schemasPlace,
      href: `${referencePath(base, "schemas")}#schema-${name}`,
      names: fieldNames(schema),
      text: String(schema.description ?? ""),
    })),
  ];
}

function fieldNames(schema: JsonObject): string {
  return Object.keys(objectIn(schema.properties)).join(" ");
}

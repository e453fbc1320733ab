import { editDistance } from "../base/edit_distance.ts";
import { variableNames } from "../config/config.ts";

/** A variable that is probably meant as a setting, but is none. */
interface UnknownVariable {
  name: string;
  /** The setting that it resembles most; null where only its prefix is one of ours. */
  didYouMean: string | null;
}

/** Variables that Deno, the HTTP client or the operator's commands read, beside the settings. */
const otherNames: readonly string[] = [
  "HTTP_PROXY",
  "HTTPS_PROXY",
  "ALL_PROXY",
  "NO_PROXY",
  "DENO_CERT",
  "DENO_KV_ACCESS_TOKEN",
  "OTEL_DENO",
  "FAREBOX_URL",
];

/** Names of other programs that resemble one of ours. */
const foreignNames: readonly string[] = ["FTP_PROXY", "HOSTNAME", "HOSTTYPE", "WEBHOOK_SECRET"];

/** Kubernetes sets these for each service of the namespace: one may be called `farebox`. */
const ofKubernetes = /_(SERVICE_(HOST|PORT)|PORT)(_\w+)?$/;

/** What only our settings begin with. */
const ownPrefixes: readonly string[] = [
  "FAREBOX_",
  "WEBHOOK_",
  "UPSTREAM_",
  "KV_",
  "METRICS_",
  "SECRETS_",
  "STRIPE_",
  "BODIES_",
  // It was a setting once.
  "HTTP_UPGRADE",
];

/** Finds variables whose names resemble those of settings, in the order of their names. */
export function findUnknownVariables(names: readonly string[]): UnknownVariable[] {
  return [...names].sort().flatMap((name) => {
    if (isKnown(name)) return [];
    const didYouMean = nearestName(name);
    return didYouMean !== null || hasOwnPrefix(name) ? [{ name, didYouMean }] : [];
  });
}

function isKnown(name: string): boolean {
  if (variableNames.includes(name)) return true;
  const upper = name.toUpperCase();
  // The proxy variables count in lower case too.
  if (upper.endsWith("_PROXY") && [...otherNames, ...foreignNames].includes(upper)) return true;
  return otherNames.includes(name) || foreignNames.includes(upper) || ofKubernetes.test(upper);
}

function hasOwnPrefix(name: string): boolean {
  return ownPrefixes.some((prefix) => name.toUpperCase().startsWith(prefix));
}

/** The name within the distance that a slip of the finger makes, which grows with its length. */
function nearestName(name: string): string | null {
  const given = name.replace(/^FAREBOX_(?=.)/i, "");
  let found: { name: string; distance: number } | null = null;
  for (const candidate of [...variableNames, ...otherNames]) {
    const isSibling = hasOwnPrefix(given) && wordsOf(given)[0] === wordsOf(candidate)[0];
    const isAbridged = isSibling &&
      wordsOf(given).every((word) => wordsOf(candidate).includes(word));
    const distance = isAbridged ? 1 : nameDistance(given, candidate);
    const isNear = distance <= distanceMax(candidate) + (isSibling ? 2 : 0);
    if (isNear && distance < (found?.distance ?? Infinity)) found = { name: candidate, distance };
  }
  return found?.name ?? null;
}

function distanceMax({ length }: string): number {
  return length < 8 ? 1 : length < 13 ? 2 : 3;
}

/** Case, separators and the order of the words do not tell names apart: `adminKey`, `KEY_ADMIN`. */
function nameDistance(given: string, wanted: string): number {
  const [words, wantedWords] = [wordsOf(given), wordsOf(wanted)];
  const sorted = [words.toSorted(), wantedWords.toSorted()].map((list) => list.join(""));
  return Math.min(
    editDistance(words.join(""), wantedWords.join("")),
    editDistance(sorted[0] ?? "", sorted[1] ?? ""),
  );
}

function wordsOf(name: string): string[] {
  const parted = name.replace(/([a-z])([A-Z])/g, "$1_$2").toUpperCase();
  return parted.split(/[^A-Z\d]+/).filter((word) => word !== "");
}

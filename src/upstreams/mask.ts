import { isIP } from "node:net";

/** A pattern in a text, and the replacement of its matches. */
type Rule = readonly [pattern: RegExp, replacement: string | ((found: string) => string)];

const address = "[address]";

// In this order: a URL contains hosts, and a path contains ids.
const rules: readonly Rule[] = [
  // URLs, also without a scheme where a path follows the host.
  [/\b[a-z][a-z\d+.-]*:\/\/[^\s"'`<>()[\]{}]*[^\s"'`<>()[\]{}.,;:!?]/gi, "[URL]"],
  [
    /\b(?:[a-z\d-]+\.)+(?:com|ai|io|net|org|dev|cloud|app)\/[^\s"'`<>()]*[^\s"'`<>().,;:!?]/gi,
    "[URL]",
  ],
  [/\b[\w.+-]+@(?:[a-z\d-]+\.)+[a-z]{2,}\b/gi, "[email]"],
  // Keys, whole or shortened with asterisks.
  [/\b(?:sk|rk|pk|gsk|xai|hf|nvapi|pplx|csk|fw|r8)[-_][\w*.…•-]*[\w*]/g, "[key]"],
  [/\bAIza[\w*.…-]{4,}/g, "[key]"],
  [/\bBearer\s+[\w.~+/=-]{8,}/gi, "Bearer [key]"],
  [/[\w-]*\*{3,}[\w*-]*/g, "[key]"],
  [
    /\b(key\b[^.\n]{0,40}?\b(?:ending|ends|starting|starts) (?:in|with) )['"`]?[\w-]+['"`]?/gi,
    "$1[key]",
  ],
  // Accounts of providers.
  [/\borg-[\w-]{3,}|\borg_(?=\w*\d)\w{3,}/gi, "[organization]"],
  [/\bproj[-_][\w-]{3,}/gi, "[project]"],
  [/\b(?:ws|wrkspc|acct|user)[-_](?=[\w-]*\d)[\w-]{8,}/g, "[account]"],
  [/\barn:[\w-]+:\S*[^\s.,;:!?'"`)]/gi, "[account]"],
  [/\/subscriptions\/[^\s"'`]*[^\s"'`.,;:!?]/gi, "[account]"],
  [/\bprojects\/[\w.:-]*[\w-]/g, "projects/[project]"],
  [
    /\b((?:organization|organisation|project|account|tenant|subscription|workspace)(?:[ _]?(?:id|name|number))?\s*[:=]?\s*)['"`]?(?=[\w-]*\d)[\w-]{6,}['"`]?/gi,
    "$1[account]",
  ],
  // Addresses, and names of private networks.
  [/\[[\da-f:.]*:[\da-f:.]*\](?::\d{1,5})?/gi, (found) => masked(found, /^\[(.*)\]/)],
  [/(?<![\w.:])[\da-f]*:[\da-f:.]*:[\da-f.]*(?![\w:])/gi, (found) => masked(found, /^(.*)$/)],
  [
    /(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?(?![\w]|\.\d)/g,
    (found) => masked(found, /^([\d.]+)/),
  ],
  [
    /\b(?:localhost|(?:[\w-]+\.)+(?:internal|local|svc|lan|intranet|corp|localdomain|home))(?::\d{1,5})?\b/gi,
    address,
  ],
  [/\b[a-z][\w-]*(?:\.[\w-]+)+:\d{2,5}\b/gi, address],
  [
    /(?<![\w/.])\/(?:home|root|usr|opt|var|srv|mnt|app|data|etc|tmp|workspace)\/[^\s"'`,;:)]*/g,
    "[path]",
  ],
];

function masked(found: string, host: RegExp): string {
  return isIP(host.exec(found)?.[1] ?? "") === 0 ? found : address;
}

/**
 * Masks the parts of an upstream's text that are about its operator: keys, ids of accounts, URLs,
 * addresses and paths. The parts about the request remain.
 */
export function maskOperator(text: string): string {
  return rules.reduce(
    (shown, [pattern, replacement]) =>
      typeof replacement === "string"
        ? shown.replace(pattern, replacement)
        : shown.replace(pattern, (found) => replacement(found)),
    text,
  );
}
